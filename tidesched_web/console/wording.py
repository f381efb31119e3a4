"""Why a gang waits, and what would help, as sentences made from the closed code and its numbers.

Where a number is missing the sentence falls back to one without it: a wrong figure is worse than none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from tidesched_web.common.card_names import card_label
from tidesched_web.common.permissions import Access
from tidesched_web.console import amounts
from tidesched_web.console.problem_words import problem_in_words

Numbers = Mapping[str, Any]


class OneOrMany(NamedTuple):
    """A sentence for one and for several; ``by``: the figure that chooses."""

    one: str
    many: str
    by: str


def ngettext_noop(one: str, many: str, by: str) -> OneOrMany:
    """Marks a sentence of both numbers for the catalogue; it is looked up with its figures (`_said`)."""
    return OneOrMany(one, many, by)


# With the figures that it needs.
Sentences = tuple[tuple[tuple[str, ...], Promise | OneOrMany], ...]

TITLES: dict[str, Promise] = {
    "Suspended": gettext_lazy("Suspended"),
    "Misconfigured": gettext_lazy("Misconfigured"),
    "NotSupported": gettext_lazy("Not supported"),
    "TimedOut": gettext_lazy("Timed out"),
    "NoMatchingCard": gettext_lazy("No such card"),
    "QueueClosed": gettext_lazy("Queue closed"),
    "ExceedsMaxQuota": gettext_lazy("Larger than the quota"),
    "GangIncomplete": gettext_lazy("Gang incomplete"),
    "WaitingForReclaim": gettext_lazy("Waits for reclaimed cards"),
    "NotAllowedInQueue": gettext_lazy("Not allowed in the queue"),
    "WaitingForQuota": gettext_lazy("Waits for quota"),
    "OverCommitted": gettext_lazy("Cluster is promised out"),
    "WaitingForCards": gettext_lazy("Waits for cards"),
    "NoNodeMatches": gettext_lazy("No node matches"),
    "WaitingForResources": gettext_lazy("Waits for resources"),
    "Fragmented": gettext_lazy("Cards are scattered"),
    "BehindHigherPriority": gettext_lazy("Behind higher priority"),
    "ReclaimForbidden": gettext_lazy("May not take cards back"),
    "BackingOff": gettext_lazy("Backing off"),
    "PendingEvaluation": gettext_lazy("Not looked at yet"),
}

FIGURES: dict[str, Promise] = {
    "requested": gettext_lazy("Needs"),
    "limit": gettext_lazy("Limit"),
    "allocated": gettext_lazy("In use"),
    "inqueue": gettext_lazy("Promised"),
    "free": gettext_lazy("Free"),
    "short": gettext_lazy("Short of"),
    "position": gettext_lazy("Place in the queue"),
}

# What the figure `limit` of a reason is the limit of.
LIMITS: dict[str, Promise] = {
    "WaitingForQuota": gettext_lazy("Quota of its queue"),
    "ExceedsMaxQuota": gettext_lazy("Quota of its queue"),
    "WaitingForCards": gettext_lazy("Cards in the cluster"),
    "Fragmented": gettext_lazy("Cards in the cluster"),
    "OverCommitted": gettext_lazy("May be promised"),
}

# What the figure `short` of a reason counts, where the cards are there.
SHORT: dict[str, Promise] = {"Fragmented": gettext_lazy("Find no node with room for a whole pod")}

# The field that holds pods back until it is removed.
GATES = "spec.schedulingGates"

# Why a session decides and shows, but sends nothing.
HOLDS: dict[str, Promise] = {
    "observe": gettext_lazy("The cluster is in mode observe: decisions are shown, nothing is sent."),
    "quota": gettext_lazy("The cluster is in mode quota: Volcano schedules, decisions are only shown."),
    "paused": gettext_lazy("The cluster is paused: decisions are shown, nothing is sent."),
    "policy_unreleased": gettext_lazy(
        "The policy is new: what it would do is shown, and nothing is sent until it is released."
    ),
    "mode_changed": gettext_lazy("The mode has changed: what it would do is shown once, then it is done."),
    "guard": gettext_lazy("An alert waits for a person: nothing is sent until it is resolved."),
    "foreign_scheduler": gettext_lazy("Another scheduler works in this cluster: nothing is sent."),
    "gangs_per_minute": gettext_lazy("A guard stopped it: too many gangs would have been evicted within a minute."),
    "cards_per_minute": gettext_lazy("A guard stopped it: too many cards would have been taken back within a minute."),
    "share_of_training": gettext_lazy(
        "A guard stopped it: too large a share of the training would have been evicted at once."
    ),
}


def reason_title(code: str) -> str | Promise:
    """The short name of a code; an unknown one shows itself."""
    return TITLES.get(code, code)


def resource_label(resource: str | None) -> str:
    """What the numbers count."""
    if resource == "cpu":
        return _("CPU cores")
    if resource == "memory":
        return _("memory")
    if resource == "pods":
        return _("pods")
    if resource == "ephemeral-storage":
        return _("local storage")
    if resource and resource.startswith("hugepages-"):
        return _("huge pages of %(size)s") % {"size": resource.removeprefix("hugepages-")}
    return card_label(resource) if resource else _("cards")


def in_bytes(resource: str) -> bool:
    """Whether the numbers of a resource are bytes."""
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")


def resource_amount(resource: str | None, value: float | None) -> str:
    """A figure of a reason in human units: cards as counts, CPU in cores, memory in GiB."""
    if value is None:
        return "–"
    if resource == "cpu":
        return amounts.number(value / 1000)
    if resource and in_bytes(resource):
        return f"{amounts.number(value / 1024**3)} GiB"
    return amounts.number(value)


def how_many(resource: str | None, value: float) -> int:
    """What singular and plural of an amount are chosen by: one, or several. A share of a card is no card yet."""
    shown = value / 1000 if resource == "cpu" else value / 1024**3 if resource and in_bytes(resource) else value
    return 1 if shown == 1 else 2


def reason_sentence(code: str, numbers: Numbers) -> str:
    """The sentence for one code with its numbers."""
    figures = _figures(numbers)
    for needed, template in _SENTENCES.get(code, ()):
        if all(name in figures for name in needed):
            return _said(template, figures)
    return str(reason_title(code))


def _said(template: Promise | OneOrMany, figures: Mapping[str, Any]) -> str:
    if isinstance(template, OneOrMany):
        return ngettext(template.one, template.many, figures[f"{template.by}_n"]) % figures
    return str(template) % figures


def reason_detail(code: str, message: str) -> str:
    """The engine's own words where no number can say it: what is wrong with a gang as it is written, or an own code."""
    if code == "Misconfigured":
        return problem_in_words(message)
    return "" if code in _SENTENCES else message


