from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.console import amounts
from tidesched_web.console.reason_words import Numbers, Sentences, figures_of, ngettext_noop, said
from tidesched_web.console.resource_words import counted

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


def remedy_sentence(remedy: Numbers, *, admitted: bool = False, more: int = 0) -> str:
    change = remedy.get("change")
    if more:
        lead = ngettext("%(n)s more pod of it would start", "%(n)s more pods of it would start", more)
        lead %= {"n": amounts.number(more)}
    else:
        lead = _("It would be admitted") if admitted else _("It would start")
    if change == "quota" and remedy.get("by") is not None:
        words = _("%(lead)s if the quota of queue %(queue)s were %(what)s higher.")
        what = counted(remedy.get("card"), remedy["by"])
        return words % {"lead": lead, "queue": remedy.get("queue") or "–", "what": what}
    if change == "gang_ends":
        gang = remedy.get("gang") or _("a gang of another tenant")
        if remedy.get("waits"):
            words = _("%(lead)s if %(gang)s, which holds a promise and does not run, were withdrawn.")
        else:
            words = _("%(lead)s as soon as %(gang)s ends.")
        return words % {"lead": lead, "gang": gang}
    if change == "priority" and remedy.get("above") is not None:
        words = _("%(lead)s with a priority above %(above)s.")
        return words % {"lead": lead, "above": amounts.number(remedy["above"])}
    return ""


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
    if code in _OF_THE_GANG or code in _ON_ITS_WAY:
        return ""
    lacks = lacking(code, numbers, queue)
    if not lacks:
        return _("No single change that was tried helps.")
    return _("No single change that was tried helps: %(lacks)s") % {"lacks": lacks}


def lacking(code: str, numbers: Numbers, queue: str) -> str:
    figures = figures_of(numbers)
    short, resource = numbers.get("short"), numbers.get("resource")
    if not short:
        return ""
    figures |= {"queue": queue, "more": counted(resource, short)}
    for needed, template in _LACKING.get(_MISSING_OF.get(code, ""), ()):
        if all(figures.get(name) for name in needed):
            return said(template, figures)
    return ngettext("%(more)s is missing.", "%(more)s are missing.", figures["short_n"]) % figures


def in_the_way(code: str, numbers: Numbers, *, services: float, first: str, waits_first: bool) -> list[str]:
    resource, lines = numbers.get("resource"), []
    if services:
        words = _(
            "More quota would not help: the cards are in use. Inference holds %(held)s until its services shrink."
        )
        if code == "Fragmented":
            words = _(
                "More quota would not help: cards are free, but scattered over nodes. Inference holds %(held)s until "
                "its services shrink."
            )
        lines.append(words % {"held": counted(resource, services)})
    if waits_first:
        gang = first or _("a gang of another tenant")
        lines.append(
            _("What the end of one gang frees would go to %(gang)s first, which comes before it in the order.")
            % {"gang": gang}
        )
    return lines
