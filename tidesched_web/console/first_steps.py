from dataclasses import dataclass
from typing import Final

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from tidesched_web.clusters.connection_selectors import newest_test
from tidesched_web.clusters.models import Cluster, ClusterMode
from tidesched_web.clusters.selectors import ruling_policy
from tidesched_web.common.sentences import listed
from tidesched_web.console import amounts
from tidesched_web.console.page import Page
from tidesched_web.quota.drift_selectors import drift_look, first_refusal, has_been_pushed
from tidesched_web.scheduling.cluster_selectors import decided_here, has_sessions, newest_failure, open_trouble

DONE, DUE, WAITS, TROUBLE = "done", "due", "waits", "trouble"
LOOKS: Final[dict[str, tuple[str, str, Promise]]] = {
    DONE: ("tone-good", "circle-check", gettext_lazy("Done")),
    DUE: ("tone-admitted", "send", gettext_lazy("To do")),
    WAITS: ("tone-quiet", "clock", gettext_lazy("Waits")),
    TROUBLE: ("tone-failed", "alert-circle", gettext_lazy("Needs help")),
}


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    state: str
    why: str
    url: str
    button: str

    @property
    def look(self) -> tuple[str, str, Promise]:
        return LOOKS[self.state]


def first_steps(this: Page) -> list[Step]:
    cluster = this.cluster
    if not this.access.administers or cluster.disconnected_at is not None:
        return []
    if cluster.set_up:  # type: ignore[attr-defined]  # an annotation of the query that reads the clusters
        return []
    ran = has_sessions(cluster)
    steps = [_reached(cluster, ran=ran), _adopted(cluster), _policy(cluster), _session(cluster, ran=ran)]
    if cluster.mode != ClusterMode.OBSERVE:
        steps.append(_push(cluster))
    return steps


def _step(cluster: Cluster, name: str, state: str, why: str, place: str, button: str) -> Step:
    return Step(name, state, why, reverse(f"console:{place}", args=[cluster.slug]), button)


def _reached(cluster: Cluster, *, ran: bool) -> Step:
    trouble, test = open_trouble(cluster), newest_test(cluster)
    if trouble:
        state, why = TROUBLE, trouble
    elif ran:
        state, why = DONE, _("Sessions read the cluster.")
    elif test is not None and test.verdict == "failed":
        state, why = TROUBLE, _("The newest connection test found something missing.")
    elif test is not None:
        state, why = DONE, _("The newest connection test found nothing missing.")
    else:
        state, why = DUE, _("No connection test has been made yet.")
    return _step(cluster, _("The cluster is reached"), state, why, "connection", _("Open the connection"))


def _adopted(cluster: Cluster) -> Step:
    name = _("Queues, priority classes and tenants are adopted")
    look = drift_look(cluster)
    there = decided_here(cluster)
    if look is None:
        why = _("The queues of the cluster have not been read yet.")
        return _step(cluster, name, WAITS, why, "adoption", _("Adopt queues"))
    if look.unmanaged:
        n = len(look.unmanaged)
        why = ngettext(
            "%(n)s queue of the cluster is not decided on here.",
            "%(n)s queues of the cluster are not decided on here.",
            n,
        ) % {"n": amounts.number(n)}
        return _step(cluster, name, DUE, why, "adoption", _("Adopt queues"))
    if look.unmanaged_classes:
        n, more = len(look.unmanaged_classes), " …" if len(look.unmanaged_classes) > 3 else ""
        why = ngettext(
            "%(n)s priority class of the cluster is not decided on here: %(names)s.",
            "%(n)s priority classes of the cluster are not decided on here: %(names)s.",
            n,
        ) % {"n": amounts.number(n), "names": listed(look.unmanaged_classes[:3]) + more}
        return _step(cluster, name, DUE, why, "priority_classes", _("Open the priority classes"))
    if not there.tenants:
        return _step(cluster, name, DUE, _("There is no tenant yet."), "tree_file", _("Import a tree"))
    if not there.queues:
        return _step(cluster, name, DUE, _("There is no queue yet."), "quota_editor", _("Open the editor"))
    figures = {"queues": amounts.number(there.queues), "classes": amounts.number(there.classes)}
    why = _("Queues: %(queues)s. Priority classes: %(classes)s.") % figures
    return _step(cluster, name, DONE, why, "quota_tree", _("Open the quota tree"))


def _policy(cluster: Cluster) -> Step:
    name, ruling = _("A policy is chosen"), ruling_policy(cluster)
    if ruling is None:
        why, state = _("The cluster has no policy yet: no session runs."), DUE
    elif cluster.mode == ClusterMode.SCHEDULE and ruling.released_at is None:
        why = _("Revision %(n)s is not released: sessions decide and send nothing.") % {"n": ruling.number}
        state = DUE
    else:
        why, state = _("Revision %(n)s is in force.") % {"n": ruling.number}, DONE
    return _step(cluster, name, state, why, "policy", _("Open the policy"))


def _session(cluster: Cluster, *, ran: bool) -> Step:
    name, failure = _("The first session has run"), "" if ran else newest_failure(cluster)
    if ran:
        why, state = _("Sessions run."), DONE
    elif failure:
        why, state = failure, TROUBLE
    else:
        why, state = _("A worker runs it within a minute."), WAITS
    return _step(cluster, name, state, why, "sessions", _("Open the sessions"))


def _push(cluster: Cluster) -> Step:
    name, refusal = _("The cluster has taken the first push"), first_refusal(cluster)
    if refusal:
        return _step(cluster, name, TROUBLE, refusal, "drift", _("Open the drift"))
    if has_been_pushed(cluster):
        why = _("The cluster has what was decided here.")
        return _step(cluster, name, DONE, why, "drift", _("Open the drift"))
    why = _("Nothing has been sent yet: it comes with the first queue that is adopted or made.")
    return _step(cluster, name, WAITS, why, "drift", _("Open the drift"))
