"""The English sentence of a reason; code and numbers are the contract, this is for reading."""

import difflib
from collections.abc import Sequence

from scheduler_core.model.card_names import nearest_card
from scheduler_core.model.reason import ReasonCode, ReasonNumbers
from scheduler_core.model.resources import MIB, in_mib

# So many known names are listed where none is near.
_NAMED = 8


def human(resource: str | None, amount: float | None) -> str:
    """An amount in human units: ``2 x NVIDIA-H200``, ``1.5 CPU cores``, ``512 MiB memory``."""
    value = amount or 0.0
    if resource == "cpu":
        return f"{value / 1000:g} CPU core{'' if value == 1000 else 's'}"
    if resource and in_mib(resource):
        mib = value / MIB
        return f"{mib / 1024:.4g} GiB {resource}" if mib >= 1024 else f"{mib:.4g} MiB {resource}"
    if resource == "pods":
        return f"{value:g} pod{'' if value == 1 else 's'}"
    return f"{value:.15g} x {resource or 'card'}"


def meant(name: str, known: Sequence[str]) -> str:
    """The known name that is spelt most like ``name``, as a question; else the known ones, a few of them."""
    folded = {other.casefold(): other for other in sorted(known, reverse=True)}
    near = difflib.get_close_matches(name.casefold(), sorted(folded), n=1)
    return _offered(folded[near[0]] if near else None, known)


def meant_card(name: str, known: Sequence[str]) -> str:
    """The same of a card, in whose place another model is never offered."""
    return _offered(nearest_card(name, known), known)


def _offered(near: str | None, known: Sequence[str]) -> str:
    if near is not None:
        return f"did you mean {near}?"
    if not known:
        return ""
    more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    return f"there are {', '.join(sorted(known)[:_NAMED])}{more}"


def sentence(code: ReasonCode, numbers: ReasonNumbers, queue: str, detail: str = "") -> str:
    """What a person reads."""
    resource = numbers.resource
    asked, short = human(resource, numbers.requested), human(resource, numbers.short)
    limit, used = human(resource, numbers.limit), human(resource, numbers.allocated)
    free, whose = human(resource, numbers.free), detail or f"queue {queue}"
    nodes = ", ".join(f"{reason}: {count}" for reason, count in sorted((numbers.nodes or {}).items()))
    texts = {
        ReasonCode.SUSPENDED: f"Suspended: {detail}.",
        ReasonCode.MISCONFIGURED: f"Cannot be scheduled as written: {detail}.",
        ReasonCode.NOT_SUPPORTED: (
            f"Waits because of {numbers.field}: "
            f"{detail or 'the scheduler does not act on this field, and binds no pod that has it'}."
        ),
        ReasonCode.NO_MATCHING_CARD: f"No node has the card {resource}{detail and '; ' + detail}.",
        ReasonCode.QUEUE_CLOSED: f"Queue {queue} is {detail} and takes no new work.",
        ReasonCode.EXCEEDS_MAX_QUOTA: f"Asks for {asked}, and {whose} may never use more than {limit}.",
        ReasonCode.GANG_INCOMPLETE: f"The gang is not complete: {detail}.",
        ReasonCode.WAITING_FOR_RECLAIM: f"Asks for {asked}, which is being taken back: {detail} for it.",
        ReasonCode.NOT_ALLOWED_IN_QUEUE: f"Namespace {detail} may not use queue {queue}.",
        ReasonCode.WAITING_FOR_QUOTA: (
            f"Asks for {asked}; {whose} uses {used} of {limit}"
            + (f" and has promised {human(resource, numbers.inqueue)}" if numbers.inqueue else "")
            + f": {short} short."
        ),
        ReasonCode.OVER_COMMITTED: (
            f"Asks for {asked}; {used} in use and {human(resource, numbers.inqueue)} promised "
            f"of {limit} that the cluster gives out: {short} short."
        ),
        ReasonCode.WAITING_FOR_CARDS: f"Asks for {asked}; {free} free in the cluster: {short} short.",
        ReasonCode.NO_NODE_MATCHES: f"No node can take it ({nodes}).",
        ReasonCode.WAITING_FOR_RESOURCES: (
            f"Asks for {asked}; where its pods may run, {free} can be used: {short} short"
            + (f" ({nodes})." if nodes else ".")
        ),
        ReasonCode.FRAGMENTED: f"Asks for {asked}; {free} free, but not together where it needs them: {short} short.",
        ReasonCode.BEHIND_HIGHER_PRIORITY: f"Asks for {asked}; {free} free, but promised to gangs ahead of it.",
        ReasonCode.RECLAIM_FORBIDDEN: f"May not take anything back: {detail}.",
        ReasonCode.TIMED_OUT: f"It was let go: {detail}.",
        ReasonCode.BACKING_OFF: f"It waits before it is tried again: {detail}.",
        ReasonCode.PENDING_EVALUATION: detail or "Has not been looked at yet; the next session decides.",
    }
    # A detail may end in a question.
    return texts.get(code, detail or code.value).replace("?.", "?")
