"""Who holds which cards for how long, kept from the world's changes."""

import msgspec

from scheduler_core.model.pod import Pod
from scheduler_core.model.resources import MILLI
from scheduler_core.simulator.changes import Cause, Change
from scheduler_core.simulator.saturation import Saturation
from scheduler_core.simulator.world import World

_HOUR = 3600.0


class Holding(msgspec.Struct, frozen=True, gc=False):
    """One pod on its cards: since when, which type and how many milli-cards, for which queue and gang."""

    since: float
    card: str
    milli: int
    queue: str
    gang: str
    service_type: str


class Usage:
    """Cards in use, by card type and by queue.

    Attributes:
        capacity: milli-cards by type. taken: milli-cards that pods hold, those that are leaving included.
        charged: queue -> card type -> milli-cards that count against its quota (not those that are leaving).
        saturation: for how long types are as good as full.
        held_seconds: service type -> card-seconds so far. lost_seconds: card-seconds of lives that an eviction ended.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.capacity: dict[str, int] = {}
        for node in world.nodes.values():
            for group in node.cards:
                self.capacity[group.card] = self.capacity.get(group.card, 0) + group.count * MILLI
        self.taken = dict.fromkeys(sorted(self.capacity), 0)
        self.saturation = Saturation(self.capacity, world.t)
        self.charged: dict[str, dict[str, int]] = {}
        self.touched: set[str] = set()
        self.held_seconds = {"inference": 0.0, "training": 0.0}
        self.lost_seconds = 0.0
        self._holdings: dict[str, Holding] = {}
        self._leaving: set[str] = set()
        world.subscribe(self._heard)

    def _heard(self, change: Change) -> None:
        if change.kind != "Pod":
            return
        if change.cause is Cause.BOUND:
            self._bound(change.value)
        elif change.verb == "delete" or change.cause is Cause.FINISHED:
            self._freed(change.key)
        elif change.value.deleted is not None and change.key not in self._leaving:
            self._left(change.key, change.cause)

    def _bound(self, pod: Pod) -> None:
        group = self._world.pod_groups[pod.group_key]
        card, indices = self._world.placements[pod.key]
        milli = pod.card.milli if pod.card is not None and indices else 0
        holding = Holding(self._world.t, card, milli, group.queue, group.key, group.service_type)
        self._holdings[pod.key] = holding
        if milli:
            self._take(card, milli)
            self._charge(holding, milli)

    def _left(self, key: str, cause: Cause) -> None:
        holding = self._holdings.get(key)
        if holding is None:
            return
        self._leaving.add(key)
        self._charge(holding, -holding.milli)
        if cause in (Cause.EVICTED, Cause.KILLED):
            # Its cards do no work until the grace is over, too.
            self.lost_seconds += holding.milli / MILLI * (self._world.t + self._world.grace_seconds - holding.since)

    def _freed(self, key: str) -> None:
        holding = self._holdings.pop(key, None)
        if holding is None:
            return
        if key in self._leaving:
            self._leaving.discard(key)
        else:
            self._charge(holding, -holding.milli)
        if holding.milli:
            self._take(holding.card, -holding.milli)
            self._hold(holding)

    def _take(self, card: str, milli: int) -> None:
        self.taken[card] += milli
        self.saturation.taken(card, self.taken[card], self._world.t)

    def _charge(self, holding: Holding, milli: int) -> None:
        if milli:
            cards = self.charged.setdefault(holding.queue, {})
            cards[holding.card] = cards.get(holding.card, 0) + milli
            self.touched.add(holding.queue)

    def _hold(self, holding: Holding) -> None:
        seconds = holding.milli / MILLI * (self._world.t - holding.since)
        self.held_seconds[holding.service_type] = self.held_seconds.get(holding.service_type, 0.0) + seconds

    def close(self) -> None:
        self.saturation.bring_up(self._world.t)
        for key in list(self._holdings):
            self._freed(key)

    def hours(self) -> dict[str, float]:
        return {name: seconds / _HOUR for name, seconds in sorted(self.held_seconds.items())}
