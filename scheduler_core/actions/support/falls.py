"""Which gangs are evicted for which, kept as plain values until the evictions and reclaims are read."""

from collections.abc import Sequence
from functools import partial
from operator import attrgetter

import msgspec

from scheduler_core.actions.support.receipts import CARD_SECOND, Fallen, Looked, Move, Use, Words, candidates, moments
from scheduler_core.framework.session import Session
from scheduler_core.framework.trace import Account
from scheduler_core.model.decision import (
    Candidate,
    Eviction,
    QueueMoment,
    Reclaim,
    ReclaimVictimGang,
    Refusal,
    VictimRole,
    Vote,
)
from scheduler_core.model.resources import Amount
from scheduler_core.model.rules import Rule
from scheduler_core.state.status import Index


class Leaver(msgspec.Struct, frozen=True, gc=False):
    """A task that leaves: its pod and the name of its node, gang, node, card type and class by position; whether one of
    its cards is taken over; the work that it loses, milli-cards x milliseconds."""

    pod: str
    home: str
    gang: int
    node: int
    card: int
    cls: int
    over: bool
    lost: int


class Fall(msgspec.Struct, frozen=True, gc=False):
    """Which gangs leave for which claimant: one record.

    Attributes:
        gang: the reclaimer. backed: node, card type and class of its tasks that needed a victim to leave.
        leaving: who leaves. rule, verb: what allowed it and what was done, in words.
        votes: of the plugins. refused: candidates that were not taken.
        placed: card type and class of all tasks of the reclaimer that got a place with it.
        looked: who came into question beside those that leave.
        since: what others gained or lost between the record before and this one."""

    gang: int
    backed: Sequence[tuple[int, int, int]]
    leaving: Sequence[Leaver]
    rule: str
    verb: str
    votes: tuple[Vote, ...]
    refused: tuple[Refusal, ...]
    placed: Sequence[tuple[int, int]]
    looked: Looked
    since: Sequence[Move] = ()


def leavers(session: Session, at: Index, over: Sequence[bool], lost: Sequence[int]) -> list[Leaver]:
    """The given tasks as they are now."""
    tasks, slots = session.tasks, at.tolist()
    pods = [tasks.pods[slot] for slot in slots]
    return list(
        map(
            Leaver,
            [tasks.keys[slot] for slot in slots],
            ["" if pod is None else pod.node for pod in pods],
            tasks.gang[at].tolist(),
            tasks.node[at].tolist(),
            tasks.card[at].tolist(),
            tasks.cls[at].tolist(),
            over,
            lost,
        )
    )


def record_evictions(session: Session, action: str, falls: Sequence[Fall], later: Sequence[Move] = ()) -> None:
    """Note evictions and reclaims; they are written when they are read. ``later``: what others have gained since the
    last record."""
    trace, gangs, ledger = session.trace, session.gangs, session.ledger
    words = Words(
        gangs.names, gangs.groups, session.axes.cards, session.cluster.classes.classes, ledger.queues, ledger.index,
        session.axes,
    )  # fmt: skip
    fallen = {one.gang for fall in falls for one in fall.leaving}
    moved = {session.queue_of(gang) for gang in fallen.union(fall.gang for fall in falls)}
    use = Use(session, moved - {-1})
    count = sum(len(fall.leaving) for fall in falls)
    trace.accounts.append(Account(count, len(falls), partial(_write, action, falls, words, use, later)))
    trace.fallen.update(fallen)


def rule_of(session: Session, gang: int) -> str:
    return Rule.TIDE.text(kind=session.service_type(gang).value)


def _write(
    action: str, falls: Sequence[Fall], words: Words, use: Use, later: Sequence[Move]
) -> tuple[list[Eviction], list[Reclaim]]:
    evictions: list[Eviction] = []
    then: list[tuple[QueueMoment, ...]] = []
    use.undo(later)
    for fall in reversed(falls):
        then.append(moments(use, _moves(fall, words), words))
        use.undo(fall.since)
    queues = reversed(then)
    reclaims = [_written(action, fall, words, evictions, at) for fall, at in zip(falls, queues, strict=True)]
    return evictions, reclaims