def own_numbers(access: Access, numbers: Numbers | None) -> Numbers:
    """The numbers of a reason without who holds the cards, for a reader who may not see other tenants' gangs."""
    numbers = numbers or {}
    return numbers if access.everything else {name: value for name, value in numbers.items() if name != "holders"}


def _figures(numbers: Numbers) -> dict[str, Any]:
    """The numbers that are there, written for a person; ``…_n`` are what singular and plural are chosen by."""
    resource = numbers.get("resource")
    figures: dict[str, Any] = {"card": resource_label(resource)} if resource else {}
    if field := numbers.get("field"):
        figures["field"] = str(field)
        if field == GATES:
            figures["gates"] = figures["field"]
    for name in ("requested", "limit", "allocated", "inqueue", "free", "short"):
        if numbers.get(name) is not None:
            figures[name] = resource_amount(resource, numbers[name])
            figures[f"{name}_n"] = how_many(resource, numbers[name])
    if resource and "requested" in figures:
        sign = " " if resource in ("cpu", "pods") or in_bytes(resource) else " × "
        figures["what"] = f"{figures['requested']}{sign}{figures['card']}"
    if numbers.get("position"):
        figures["position"] = amounts.number(numbers["position"])
    if numbers.get("nodes"):
        figures["nodes"] = amounts.number(sum(numbers["nodes"].values()))
    if holders := numbers.get("holders"):
        figures["holder"] = holders[0]["gang"]
        figures["held"] = resource_amount(resource, holders[0].get("amount"))
    return figures


