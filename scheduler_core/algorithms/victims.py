"""Which gangs have to leave so that several equal tasks fit: a small search over all nodes at once.

The order of preference is contracts 3.1: highest victim priority as low as possible, least work lost, fewest gangs,
smallest surplus, names. Greedy in that order, then a reprieve pass, then a bounded search for something better, which
is exact when few gangs come into question. All amounts are integers; every choice ends in names.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import msgspec

_WHOLE = 1000
# Up to so many units the final search sees every set, so that small cases are exact; beyond, only the cheapest sets of
# the cheapest units, so that large ones stay quick.
_EXACT_POOL = 9
_MAX_POOL = 24
_MAX_TESTS = 128

Cost = tuple[int, int, int, tuple[str, ...]]


class Room(msgspec.Struct, frozen=True, gc=False):
    """What a node has left: ``free`` by requested resource, ``cards`` the free milli-cards of each card by option."""

    free: tuple[int, ...]
    cards: tuple[tuple[int, ...], ...]


class Freed(msgspec.Struct, frozen=True, gc=False):
    """What a unit gives back on a node; ``cards`` by option: (card, milli-cards)."""

    free: tuple[int, ...]
    cards: tuple[tuple[tuple[int, int], ...], ...]


class Unit(msgspec.Struct, frozen=True, gc=False):
    """Something that can be taken: a whole gang, or one member of a gang's surplus.

    Attributes:
        name: of the gang, or of the pod; unique. gang: of the gang.
        level: queue priority, gang priority. work: work lost.
        size: milli-cards (milli-cores without cards) freed in all.
        members: ids of the tasks that leave, for the caller. frees: by node.
        spare: 0 for a whole gang, else how many single members of the gang may go.
    """

    name: str
    gang: str
    level: tuple[int, int]
    work: int
    size: int
    members: tuple[int, ...]
    frees: dict[int, Freed]
    spare: int = 0


class Puzzle:
    """Find units whose leaving makes room for ``count`` equal tasks.

    Args:
        request: amounts by requested resource (all > 0). whole, share: cards needed entirely, or milli-cards of one.
        limits: how many tasks the quota allows on each option (one entry when no card is asked for).
        rooms: nodes in question. units: candidates; put in order of name.
    """

    def __init__(
        self,
        request: Sequence[int],
        whole: int,
        share: int,
        limits: Sequence[int],
        rooms: dict[int, Room],
        units: Iterable[Unit],
    ) -> None:
        self._request, self._whole, self._share, self._limits = tuple(request), whole, share, tuple(limits)
        self._rooms = rooms
        self.units = sorted(units, key=lambda unit: unit.name)
        self._on_node: dict[int, list[int]] = {}
        for i, unit in enumerate(self.units):
            for node in unit.frees:
                if node in rooms:
                    self._on_node.setdefault(node, []).append(i)
        self._memo: dict[tuple[int, tuple[int, ...]], tuple[int, ...]] = {}
        self.tests = 0

    def most(self) -> int:
        """How many tasks would fit if every unit left; more than that is out of reach.

        An upper bound: of a gang that can only lose a few members all are counted, since which of them go is open.
        """
        return self._total(self._everything(max(self._levels(), default=(0, 0)), bound=True))

    def solve(self, count: int) -> list[Unit] | None:
        """The units to take for ``count`` tasks, by name, or None when nothing is enough."""
        for level in self._levels():
            if self._total(self._everything(level, bound=True)) < count:
                continue
            pool = [i for i, unit in enumerate(self.units) if unit.level <= level]
            greedy = self._greedy(pool, count)
            chosen = self._search(pool, None if greedy is None else self._reprieve(greedy, count), count)
            if chosen is not None:
                return [self.units[i] for i in sorted(chosen)]
        return None

    # Feasibility -----------------------------------------------------------------------------------------------

    def _levels(self) -> list[tuple[int, int]]:
        return sorted({unit.level for unit in self.units})

    def _everything(self, level: tuple[int, int], *, bound: bool = False) -> list[int]:
        """All units up to a level; a gang that may fall whole does, instead of member by member.

        With ``bound`` also more single members of a gang than may go together.
        """
        whole = {unit.gang for unit in self.units if not unit.spare and unit.level <= level}
        chosen, singles = [], dict[str, int]()
        for i, unit in enumerate(self.units):
            if unit.level > level or (unit.spare and unit.gang in whole):
                continue
            if unit.spare:
                singles[unit.gang] = singles.get(unit.gang, 0) + 1
                if singles[unit.gang] > unit.spare and not bound:
                    continue
            chosen.append(i)
        return chosen

    def _total(self, chosen: Sequence[int]) -> int:
        """Tasks that fit once the chosen units have left."""
        by_node: dict[int, list[int]] = {}
        for i in sorted(chosen):
            for node in self.units[i].frees:
                if node in self._rooms:
                    by_node.setdefault(node, []).append(i)
        sums = [0] * len(self._limits)
        for node, there in by_node.items():
            for option, fits in enumerate(self._capacity(node, tuple(there))):
                sums[option] += fits
        return sum(min(fits, limit) for fits, limit in zip(sums, self._limits, strict=True))

    def _capacity(self, node: int, chosen: tuple[int, ...]) -> tuple[int, ...]:
        """Tasks that fit on one node, by option."""
        known = self._memo.get((node, chosen))
        if known is not None:
            return known
        room = self._rooms[node]
        free = list(room.free)
        cards = [list(of_option) for of_option in room.cards]
        for i in chosen:
            freed = self.units[i].frees[node]
            for row, amount in enumerate(freed.free):
                free[row] += amount
            for option, given in enumerate(freed.cards):
                for card, milli in given:
                    cards[option][card] += milli
        left = min((have // need for have, need in zip(free, self._request, strict=True)), default=1 << 30)
        left = max(left, 0)
        if not room.cards:
            answer: tuple[int, ...] = (min(left, self._limits[0]),)
        else:
            counts = []
            for option, of_option in enumerate(cards):
                if self._share:
                    fits = sum(max(milli, 0) // self._share for milli in of_option)
                else:
                    fits = sum(1 for milli in of_option if milli >= _WHOLE) // self._whole
                fits = min(fits, left, self._limits[option])
                left -= fits
                counts.append(fits)
            answer = tuple(counts)
        self._memo[(node, chosen)] = answer
        return answer

    def _fits(self, chosen: Sequence[int], unit: int) -> bool:
        """May ``unit`` be taken beside the chosen ones (whole gang or members of it, and not too many)?"""
        new = self.units[unit]
        same = [self.units[i] for i in chosen if self.units[i].gang == new.gang]
        if not same:
            return True
        return bool(new.spare) and all(other.spare for other in same) and len(same) < new.spare

    # Search ----------------------------------------------------------------------------------------------------

    def cost(self, chosen: Iterable[int]) -> Cost:
        """Work lost, gangs, milli-cards freed, names: what is compared between sets of one highest level."""
        units = [self.units[i] for i in sorted(chosen)]
        return (
            sum(unit.work for unit in units),
            len({unit.gang for unit in units}),
            sum(unit.size for unit in units),
            tuple(unit.name for unit in units),
        )

    def _greedy(self, pool: list[int], count: int) -> list[int] | None:
        """Node by node: each time the cheapest units that let one more task fit somewhere."""
        allowed = set(pool)
        chosen: list[int] = []
        offers: dict[int, tuple[Cost, list[int]] | None] = {}
        while self._total(chosen) < count:
            best: tuple[Cost, int, list[int]] | None = None
            for node in sorted(self._on_node):
                if node not in offers:
                    offers[node] = self._offer(node, chosen, allowed)
                offer = offers[node]
                if offer is not None and (best is None or (offer[0], node) < best[:2]):
                    best = (offer[0], node, offer[1])
            if best is None:
                everything = self._everything(max(self.units[i].level for i in pool))
                return everything if self._total(everything) >= count else None
            chosen += best[2]
            gangs = {self.units[i].gang for i in best[2]}
            for i in pool:
                if self.units[i].gang in gangs:
                    for node in self.units[i].frees:
                        offers.pop(node, None)
        return chosen

    def _offer(self, node: int, chosen: list[int], allowed: set[int]) -> tuple[Cost, list[int]] | None:
        """The cheapest units found on a node that let one more task fit there."""
        taken = [i for i in self._on_node[node] if i in chosen]
        before = sum(self._capacity(node, tuple(taken)))
        rest = [i for i in self._on_node[node] if i in allowed and i not in chosen]
        rest.sort(key=lambda i: (self.units[i].work, self.units[i].size, i))
        added: list[int] = []
        for i in rest:
            if not self._fits([*chosen, *added], i):
                continue
            if sum(self._capacity(node, tuple(sorted([*taken, i])))) > before:
                added = [i]
                break
            added.append(i)
            if sum(self._capacity(node, tuple(sorted([*taken, *added])))) > before:
                break
        else:
            return None
        for i in sorted(added, key=lambda i: (-self.units[i].work, i)):
            fewer = [j for j in added if j != i]
            if fewer and sum(self._capacity(node, tuple(sorted([*taken, *fewer])))) > before:
                added = fewer
        return self.cost(added), added

    def _reprieve(self, chosen: list[int], count: int) -> list[int]:
        """Leave out whoever is not needed after all, the highest level and the most work first."""
        kept = list(chosen)
        order = sorted(chosen, key=lambda i: (self.units[i].level, self.units[i].work, i), reverse=True)
        for i in order:
            fewer = [j for j in kept if j != i]
            if self._total(fewer) >= count:
                kept = fewer
        return kept

    def _search(self, pool: list[int], chosen: list[int] | None, count: int) -> list[int] | None:
        """Sets in the order of work lost until none can be better than the best known; bounded in number."""
        best, limit = chosen, None if chosen is None else self.cost(chosen)
        useful = [
            i
            for i in pool
            if (limit is None or self.units[i].work <= limit[0]) and any(n in self._rooms for n in self.units[i].frees)
        ]
        useful.sort(key=lambda i: (self.units[i].work, self.units[i].size, i))
        useful = useful[:_MAX_POOL]
        heap: list[tuple[int, int, tuple[int, ...]]] = []
        if useful:
            heap.append((self.units[useful[0]].work, 1, (0,)))
        tests = 0
        most = 1 << _EXACT_POOL if len(useful) <= _EXACT_POOL else _MAX_TESTS
        while heap and tests < most:
            work, size, picks = heapq.heappop(heap)
            if limit is not None and work > limit[0]:
                break
            tests += 1
            candidate = [useful[p] for p in picks]
            if all(self._fits(candidate[:n], i) for n, i in enumerate(candidate)):
                price = self.cost(candidate)
                if (limit is None or price < limit) and self._total(candidate) >= count:
                    best, limit = candidate, price
            last = picks[-1]
            if last + 1 < len(useful):
                step = self.units[useful[last + 1]].work
                heapq.heappush(heap, (work + step, size + 1, (*picks, last + 1)))
                heapq.heappush(heap, (work + step - self.units[useful[last]].work, size, (*picks[:-1], last + 1)))
        self.tests += tests
        return best
