from collections.abc import Mapping
from typing import Any

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from tidesched_web.common.card_names import card_label
from tidesched_web.common.failures import in_words
from tidesched_web.common.models import ServiceType
from tidesched_web.console import amounts
from tidesched_web.console.hold_words import HOLDS
from tidesched_web.scheduling.models import Alert

# The sentence and the numbers that it needs; `text` is what only those who see everything may read.
_SENTENCES: dict[str, tuple[tuple[str, ...], Promise]] = {
    "quota_over_hardware": (
        ("service_type", "card", "quota", "hardware"),
        _("Queues of %(service_type)s are promised %(quota)s × %(card)s, but the nodes have %(hardware)s."),
    ),
    "object_unreadable": ((), _("An object of the cluster cannot be read: what depends on it waits.")),
    "node_lost": (("node",), _("Node %(node)s has left the cluster.")),
    "node_not_ready": (("node",), _("Node %(node)s is not ready: nothing starts on its cards.")),
    "node_recut": (("node",), _("The cards of node %(node)s have changed.")),
    "foreign_scheduler": (
        ("holder",),
        _("Nothing is sent: another installation, %(holder)s, holds the cluster's lease."),
    ),
    "partial_reclaim": ((), _("A reclaim was carried out only in part: some pods could not be evicted.")),
    "policy_invalid": ((), _("The newest policy cannot be used; the last good one stays in force.")),
    "session_failed": ((), _("A session could not decide.")),
    "no_policy": ((), _("No session runs: the cluster has no policy yet.")),
    "card_lost": (("card", "quota"), _("No node has %(card)s any more; the queues are promised %(quota)s of it.")),
    "quota_without_card": (("card", "quota"), _("The queues are promised %(quota)s × %(card)s, which no node has.")),
    "drift": (("objects",), _("Objects of the cluster that differ from what was sent: %(objects)s.")),
    "push_refused": (
        ("objects", "object", "said"),
        _(
            "The cluster does not take the push of %(object)s (objects: %(objects)s): %(said)s Look at the rule of "
            "RBAC for its kind and at the admission webhooks."
        ),
    ),
    "write_refused": (
        ("verb", "resource", "object", "objects", "said"),
        _(
            "The cluster does not take “%(verb)s %(resource)s” of %(object)s (objects: %(objects)s): %(said)s Look at "
            "the rule of RBAC for this verb and at the admission webhooks."
        ),
    ),
    "pod_stays": (
        ("object", "objects", "finalizers"),
        _(
            "Pods that were to end are still there and hold their cards (pods: %(objects)s, the first is %(object)s, "
            "its finalizers: %(finalizers)s). Remove what waits for the finalizer, or look at the kubelet of its node."
        ),
    ),
    "went_back": (
        ("said",),
        _(
            "The cluster is in an older state than before, or it is another one: %(said)s. All of it was read anew and "
            "compared with what was approved; look at the drift."
        ),
    ),
    "cluster_unreachable": ((), _("The API server of the cluster does not answer.")),
    "cluster_refused": ((), _("The API server refuses the credential of the cluster: it has expired or was revoked.")),
    "cluster_forbidden": (("kinds",), _("The credential of the cluster lacks the right to read %(kinds)s.")),
    "cluster_kinds_missing": (("kinds",), _("The API server does not know %(kinds)s: is Volcano installed?")),
    "cluster_failing": ((), _("The API server of the cluster answers with errors.")),
    "promise_unused": (
        ("promised", "card", "queue", "waiting"),
        ngettext_lazy(
            "%(promised)s × %(card)s of queue %(queue)s are promised to gangs that do not run, and %(waiting)s gang "
            "waits for that quota.",
            "%(promised)s × %(card)s of queue %(queue)s are promised to gangs that do not run, and %(waiting)s gangs "
            "wait for that quota.",
            "waiting",
        ),
    ),
    "break_glass": (("user",), _("The break-glass account %(user)s has signed in with its password.")),
    "identity_provider_fails": (
        ("provider",),
        _("%(provider)s does not answer: nobody can sign in through it, and roles of its people are not checked."),
    ),
    "audit_broken": (("chain",), _("Chain %(chain)s of the audit log does not hold or cannot be verified.")),
}
# An alert in two or three words, beside which its code is on the page of alerts.
_NAMES: dict[str, Promise] = {
    "audit_broken": _("Broken chain of the audit log"),
    "break_glass": _("Use of the break-glass account"),
    "card_lost": _("Card type without nodes"),
    "cluster_failing": _("Errors of the API server"),
    "cluster_forbidden": _("Missing right in the cluster"),
    "cluster_kinds_missing": _("Missing kinds in the cluster"),
    "cluster_refused": _("Refused credential"),
    "cluster_unreachable": _("Unreachable cluster"),
    "went_back": _("Older state of the cluster"),
    "drift": _("Drift"),
    "eviction_budget": _("Guard of evictions"),
    "foreign_scheduler": _("Another installation"),
    "identity_provider_fails": _("Provider of sign-in without answer"),
    "no_policy": _("No policy"),
    "node_lost": _("Lost node"),
    "node_not_ready": _("Node not ready"),
    "node_recut": _("Other cards on a node"),
    "object_unreadable": _("Unreadable object"),
    "partial_reclaim": _("Incomplete reclaim"),
    "pod_stays": _("Pod that does not end"),
    "policy_invalid": _("Invalid policy"),
    "promise_unused": _("Unused promise"),
    "push_refused": _("Refused push"),
    "quota_over_hardware": _("Quota above the hardware"),
    "quota_without_card": _("Quota without cards"),
    "session_failed": _("Failed session"),
    "write_refused": _("Refused write"),
}
# Conditions that are looked at again and again: a person may say that they know, and the end comes by itself.
_BY_ITSELF = frozenset(
    {
        "quota_over_hardware", "card_lost", "quota_without_card", "drift", "push_refused", "foreign_scheduler",
        "node_not_ready", "object_unreadable", "write_refused", "pod_stays",
        "audit_broken", "identity_provider_fails",
        "promise_unused",
        "cluster_unreachable", "cluster_refused", "cluster_forbidden", "cluster_kinds_missing", "cluster_failing",
    }
)  # fmt: skip
_PLACES: dict[str, tuple[str, Promise]] = {
    "quota_over_hardware": ("quota_tree", _("Open the quota tree")),
    "quota_without_card": ("card_types", _("Open the card types")),
    "card_lost": ("card_types", _("Open the card types")),
    "node_lost": ("nodes", _("Open the nodes")),
    "node_recut": ("nodes", _("Open the nodes")),
    "node_not_ready": ("nodes", _("Open the nodes")),
    "drift": ("drift", _("Open the drift")),
    "push_refused": ("drift", _("Open the drift")),
    "eviction_budget": ("sessions", _("Open the sessions")),
    "session_failed": ("sessions", _("Open the sessions")),
    "no_policy": ("policy", _("Open the policy")),
    "foreign_scheduler": ("sessions", _("Open the sessions")),
    "partial_reclaim": ("reclaims", _("Open the reclaims")),
    "policy_invalid": ("policy", _("Open the policy")),
    "promise_unused": ("queues", _("Open the queues")),
    "went_back": ("drift", _("Open the drift")),
    "write_refused": ("sessions", _("Open the sessions")),
    "pod_stays": ("nodes", _("Open the nodes")),
}