# What a gang lacks where it waits for a reason: quota of its queue, cards of the cluster, or what the cluster promises.
_MISSING_OF = {
    "WaitingForQuota": "quota",
    "ExceedsMaxQuota": "quota",
    "WaitingForCards": "cards",
    "ReclaimForbidden": "cards",
    "BehindHigherPriority": "cards",
    "Fragmented": "together",
    "NoNodeMatches": "nodes",
    "WaitingForResources": "nodes",
    "OverCommitted": "promises",
}
_LACKING: dict[str, Sentences] = {
    "quota": (
        (
            ("queue", "what", "limit", "allocated", "inqueue"),
            ngettext_noop(
                "%(more)s is missing in the quota of queue %(queue)s. It needs %(what)s; the quota is %(limit)s, in "
                "use: %(allocated)s, promised: %(inqueue)s. More quota alone was tried and is not enough.",
                "%(more)s are missing in the quota of queue %(queue)s. It needs %(what)s; the quota is %(limit)s, in "
                "use: %(allocated)s, promised: %(inqueue)s. More quota alone was tried and is not enough.",
                "short",
            ),
        ),
        (
            ("queue", "what", "limit"),
            ngettext_noop(
                "%(more)s is missing in the quota of queue %(queue)s. It needs %(what)s; the quota is %(limit)s in "
                "all. More quota alone was tried and is not enough.",
                "%(more)s are missing in the quota of queue %(queue)s. It needs %(what)s; the quota is %(limit)s in "
                "all. More quota alone was tried and is not enough.",
                "short",
            ),
        ),
    ),
    "cards": (
        (
            ("what", "free"),
            ngettext_noop(
                "%(more)s is missing among the free cards of the cluster. It needs %(what)s; free for it: %(free)s. "
                "The quota of its queue is no obstacle.",
                "%(more)s are missing among the free cards of the cluster. It needs %(what)s; free for it: %(free)s. "
                "The quota of its queue is no obstacle.",
                "short",
            ),
        ),
    ),
    "together": (
        (
            ("what", "free"),
            ngettext_noop(
                "%(more)s is missing on nodes that hold its pods. It needs %(what)s there; free in all: %(free)s, but "
                "not together.",
                "%(more)s are missing on nodes that hold its pods. It needs %(what)s there; free in all: %(free)s, but "
                "not together.",
                "short",
            ),
        ),
    ),
    "nodes": (
        (
            ("what",),
            ngettext_noop(
                "%(more)s is missing on the nodes where its pods may run. It needs %(what)s there.",
                "%(more)s are missing on the nodes where its pods may run. It needs %(what)s there.",
                "short",
            ),
        ),
    ),
    "promises": (
        (
            ("what", "limit"),
            ngettext_noop(
                "%(more)s is missing in what the cluster may promise. It needs %(what)s; the cluster may promise "
                "%(limit)s in all, and the rest is promised to others.",
                "%(more)s are missing in what the cluster may promise. It needs %(what)s; the cluster may promise "
                "%(limit)s in all, and the rest is promised to others.",
                "short",
            ),
        ),
    ),
}

