"""The tide table: who may take back from whom. Source: document 000, volcano-semantics 4.11, contracts 3.2."""

from scheduler_core.model.pod import ServiceType
from scheduler_core.model.rules import Rule


def may_reclaim(reclaimer: ServiceType, *, unknown_allowed: bool = False) -> bool:
    """True when a gang of this service type takes back from any other at all."""
    return reclaimer is ServiceType.INFERENCE or (unknown_allowed and reclaimer is ServiceType.UNKNOWN)


def refusal(reclaimer: ServiceType, victim: ServiceType, *, unknown_allowed: bool = False) -> str | None:
    """The rule that protects the victim, or None when it may be taken."""
    if not may_reclaim(reclaimer, unknown_allowed=unknown_allowed):
        return Rule.TIDE_TAKER.text(kind=reclaimer.value)
    if victim is not ServiceType.TRAINING:
        return Rule.TIDE_VICTIM.text(kind=victim.value)
    return None
