import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from tidesched_web.clusters.kubernetes.rbac import remedy
from tidesched_web.clusters.kubernetes.verbs import NEEDS, VOLCANO_CONF, Need
from tidesched_web.clusters.refusal_words import filled
from tidesched_web.common import reader_zone
from tidesched_web.common.failures import in_words
from tidesched_web.common.sentences import listed

STEPS: Mapping[str, str | Promise] = {
    "credentials": _("Credentials"),
    "reach": _("Reachability and TLS"),
    "identity": _("Identity"),
    "version": pgettext_lazy("of Kubernetes", "Version"),
    "apis": _("Kubernetes APIs"),
    "volcano": _("Volcano's kinds"),
    "policy": _("Card quotas"),
    "others": _("Other schedulers"),
    "verbs": _("Rights"),
}

# code → (what was found, what helps)
WORDS: Mapping[str, tuple[str | Promise, str | Promise]] = {
    "unusable": (_("The credentials cannot be used: %(path)s %(detail)s."), _("Give the connection again.")),
    "no_pod": (
        _("TideSched's workers run in no pod of a cluster, or their pod has no token of a service account."),
        _("Install TideSched into the cluster (deploy/helm), or connect it by a kubeconfig, or by address and token."),
    ),
    "gone": (_("The connection that was to be tested is not there any more."), _("Give the connection again.")),
    "called_off": (_("The test was cancelled."), _("Test again.")),
    "broke": (_("The test itself ended early: %(why)s"), _("Test again.")),
    "no_end": (
        _("The credentials say nothing of an end: they hold until they are revoked."),
        _("A token with an end, replaced in time, is safer: kubectl create token … --duration=8760h."),
    ),
    "expired": (
        _("The credentials ended at %(at)s."),
        _("Make new ones and replace the connection: kubectl -n tidesched create token tidesched --duration=8760h."),
    ),
    "ends_soon": (
        _("The credentials end at %(at)s."),
        _("Replace them before: kubectl -n tidesched create token tidesched --duration=8760h."),
    ),
    "lasts": (_("The credentials hold until %(at)s."), ""),
    "authority_ends": (
        _("The certificate authority %(subject)s ends at %(at)s."),
        _("Renew it in the cluster and replace the connection."),
    ),
    "name_unknown": (
        _("No address is known for the name in %(url)s."),
        _("Check the name, and whether TideSched's workers use a name server that knows it."),
    ),
    "forbidden_address": (
        _("%(url)s leads to an address where no cluster may be (link-local, metadata services)."),
        _("Give the address of the API server itself."),
    ),
    "refused": (
        _("Nothing listens at %(url)s: the connection was refused."),
        _("Check address and port, and whether a network policy or firewall lets TideSched's workers out to it."),
    ),
    "no_answer": (
        _("%(url)s did not answer within five seconds."),
        _("Check address and port, and whether a network policy or firewall lets TideSched's workers out to it."),
    ),
    "too_large": (
        _("%(url)s answers with more than an API server sends: nothing beyond the bound is read."),
        _("Check that the port is the one of the API server, and the proxies between."),
    ),
    "too_slow": (
        _("%(url)s began to answer and did not end in time."),
        _("Check the load of the API server, and the firewalls and proxies between."),
    ),
    "broken_off": (
        _("%(url)s broke the connection off."),
        _("Check that the port is the one of the API server, and the firewalls and proxies between."),
    ),
    "proxy": (
        _("The proxy that HTTPS_PROXY names cannot be used, or lets nothing through."),
        _("Check its address, user and password, or name the cluster's host in NO_PROXY."),
    ),
    "unreachable": (_("%(url)s cannot be reached."), _("Check address and port.")),
    "wrong_authority": (
        _(
            "The server's certificate is signed by no authority that counts here: the authority is missing or the "
            "wrong one, or this is another cluster."
        ),
        _(
            "Take certificate-authority-data of the kubeconfig, or: kubectl get configmap "
            "kube-root-ca.crt -o jsonpath='{.data.ca\\.crt}'."
        ),
    ),
    "wrong_name": (
        _("The server's certificate is for other names than the one in %(url)s."),
        _("Use a name that the certificate has, or give it as the server's name for TLS."),
    ),
    "server_expired": (_("The server's certificate has ended."), _("Renew it in the cluster.")),
    "no_tls": (_("%(url)s does not speak TLS."), _("Check that the port is the one of the API server (6443 or 443).")),
    "tls_failed": (_("TLS with %(url)s failed."), _("Check address, port and certificates.")),
    "not_let_in": (
        _("%(url)s does not know these credentials (401): they have ended, were revoked, or are another cluster's."),
        _("Make new ones and replace the connection: kubectl -n tidesched create token tidesched --duration=8760h."),
    ),
    "not_kubernetes": (
        _("%(url)s answers, but not as a Kubernetes API server (status %(status)s)."),
        _("Check address, port and path."),
    ),
    "reached": (_("%(url)s answered in %(ms)s ms, and its certificate is right."), ""),
    "reached_plainly": (_("%(url)s answered in %(ms)s ms, without TLS: there is no certificate to check."), ""),
    "known_as": (_("The cluster knows TideSched as %(user)s."), ""),
    "version": (_("Kubernetes %(version)s."), ""),
    "version_unknown": (_("The cluster does not state its version."), ""),
    "version_old": (_("Kubernetes %(version)s is older than %(least)s."), _("Update the cluster.")),
    "apis": (_("All %(count)s APIs that are needed are there."), ""),
    "api_missing": (
        _("The API %(resource)s of %(group_version)s is not there."),
        _("Update the cluster, or switch the API on."),
    ),
    "crds": (_("Queue and PodGroup are there."), ""),
    "crd_missing": (
        _("The kind %(kind)s (%(crd)s) is not there."),
        _("Install Volcano, or its CustomResourceDefinitions alone where TideSched schedules: docs/connecting.md."),
    ),
    "conf_hidden": (
        _(
            "Volcano's scheduler configuration may not be read (status %(status)s), so it is "
            "unknown whether card quotas hold."
        ),
        _("Grant what is missing under Rights."),
    ),
    "conf_missing": (
        _("The ConfigMap %(name)s is not there: whether card quotas hold is not known."),
        _("Where Volcano's scheduler has another one, name it in the cluster's settings."),
    ),
    "card_quota_own": (_("TideSched holds card quotas itself in mode schedule."), ""),
    "card_quota_holds": (_("The cluster's Volcano has the plugin capacity-card: card quotas hold."), ""),
    "card_quota_ignored": (
        _(
            "Card quotas are not enforced by this cluster: its Volcano has no plugin capacity-card "
            "(it has %(plugins)s)."
        ),
        _(
            "Use a Volcano with that plugin, or mode schedule. Cards that are a resource of their own "
            "are limited by spec.capability meanwhile."
        ),
    ),
    "volcano_runs": (_("Volcano's scheduler runs here: %(names)s."), ""),
    "volcano_absent": (_("Volcano's scheduler does not run here."), ""),
    "other_installation": (
        _("Another installation of TideSched, %(holder)s, holds this cluster."),
        _("Stop it first, or connect in mode observe."),
    ),
    "same_server": (
        _("This is the cluster that is connected as %(cluster)s already."),
        _("Work with that one, or disconnect it first."),
    ),
    "verbs": (_("All %(count)s rights of mode %(mode)s are there."), ""),
    "verb_missing": (_("%(verb)s %(resource)s is not allowed%(where)s: %(why)s."), ""),
    "no_reviews": (_("This cluster answers no access reviews, so rights could not be checked."), ""),
    "not_answered": (_("The cluster did not answer this question: %(detail)s"), ""),
}
# What each line of `verbs.NEEDS` is for.
WHY: Mapping[str, str | Promise] = {
    "hardware: cards, labels, taints": _("hardware: cards, labels, taints"),
    "which queue a namespace belongs to": _("which queue a namespace belongs to"),
    "who uses which cards": _("who uses which cards"),
    "who evicted a pod, where others do": _("who evicted a pod, where others do"),
    "the kind of a pod's owner": _("the kind of a pod's owner"),
    "what owners say of their gangs": _("what owners say of their gangs"),
    "which pods may leave": _("which pods may leave"),
    "the order of pods": _("the order of pods"),
    "on which nodes a pod finds its volumes": _("on which nodes a pod finds its volumes"),
    "quotas as they are in the cluster": _("quotas as they are in the cluster"),
    "gangs": _("gangs"),
    "what becomes of a gang that loses a pod": _("what becomes of a gang that loses a pod"),
    "the policy of Volcano's scheduler, and whether it knows card quotas": _(
        "the policy of Volcano's scheduler, and whether it knows card quotas"
    ),
    "push quotas": _("push quotas"),
    "close and open queues, count their gangs": _("close and open queues, count their gangs"),
    "push priority classes": _("push priority classes"),
    "ask Volcano's controllers to close a queue": _("ask Volcano's controllers to close a queue"),
    "keep a second installation out": _("keep a second installation out"),
    "bind": _("bind"),
    "evict under disruption budgets": _("evict under disruption budgets"),
    "take back the bound members of a gang that cannot be completed": _(
        "take back the bound members of a gang that cannot be completed"
    ),
    "nominated node and conditions": _("nominated node and conditions"),
    "say why a pod waits": _("say why a pod waits"),
    "make and keep PodGroups": _("make and keep PodGroups"),
    "phases of gangs, where PodGroup has a status of its own": _(
        "phases of gangs, where PodGroup has a status of its own"
    ),
}
_HELP_IN_MODE: Mapping[tuple[str, str], str | Promise] = {
    ("volcano_runs", "schedule"): _(
        "Two schedulers would write the same PodGroups and queues: stop Volcano's "
        "(kubectl -n volcano-system scale deployment volcano-scheduler --replicas=0), or choose mode quota."
    ),
    ("volcano_absent", "quota"): _(
        "In mode quota no scheduler would place pods: install Volcano, or choose mode schedule."
    ),
}