# For each code the sentences from the most telling to the plainest, with the figures that each one needs.
_SENTENCES: dict[str, Sentences] = {
    "Suspended": (((), gettext_lazy("A person has suspended it.")),),
    "Misconfigured": (
        (
            ("card",),
            gettext_lazy("Its request for %(card)s cannot be understood: check queue, card name and priority class."),
        ),
        ((), gettext_lazy("It cannot be scheduled as it is written.")),
    ),
    "NotSupported": (
        (
            ("gates",),
            gettext_lazy("Its pods have scheduling gates (%(field)s); they are scheduled once the gates are removed."),
        ),
        (
            ("field",),
            gettext_lazy("It has the field %(field)s, which the scheduler does not act on: its pods are not bound."),
        ),
        ((), gettext_lazy("It asks for something that the scheduler does not support: its pods are not bound.")),
    ),
    "TimedOut": (((), gettext_lazy("It was not complete within its time and has been given up.")),),
    "NoMatchingCard": (
        (("card",), gettext_lazy("No node of the cluster carries %(card)s.")),
        ((), gettext_lazy("No node of the cluster carries such a card.")),
    ),
    "QueueClosed": (((), gettext_lazy("Its queue is closed and takes no new work.")),),
    "ExceedsMaxQuota": (
        (("what", "limit"), gettext_lazy("Needs %(what)s, but the quota is %(limit)s: it can never fit.")),
        ((), gettext_lazy("Needs more than the quota of its queue: it can never fit.")),
    ),
    "GangIncomplete": (
        (
            ("free", "requested"),
            ngettext_noop(
                "%(free)s of %(requested)s pods is there; the gang starts as a whole.",
                "%(free)s of %(requested)s pods are there; the gang starts as a whole.",
                "free",
            ),
        ),
        (
            ("allocated", "requested"),
            ngettext_noop(
                "%(allocated)s of %(requested)s pods is there; the gang starts as a whole.",
                "%(allocated)s of %(requested)s pods are there; the gang starts as a whole.",
                "allocated",
            ),
        ),
        ((), gettext_lazy("Fewer pods exist than the gang needs to start.")),
    ),
    "WaitingForReclaim": (
        (("what",), gettext_lazy("Cards are being taken back for it: %(what)s.")),
        ((), gettext_lazy("Cards are being taken back for it; their pods are still leaving.")),
    ),
    "NotAllowedInQueue": (((), gettext_lazy("Its namespace may not use this queue.")),),
    "WaitingForQuota": (
        (
            ("what", "limit", "allocated", "inqueue"),
            ngettext_noop(
                "Needs %(what)s; of the quota of %(limit)s, %(allocated)s is in use and %(inqueue)s promised.",
                "Needs %(what)s; of the quota of %(limit)s, %(allocated)s are in use and %(inqueue)s promised.",
                "allocated",
            ),
        ),
        (
            ("what", "limit", "allocated"),
            ngettext_noop(
                "Needs %(what)s; of the quota of %(limit)s, %(allocated)s is in use.",
                "Needs %(what)s; of the quota of %(limit)s, %(allocated)s are in use.",
                "allocated",
            ),
        ),
        (
            ("what", "free"),
            ngettext_noop(
                "Needs %(what)s; %(free)s is free within the quota.",
                "Needs %(what)s; %(free)s are free within the quota.",
                "free",
            ),
        ),
        ((), gettext_lazy("The quota of its queue is in use.")),
    ),
    "OverCommitted": (
        (
            ("what", "limit"),
            gettext_lazy("Needs %(what)s, but the cluster has promised all that it may promise: %(limit)s."),
        ),
        ((), gettext_lazy("The cluster has promised all that it may promise.")),
    ),
    "WaitingForCards": (
        (
            ("what", "free", "holder", "held"),
            ngettext_noop(
                "Needs %(what)s, %(free)s is free; %(holder)s holds the most, %(held)s.",
                "Needs %(what)s, %(free)s are free; %(holder)s holds the most, %(held)s.",
                "free",
            ),
        ),
        (
            ("what", "free"),
            ngettext_noop(
                "Needs %(what)s, but only %(free)s is free in the cluster.",
                "Needs %(what)s, but only %(free)s are free in the cluster.",
                "free",
            ),
        ),
        ((), gettext_lazy("Too few cards are free in the cluster.")),
    ),
    "NoNodeMatches": (
        (("nodes",), gettext_lazy("Its pods fit on none of the nodes (%(nodes)s).")),
        ((), gettext_lazy("No node fits its pods.")),
    ),
    "WaitingForResources": (
        (
            ("what", "free", "short"),
            ngettext_noop(
                "Needs %(what)s; %(free)s is free where its pods may run: %(short)s short.",
                "Needs %(what)s; %(free)s are free where its pods may run: %(short)s short.",
                "free",
            ),
        ),
        ((), gettext_lazy("Where its pods may run, too little CPU, memory or another resource is free.")),
    ),
    "Fragmented": (
        (
            ("requested", "card", "free"),
            ngettext_noop(
                "%(free)s × %(card)s is free, but not where it fits: no set of nodes holds the %(requested)s it needs.",
                "%(free)s × %(card)s are free, but scattered: no set of nodes holds the %(requested)s it needs.",
                "free",
            ),
        ),
        ((), gettext_lazy("Enough cards are free, but scattered over nodes where its pods do not fit.")),
    ),
    "BehindHigherPriority": (
        (("position",), gettext_lazy("Place %(position)s in its queue: more important or older gangs come first.")),
        ((), gettext_lazy("More important or older gangs come first.")),
    ),
    "ReclaimForbidden": (
        (
            ("what", "free"),
            ngettext_noop(
                "Needs %(what)s, %(free)s is free, and the rules let it take nothing from those who hold the rest.",
                "Needs %(what)s, %(free)s are free, and the rules let it take nothing from those who hold the rest.",
                "free",
            ),
        ),
        ((), gettext_lazy("The rules let it take no cards from those who hold them.")),
    ),
    "BackingOff": (((), gettext_lazy("It did not fit a moment ago and is tried again shortly.")),),
    "PendingEvaluation": (((), gettext_lazy("The next session looks at it.")),),
}