# What they count is of all tenants: a reader of some finds less of it at the place that they lead to, or nothing.
_OF_ALL_TENANTS = frozenset(
    {"quota_over_hardware", "card_lost", "quota_without_card", "drift", "push_refused", "promise_unused"}
)


def alert_name(code: str) -> str:
    return str(_NAMES.get(code, ""))


def of_all_tenants(alert: Alert) -> bool:
    return alert.code in _OF_ALL_TENANTS


def ends_by_itself(alert: Alert) -> bool:
    return alert.code in _BY_ITSELF


def place_of(alert: Alert, *, everything: bool) -> tuple[str, Promise] | None:
    """Where to look, as an address and the words of its link; one queue is named to those alone who see everything."""
    if alert.code == "audit_broken":
        return reverse("console:audit_integrity"), _("Open the verification")
    if alert.code == "identity_provider_fails":
        return reverse("console:sign_in_settings"), _("Open the sign-in settings")
    if alert.cluster is None:
        return None
    if alert.code.startswith("cluster_"):
        return reverse("console:clusters"), _("Open the clusters")
    if everything and alert.code == "promise_unused" and (queue := alert.numbers.get("queue")):
        return reverse("console:queue", args=[alert.cluster.slug, queue]), _("Open the queue")
    name, words = _PLACES.get(alert.code, ("", ""))
    if not name:
        return None
    return reverse(f"console:{name}", args=[alert.cluster.slug]), words  # type: ignore[return-value]


def alert_sentence(code: str, numbers: Mapping[str, Any], message: str, *, everything: bool) -> str:
    if code == "eviction_budget" and str(numbers.get("rule", "")) in HOLDS:
        return str(HOLDS[numbers["rule"]])
    if code == "promise_unused" and not everything:  # its queue may be another tenant's
        return str(_("Quota is promised to gangs that do not run, while others wait for it."))
    if code in ("push_refused", "write_refused") and not everything:  # so may be the object
        return str(_("The cluster refuses something that is sent to it."))
    if code == "pod_stays" and not everything:
        return str(_("Pods that were to end are still there and hold their cards."))
    if code == "session_failed" and everything and {"failures", "said"} <= numbers.keys():
        return _("No session for %(n)s attempts in a row: %(said)s.") % {
            "n": amounts.number(numbers["failures"]),
            "said": in_words(str(numbers["said"])).rstrip("."),
        }
    if code not in _SENTENCES or not numbers.keys() >= set(_SENTENCES[code][0]):
        return message if everything else code
    names, sentence = _SENTENCES[code]
    text = str(sentence % {name: _written(name, numbers[name]) for name in names})
    return f"{text} {in_words(message)}" if everything and not names else text


def _written(name: str, value: Any) -> str | int:
    if name == "card":
        return card_label(str(value))
    if name == "service_type":
        return str(ServiceType(value).label)
    if isinstance(value, int):
        return amounts.Counted(value)  # a plural form may be chosen by it
    return amounts.number(value) if isinstance(value, float) else str(value)
