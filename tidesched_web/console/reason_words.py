"""Where a number is missing the sentence falls back to one without it: a wrong figure is worse than none."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop, ngettext

from tidesched_web.common.permissions import Access
from tidesched_web.console import amounts
from tidesched_web.console.resource_words import how_many, in_bytes, resource_amount, resource_label

_BEGINS = "Cannot be scheduled as written: "
_MISTAKES: tuple[str, ...] = (
    gettext_noop("queue %(queue)s does not exist"),
    gettext_noop("queue %(queue)s does not exist; did you mean %(meant)s?"),
    gettext_noop("queue %(queue)s does not exist; there are %(known)s and %(n)s more"),
    gettext_noop("queue %(queue)s does not exist; there are %(known)s"),
    gettext_noop("queue %(queue)s has queues below it; gangs use one of those"),
    gettext_noop("asks for %(cards)s of one card; a share is at most one card"),
    gettext_noop(
        "asks for %(resource)s, which several cards offer, and queue %(queue)s has a card quota: name the card type on "
        "the pod, by the annotation volcano.sh/card.name or by a nodeSelector on the product label of the nodes"
    ),
    gettext_noop("annotation %(key)s: %(value)s is not one of %(known)s"),
    gettext_noop("annotation %(key)s: %(value)s is not an RFC 3339 time"),
    gettext_noop("members have priorities %(low)s and %(high)s; those of one group share one"),
)


# The words of each mistake, in their order, and the names of what stands between them.
_PLACE = re.compile(r"%\((\w+)\)s")
_WORDS = tuple((mistake, _PLACE.split(mistake)[::2], _PLACE.findall(mistake)) for mistake in _MISTAKES)


def _between(problem: str, words: Sequence[str]) -> list[str] | None:
    """Linear in the length, as a pattern is not: what a gang's annotation says has no bound of ours."""
    first, *others, last = words
    end = len(problem) - len(last)
    if not problem.startswith(first) or not problem.endswith(last):
        return None
    at, found = len(first), []
    for word in others:
        place = problem.find(word, at + 1, end)
        if place < 0:
            return None
        found.append(problem[at:place])
        at = place + len(word)
    return [*found, problem[at:end]] if at < end else None


def problem_in_words(message: str) -> str:
    if not message.startswith(_BEGINS):
        return message
    problem = message.removeprefix(_BEGINS).removesuffix(".")
    for mistake, words, names in _WORDS:
        found = _between(problem, words)
        if found is not None:
            problem = _(mistake) % dict(zip(names, found, strict=True))
            break
    if problem.endswith(("?", "？")):
        return _("Cannot be scheduled as written: %(question)s") % {"question": problem}
    return _("Cannot be scheduled as written: %(problem)s.") % {"problem": problem}


Numbers = Mapping[str, Any]


class OneOrMany(NamedTuple):
    one: str
    many: str
    by: str


def ngettext_noop(one: str, many: str, by: str) -> OneOrMany:
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


def reason_title(code: str) -> str | Promise:
    return TITLES.get(code, code)


def reason_sentence(code: str, numbers: Numbers) -> str:
    figures = figures_of(numbers)
    for needed, template in _SENTENCES.get(code, ()):
        if all(name in figures for name in needed):
            return said(template, figures)
    return str(reason_title(code))


def said(template: Promise | OneOrMany, figures: Mapping[str, Any]) -> str:
    if isinstance(template, OneOrMany):
        return ngettext(template.one, template.many, figures[f"{template.by}_n"]) % figures
    return str(template) % figures


def reason_detail(code: str, message: str) -> str:
    if code == "Misconfigured":
        return problem_in_words(message)
    return "" if code in _SENTENCES else message


def own_numbers(access: Access, numbers: Numbers | None) -> Numbers:
    """The numbers of a reason without who holds the cards, for a reader who may not see other tenants' gangs."""
    numbers = numbers or {}
    return numbers if access.everything else {name: value for name, value in numbers.items() if name != "holders"}


def figures_of(numbers: Numbers) -> dict[str, Any]:
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
    "BackingOff": (
        ((), gettext_lazy("It did not fit, or its promise was withdrawn: it is tried again after a pause.")),
    ),
    "PendingEvaluation": (((), gettext_lazy("The next session looks at it.")),),
}


# What a row of a list has room for beside the title; what is needed stands in the column before.
_BRIEF: dict[str, str | Promise] = {
    "ExceedsMaxQuota": "%(limit)s",
    "GangIncomplete": gettext_lazy("%(taken)s of %(limit)s"),
    "WaitingForQuota": gettext_lazy("%(taken)s of %(limit)s"),
    "WaitingForResources": "−%(short)s",
    "BehindHigherPriority": "#%(position)s",
    **dict.fromkeys(("WaitingForCards", "Fragmented", "ReclaimForbidden"), gettext_lazy("%(free)s free")),
}


def reason_brief(code: str, numbers: Numbers) -> str:
    figures = figures_of(numbers)
    there = figures.get("free", figures.get("allocated"))
    if code == "GangIncomplete" and there and "requested" in figures:
        figures |= {"taken": there, "limit": figures["requested"]}
    elif {"allocated", "inqueue"} <= figures.keys():
        figures["taken"] = resource_amount(numbers.get("resource"), numbers["allocated"] + numbers["inqueue"])
    try:
        return str(_BRIEF[code]) % figures
    except KeyError:
        return ""


def waiting_line(total: int, top_code: str, top_count: int) -> str:
    if not total:
        return _("No gang waits.")
    line = ngettext("%(n)s gang waits", "%(n)s gangs wait", total) % {"n": amounts.number(total)}
    if not top_code or top_count < 2:
        return line
    return _("%(line)s; most often: %(reason)s (%(n)s).") % {
        "line": line,
        "n": amounts.number(top_count),
        "reason": str(reason_title(top_code)),
    }
