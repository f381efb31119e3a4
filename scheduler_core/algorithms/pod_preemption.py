"""Which node to preempt on: the rules of the per-pod cycle, in order. Source: document 001, 3.3.5, with the fifth rule
as Kubernetes has it (latest start of the most important victim)."""

from collections.abc import Sequence

import msgspec

# Added to each priority before they are summed, so that fewer victims are never worse for having low priorities.
_SHIFT = 1 << 31


class Victim(msgspec.Struct, frozen=True, gc=False):
    """A pod that would leave: its name, its priority, when it started, and whether a disruption budget forbids it."""

    task: int
    name: str
    priority: int
    started: float
    violates: bool


def node_order(name: str, victims: Sequence[Victim]) -> tuple[int, int, int, int, float, str]:
    """Sort key of a candidate node, the best first. Fewest violated budgets, lowest top priority, lowest sum of
    priorities, fewest victims, latest start of the earliest started victim of top priority, first name."""
    top = max((victim.priority for victim in victims), default=-_SHIFT)
    earliest = min((victim.started for victim in victims if victim.priority == top), default=0.0)
    return (
        sum(victim.violates for victim in victims),
        top,
        sum(victim.priority + _SHIFT for victim in victims),
        len(victims),
        -earliest,
        name,
    )


def importance(victim: Victim) -> tuple[int, float, str]:
    """Sort key of victims, the most important first: the higher priority, then the earlier start, then the first
    name."""
    return -victim.priority, victim.started, victim.name


def reprieve_order(victims: Sequence[Victim]) -> list[Victim]:
    """Whom to try to keep first: those that a budget protects, then the others, each by importance."""
    return sorted(victims, key=lambda victim: (not victim.violates, *importance(victim)))
