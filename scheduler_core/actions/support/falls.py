"""Who falls for whom, kept as plain values until somebody reads the evictions and reclaims that this comes to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple

import msgspec

from scheduler_core.framework.session import Session
from scheduler_core.framework.trace import Account
from scheduler_core.model.decision import Eviction, Reclaim, ReclaimVictimGang, Refusal, VictimRole, Vote
from scheduler_core.model.podgroup import PodGroup
from scheduler_core.model.resources import Amount
from scheduler_core.model.rules import Rule
from scheduler_core.state.status import Index
from scheduler_core.state.task_class import TaskClass


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
    """Who leaves for whom.

    Attributes:
        gang: the reclaimer. backed: node, card type and class of its tasks that needed somebody to leave.
        leaving: who leaves. rule, verb: what allowed it and what was done, in words.
        votes: of the plugins. refused: candidates that were not taken.
    """

    gang: int
    backed: Sequence[tuple[int, int, int]]
    leaving: Sequence[Leaver]
    rule: str
    verb: str
    votes: tuple[Vote, ...]
    refused: tuple[Refusal, ...]


class Words(NamedTuple):
    """What the numbers mean: names of gangs, PodGroups, card types, task classes."""

    gangs: Sequence[str]
    groups: Sequence[PodGroup]
    cards: Sequence[str]
    classes: Sequence[TaskClass]


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


def tell(session: Session, action: str, falls: Sequence[Fall]) -> None:
    """Note evictions and reclaims; they are written when somebody reads them."""
    trace, gangs = session.trace, session.gangs
    words = Words(gangs.names, gangs.groups, session.axes.cards, session.cluster.classes.classes)
    count = sum(len(fall.leaving) for fall in falls)
    trace.accounts.append(Account(count, len(falls), partial(_write, action, falls, words)))
    trace.fallen.update(one.gang for fall in falls for one in fall.leaving)


def rule_of(session: Session, gang: int) -> str:
    """What allows a reclaim."""
    return Rule.TIDE.text(kind=session.service_type(gang).value)


def _write(action: str, falls: Sequence[Fall], words: Words) -> tuple[list[Eviction], list[Reclaim]]:
    evictions: list[Eviction] = []
    reclaims = [_written(action, fall, words, evictions) for fall in falls]
    return evictions, reclaims


def _written(action: str, fall: Fall, words: Words, evictions: list[Eviction]) -> Reclaim:
    """The record of a fall; its evictions come to the others."""
    reclaimer, queue = words.gangs[fall.gang], words.groups[fall.gang].queue
    needed = _total([(card, cls) for _, card, cls in fall.backed], words)
    what = ", ".join(f"{milli / 1000:g} x {card}" for card, milli in sorted(needed.cards.items())) or "cpu and memory"
    reason = f"{reclaimer} in queue {queue} {fall.verb or 'takes back'} {what}"
    freed = _total([(one.card, one.cls) for one in fall.leaving], words)
    by_gang: dict[int, list[Leaver]] = {}
    for one in fall.leaving:
        by_gang.setdefault(one.gang, []).append(one)
    victims = []
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
        cards = freed if len(by_gang) == 1 else _total([(one.card, one.cls) for one in members], words)
        victims.append(
            ReclaimVictimGang(
                gang=name,
                queue=words.groups[gang].queue,
                pods=tuple([one.pod for one in members]),
                cards=cards.cards,
                work_lost_card_seconds=round(sum([one.lost for one in members]) / 1_000_000, 3),
            )
        )
    return Reclaim(
        reclaimer=reclaimer,
        queue=queue,
        action=action,
        needed=needed,
        freed=freed,
        victims=tuple(victims),
        rule=fall.rule,
        votes=fall.votes,
        refused=fall.refused,
    )


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
