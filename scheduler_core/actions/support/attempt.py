"""One gang's attempt to take something back, and the record of it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from scheduler_core.algorithms.victims import Unit
from scheduler_core.framework.combine import Verdict
from scheduler_core.framework.gang_votes import GangVerdict
from scheduler_core.framework.session import Session
from scheduler_core.framework.statement import Statement
from scheduler_core.model.decision import Eviction, Reclaim, ReclaimVictimGang, Refusal, VictimRole, Vote
from scheduler_core.model.resources import Amount

# A record names at most so many candidates that were refused; in a large cluster nearly everybody is one.
MAX_REFUSED = 100


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


class Fall(msgspec.Struct, frozen=True, gc=False):
    """Who leaves for whom, task by task.

    Attributes:
        gang: the reclaimer. backed: its tasks that needed somebody to leave.
        leaving: tasks. over: whether a card of each is taken over by one of ``backed``.
        lost: work that each loses, milli-cards x milliseconds.
    """

    gang: int
    backed: Sequence[int]
    leaving: Sequence[int]
    over: Sequence[bool]
    lost: Sequence[int]


def record(
    session: Session, action: str, attempt: Attempt, work_lost: dict[int, int], *, rule: str = "", verb: str = ""
) -> None:
    """Write evictions and the reclaim down.

    Args:
        work_lost: milli-cards x milliseconds that each leaving task loses.
        rule, verb: what allowed it and what was done, in words; empty = reclaim's.
    """
    taken = {place for task in attempt.backed for place in _cards_held(session, task)}
    leaving = [task for unit in attempt.units for task in unit.members]
    over = [not taken.isdisjoint(_cards_held(session, task)) for task in leaving]
    fall = Fall(attempt.gang, attempt.backed, leaving, over, [work_lost[task] for task in leaving])
    votes = attempt.verdict.votes if attempt.verdict is not None else ()
    refused = tuple(Refusal(gang, why) for gang, why in sorted(attempt.refused.items())[:MAX_REFUSED])
    write_down(session, action, fall, rule=rule, verb=verb, votes=votes, refused=refused)


def write_down(
    session: Session,
    action: str,
    fall: Fall,
    *,
    rule: str = "",
    verb: str = "",
    votes: tuple[Vote, ...] = (),
    refused: tuple[Refusal, ...] = (),
) -> None:
    """Add the evictions and the reclaim to the trace; see :func:`record`."""
    tasks, gangs, trace = session.tasks, session.gangs, session.trace
    keys, pods, names = tasks.keys, tasks.pods, gangs.names
    reclaimer, queue = names[fall.gang], session.ledger.queues[session.queue_of(fall.gang)].name
    needed = total(session, fall.backed)
    what = ", ".join(f"{milli / 1000:g} x {card}" for card, milli in sorted(needed.cards.items())) or "cpu and memory"
    reason = f"{reclaimer} in queue {queue} {verb or 'takes back'} {what}"
    leaving, over, lost = fall.leaving, fall.over, fall.lost
    by_gang: dict[int, list[int]] = {}
    for place, gang in enumerate(tasks.gang[list(leaving)].tolist()):
        by_gang.setdefault(gang, []).append(place)
    freed = total(session, leaving)
    victims = []
    for gang in sorted(by_gang, key=names.__getitem__) if len(by_gang) > 1 else by_gang:
        places = sorted(by_gang[gang], key=lambda place: keys[leaving[place]])
        members = [leaving[place] for place in places]
        # The victims proper are those whose very cards are taken over; where no card is in play, those on the nodes.
        chosen = [leaving[place] for place in places if over[place]]
        if not chosen:
            nodes = set(tasks.node[list(fall.backed)].tolist())
            chosen = [task for task in members if int(tasks.node[task]) in nodes] or members[:1]
        name = names[gang]
        for task in members:
            pod = pods[task]
            assert pod is not None
            trace.evictions.append(
                Eviction(
                    pod=keys[task],
                    node=pod.node,
                    gang=name,
                    reclaimer=reclaimer,
                    action=action,
                    role=VictimRole.VICTIM if task in chosen else VictimRole.SIBLING,
                    reason=reason,
                )
            )
        victims.append(
            ReclaimVictimGang(
                gang=name,
                queue=gangs.groups[gang].queue,
                pods=tuple([keys[task] for task in members]),
                cards=freed.cards if len(by_gang) == 1 else cards_of(session, members),
                work_lost_card_seconds=round(sum([lost[place] for place in places]) / 1_000_000, 3),
            )
        )
    trace.reclaims.append(
        Reclaim(
            reclaimer=reclaimer,
            queue=queue,
            action=action,
            needed=needed,
            freed=freed,
            victims=tuple(victims),
            rule=rule
            or (
                f"{session.service_type(fall.gang).value} takes back from training within its own quota: "
                "whole gangs, lowest priority first, then least work lost"
            ),
            votes=votes,
            refused=refused,
        )
    )


def _cards_held(session: Session, task: int) -> list[tuple[int, int, int]]:
    """(node, card type, index) of each card of a task that has a place."""
    node, card = int(session.tasks.node[task]), int(session.tasks.card[task])
    return [(node, card, index) for index in session.tasks.indices[task]]


def total(session: Session, tasks: Sequence[int]) -> Amount:
    """CPU, memory and cards of tasks that have a place."""
    names, classes = session.axes.cards, session.cluster.classes.classes
    at = list(tasks)
    cpu = memory = 0
    cards: dict[str, int] = {}
    for index, card in zip(session.tasks.cls[at].tolist(), session.tasks.card[at].tolist(), strict=True):
        cls = classes[index]
        cpu += cls.cpu_milli
        memory += cls.memory_mib
        if card >= 0:
            cards[names[card]] = cards.get(names[card], 0) + cls.milli
    return Amount(cpu, memory, cards)


def cards_of(session: Session, tasks: Sequence[int]) -> dict[str, int]:
    """Milli-cards by type that tasks hold."""
    return total(session, tasks).cards