def _moves(fall: Fall, words: Words) -> list[Move]:
    """What the queues gain and lose by a record."""
    own = words.queue_of(fall.gang)
    gained = [Move(own, card, cls, 1) for card, cls in fall.placed]
    return gained + [Move(words.queue_of(one.gang), one.card, one.cls, -1) for one in fall.leaving]


def _written(
    action: str, fall: Fall, words: Words, evictions: list[Eviction], queues: tuple[QueueMoment, ...]
) -> Reclaim:
    """The reclaim as it is written; its evictions come to the others."""
    reclaimer, queue = words.gangs[fall.gang], words.groups[fall.gang].queue
    needed = _total([(card, cls) for _, card, cls in fall.backed], words)
    what = ", ".join(f"{milli / 1000:g} x {card}" for card, milli in sorted(needed.cards.items())) or "cpu and memory"
    reason = f"{reclaimer} in queue {queue} {fall.verb or 'takes back'} {what}"
    freed = _total([(one.card, one.cls) for one in fall.leaving], words)
    by_gang: dict[int, list[Leaver]] = {}
    for one in fall.leaving:
        by_gang.setdefault(one.gang, []).append(one)
    victims, fallen = [], []
    for gang in sorted(by_gang, key=words.gangs.__getitem__) if len(by_gang) > 1 else by_gang:
        name, members = words.gangs[gang], sorted(by_gang[gang], key=attrgetter("pod"))
        chosen = _chosen(members, fall)
        evictions += [
            Eviction(
                pod=one.pod,
                node=one.home,
                gang=name,
                reclaimer=reclaimer,
                action=action,
                role=VictimRole.VICTIM if one.pod in chosen else VictimRole.SIBLING,
                reason=reason,
            )
            for one in members
        ]
        held = freed if len(by_gang) == 1 else _total([(one.card, one.cls) for one in members], words)
        lost, level = sum([one.lost for one in members]), words.level(gang)
        frees = sum(held.cards.values()) if needed.cards else held.cpu_milli
        fallen.append(Fallen(gang, level, lost, frees))
        victims.append(
            ReclaimVictimGang(
                gang=name,
                queue=words.groups[gang].queue,
                pods=tuple([one.pod for one in members]),
                cards=held.cards,
                work_lost_card_seconds=round(lost / CARD_SECOND, 3),
                queue_priority=level[0],
                priority=level[1],
                last_restart=words.groups[gang].last_restart,
            )
        )
    shown, more = candidates(fall.looked, fallen, words)
    return Reclaim(
        reclaimer=reclaimer, queue=queue, action=action, needed=needed, freed=freed, victims=tuple(victims),
        rule=fall.rule, votes=fall.votes, refused=_with_figures(fall.refused, shown), queues=queues, candidates=shown,
        more_candidates=more,
    )  # fmt: skip


def _with_figures(refused: tuple[Refusal, ...], shown: Sequence[Candidate]) -> tuple[Refusal, ...]:
    """Where room decided, the same sentence as the candidate's, with its figures."""
    said = {one.gang: one.rule for one in shown if one.alone is not None}
    return tuple([Refusal(one.gang, said[one.gang]) if one.gang in said else one for one in refused])


def _chosen(members: Sequence[Leaver], fall: Fall) -> set[str]:
    """The victims proper: whose very cards are taken over; where no card is in play, those on the nodes."""
    chosen = {one.pod for one in members if one.over}
    if not chosen:
        nodes = {node for node, _, _ in fall.backed}
        chosen = {one.pod for one in members if one.node in nodes} or {members[0].pod}
    return chosen


def _total(held: Sequence[tuple[int, int]], words: Words) -> Amount:
    """CPU, memory and cards of tasks, given the card type and the class of each."""
    cpu = memory = 0
    cards: dict[str, int] = {}
    for card, index in held:
        cls = words.classes[index]
        cpu += cls.cpu_milli
        memory += cls.memory_mib
        if card >= 0:
            name = words.cards[card]
            cards[name] = cards.get(name, 0) + cls.milli
    return Amount(cpu, memory, cards)
