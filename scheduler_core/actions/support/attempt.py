"""One gang's attempt to take something back, and the record of it."""

from __future__ import annotations

from scheduler_core.actions.support.victims import cards_of
from scheduler_core.algorithms.victims import Unit
from scheduler_core.framework.combine import Verdict
from scheduler_core.framework.gang_votes import GangVerdict
from scheduler_core.framework.session import Session
from scheduler_core.framework.statement import Statement
from scheduler_core.model.decision import Eviction, Reclaim, ReclaimVictimGang, Refusal, VictimRole
from scheduler_core.model.resources import Amount

# A record names at most so many candidates that were refused; in a large cluster nearly everybody is one.
_MAX_REFUSED = 100


class Attempt:
    """What one gang's reclaim has gathered so far.

    Attributes:
        units: who leaves. placed: tasks that have a place; backed: those of them that needed somebody to leave.
        verdict: the plugins' votes. refused: rule by candidate gang.
        touched: gangs that were taken at some point of the attempt, also those that were let go again.
    """

    def __init__(self, gang: int, statement: Statement) -> None:
        self.gang, self.statement = gang, statement
        self.units: list[Unit] = []
        self.placed: list[int] = []
        self.backed: list[int] = []
        self.verdict: Verdict | GangVerdict | None = None
        self.refused: dict[str, str] = {}
        self.touched: dict[int, None] = {}


def record(
    session: Session, action: str, attempt: Attempt, work_lost: dict[int, int], *, rule: str = "", verb: str = ""
) -> None:
    """Write evictions and the reclaim down.

    Args:
        work_lost: milli-cards x milliseconds that each leaving task loses.
        rule, verb: what allowed it and what was done, in words; empty = reclaim's.
    """
    tasks, names = session.tasks, session.gangs.names
    reclaimer = names[attempt.gang]
    queue = session.ledger.queues[session.queue_of(attempt.gang)].name
    taken = {place for task in attempt.backed for place in _cards_held(session, task)}
    nodes = {int(tasks.node[task]) for task in attempt.backed}
    by_gang: dict[str, list[int]] = {}
    for unit in attempt.units:
        by_gang.setdefault(unit.gang, []).extend(unit.members)
    needed = total(session, attempt.backed)
    what = ", ".join(f"{milli / 1000:g} x {card}" for card, milli in sorted(needed.cards.items())) or "cpu and memory"
    victims = []
    for name, members in sorted(by_gang.items()):
        gang = int(tasks.gang[members[0]])
        members.sort(key=tasks.keys.__getitem__)
        # The victims proper are those whose very cards are taken over; where no card is in play, those on the nodes.
        chosen = [task for task in members if not taken.isdisjoint(_cards_held(session, task))]
        chosen = chosen or [task for task in members if int(tasks.node[task]) in nodes] or members[:1]
        for task in members:
            session.trace.evictions.append(
                Eviction(
                    pod=tasks.keys[task],
                    node=tasks.pod(task).node,
                    gang=name,
                    reclaimer=reclaimer,
                    action=action,
                    role=VictimRole.VICTIM if task in chosen else VictimRole.SIBLING,
                    reason=f"{reclaimer} in queue {queue} {verb or 'takes back'} {what}",
                )
            )
        victims.append(
            ReclaimVictimGang(
                gang=name,
                queue=session.group(gang).queue,
                pods=tuple(tasks.keys[task] for task in members),
                cards=cards_of(session, tuple(members)),
                work_lost_card_seconds=round(sum(work_lost[task] for task in members) / 1_000_000, 3),
            )
        )
    verdict = attempt.verdict
    session.trace.reclaims.append(
        Reclaim(
            reclaimer=reclaimer,
            queue=queue,
            action=action,
            needed=needed,
            freed=total(session, [task for members in by_gang.values() for task in members]),
            victims=tuple(victims),
            rule=rule
            or (
                f"{session.service_type(attempt.gang).value} takes back from training within its own quota: "
                "whole gangs, lowest priority first, then least work lost"
            ),
            votes=verdict.votes if verdict is not None else (),
            refused=tuple(Refusal(gang, rule) for gang, rule in sorted(attempt.refused.items())[:_MAX_REFUSED]),
        )
    )


def _cards_held(session: Session, task: int) -> list[tuple[int, int, int]]:
    """(node, card type, index) of each card of a task that has a place."""
    node, card = int(session.tasks.node[task]), int(session.tasks.card[task])
    return [(node, card, index) for index in session.tasks.indices[task]]


def total(session: Session, tasks: list[int]) -> Amount:
    """CPU, memory and cards of tasks that have a place."""
    classes = [session.cluster.class_of(task) for task in tasks]
    return Amount(
        sum(cls.cpu_milli for cls in classes),
        sum(cls.memory_mib for cls in classes),
        cards_of(session, tuple(tasks)),
    )