def _filled(finding: Mapping[str, Any]) -> dict[str, Any]:
    values = dict(finding["values"])
    if "at" in values:
        values["at"] = reader_zone.named(dt.datetime.fromisoformat(values["at"]))
    if finding["code"] == "conf_missing":
        values.setdefault("name", "/".join(VOLCANO_CONF))
    if "why" in values:
        values["why"] = WHY.get(values["why"]) or in_words(values["why"])
    if "said" in values:
        values["detail"] = filled(values["said"], values["with"])
    for key in ("plugins", "names"):
        if isinstance(values.get(key), list):
            values[key] = listed(values[key]) or gettext("none")
    if finding["code"] == "verb_missing":
        place, only = values.get("namespace"), values.get("names")
        values["where"] = (f" ({place}" + (f"/{only}" if finding["values"]["names"] else "") + ")") if place else ""
    return values


def sentence(finding: Mapping[str, Any]) -> str:
    return str(WORDS[finding["code"]][0]) % _filled(finding)


def helps(finding: Mapping[str, Any], mode: str) -> str:
    if finding["level"] in ("good", "note") and finding["code"] != "no_end":
        return ""
    return str(_HELP_IN_MODE.get((finding["code"], mode)) or WORDS[finding["code"]][1])


def _need_of(values: Mapping[str, Any]) -> Need | None:
    for line in NEEDS:
        # Where the ConfigMap is, is a setting of the cluster: the finding says where it was looked for.
        placed = line.resource == "configmaps" and values["resource"] == "configmaps"
        need = replace(line, namespace=values["namespace"], names=tuple(values["names"])) if placed else line
        resource = f"{need.resource}.{need.group}" if need.group else need.resource
        same = resource == values["resource"] and need.namespace == values["namespace"]
        if same and list(need.names) == values["names"] and values["verb"] in need.verbs:
            return need
    return None


def grants(findings: Iterable[Mapping[str, Any]], mode: str) -> str:
    all_findings = list(findings)
    missing = [one["values"] for one in all_findings if one["code"] == "verb_missing"]
    pairs = [(need, values["verb"]) for values in missing if (need := _need_of(values)) is not None]
    user = next((str(one["values"]["user"]) for one in all_findings if one["code"] == "known_as"), "")
    return remedy(pairs, user=user, mode=mode) if pairs else ""