def remedy_sentence(remedy: Numbers, *, admitted: bool = False, more: int = 0) -> str:
    """The smallest single change that a session has shown to help.

    Args:
        admitted: to admit it, it has no pods yet. more: it runs, and so many more pods of it would start.
    """
    change = remedy.get("change")
    if more:
        lead = ngettext("%(n)s more pod of it would start", "%(n)s more pods of it would start", more)
        lead %= {"n": amounts.number(more)}
    else:
        lead = _("It would be admitted") if admitted else _("It would start")
    if change == "quota" and remedy.get("by") is not None:
        said = _("%(lead)s if the quota of queue %(queue)s were %(what)s higher.")
        what = counted(remedy.get("card"), remedy["by"])
        return said % {"lead": lead, "queue": remedy.get("queue") or "–", "what": what}
    if change == "gang_ends":
        gang = remedy.get("gang") or _("a gang of another tenant")
        if remedy.get("waits"):
            said = _("%(lead)s if %(gang)s, which holds a promise and does not run, were withdrawn.")
        else:
            said = _("%(lead)s as soon as %(gang)s ends.")
        return said % {"lead": lead, "gang": gang}
    if change == "priority" and remedy.get("above") is not None:
        said = _("%(lead)s with a priority above %(above)s.")
        return said % {"lead": lead, "above": amounts.number(remedy["above"])}
    return ""


def counted(resource: str | None, amount: float) -> str:
    """An amount with what it counts: "4 × H200", "8 CPU cores", "64 GiB memory"."""
    sign = " " if resource in ("cpu", "pods") or (resource and in_bytes(resource)) else " × "
    return f"{resource_amount(resource, amount)}{sign}{resource_label(resource)}"


# Reasons that no change of quota or priority and no end of another gang could end: what has to change is the gang.
_OF_THE_GANG = frozenset(
    {
        "Suspended",
        "Misconfigured",
        "NotSupported",
        "TimedOut",
        "NoMatchingCard",
        "QueueClosed",
        "GangIncomplete",
        "NotAllowedInQueue",
    }
)
_ON_ITS_WAY = frozenset({"WaitingForReclaim", "BackingOff", "PendingEvaluation"})


def no_remedy_sentence(code: str, numbers: Numbers, queue: str = "") -> str:
    """What is said where none of the changes that were tried helps; empty where the reason itself says what to do.

    ``queue``: the gang's own, whose quota it may lack.
    """
    if code in _OF_THE_GANG or code in _ON_ITS_WAY:
        return ""
    lacks = lacking(code, numbers, queue)
    if not lacks:
        return _("No single change that was tried helps.")
    return _("No single change that was tried helps: %(lacks)s") % {"lacks": lacks}


def lacking(code: str, numbers: Numbers, queue: str) -> str:
    """Of what how much is missing, and where; a sentence that goes on behind a colon. Empty where no figure says it."""
    figures = _figures(numbers)
    short, resource = numbers.get("short"), numbers.get("resource")
    if not short:
        return ""
    figures |= {"queue": queue, "more": counted(resource, short)}
    for needed, template in _LACKING.get(_MISSING_OF.get(code, ""), ()):
        if all(figures.get(name) for name in needed):
            return _said(template, figures)
    return ngettext("%(more)s is missing.", "%(more)s are missing.", figures["short_n"]) % figures


def in_the_way(code: str, numbers: Numbers, *, services: float, first: str, waits_first: bool) -> list[str]:
    """Why nothing helps. ``first``: who gets what the end of another gang frees; without a name, one of another tenant.

    ``services``: how much of what it lacks inference holds.
    """
    resource, lines = numbers.get("resource"), []
    if services:
        said = _("More quota would not help: the cards are in use. Inference holds %(held)s until its services shrink.")
        if code == "Fragmented":
            said = _(
                "More quota would not help: cards are free, but scattered over nodes. Inference holds %(held)s until "
                "its services shrink."
            )
        lines.append(said % {"held": counted(resource, services)})
    if waits_first:
        gang = first or _("a gang of another tenant")
        lines.append(
            _("What the end of one gang frees would go to %(gang)s first, which comes before it in the order.")
            % {"gang": gang}
        )
    return lines


def waiting_line(total: int, top_code: str, top_count: int) -> str:
    """One line that answers the page's question: how many wait, and for what most of them do."""
    if not total:
        return _("No gang waits.")
    line = ngettext("%(n)s gang waits", "%(n)s gangs wait", total) % {"n": amounts.number(total)}
    if not top_code or top_count < 2:
        return f"{line}{_('.')}"
    return _("%(line)s; most often: %(reason)s (%(n)s).") % {
        "line": line,
        "n": amounts.number(top_count),
        "reason": str(reason_title(top_code)),
    }
