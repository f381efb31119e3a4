"""The cheapest set of units that is enough, where only a trial can show what is enough.

For victims whose leaving frees more than room on nodes (their queue's quota, a spread, a device), so that nothing
shorter than trying it says whether a set will do. The order of preference is contracts 3.1: highest level as low as
possible, least work lost, fewest gangs, smallest surplus, names."""

import heapq
from collections.abc import Callable, Iterable, Sequence

from scheduler_core.algorithms.victims import Unit

Enough = Callable[[Sequence[Unit]], bool]
Start = Callable[[Sequence[Unit]], "list[Unit] | None"]
Cost = tuple[int, int, int, tuple[str, ...]]

# Up to so many units every set is tried, so that small cases are exact; beyond, only the cheapest sets.
_EXACT_POOL = 9
_MAX_POOL = 16
_MAX_TRIALS = 48


def cost(units: Iterable[Unit]) -> Cost:
    """Work lost, gangs, amount freed, names: what is compared between sets of one highest level."""
    chosen = list(units)
    return (
        sum(unit.work for unit in chosen),
        len({unit.gang for unit in chosen}),
        sum(unit.size for unit in chosen),
        tuple(sorted(unit.name for unit in chosen)),
    )


def go_together(chosen: Sequence[Unit], unit: Unit) -> bool:
    """May ``unit`` be taken beside the chosen ones: a gang whole, or not more members of it than it can spare?"""
    same = [other for other in chosen if other.gang == unit.gang]
    if not same:
        return True
    return bool(unit.spare) and all(other.spare for other in same) and len(same) < unit.spare


def everything(units: Iterable[Unit]) -> list[Unit]:
    """All units as if they could all go: a gang that may be evicted whole is, instead of member by member. An upper
    bound: of a gang that can only lose a few members all are counted, since which of them go is open."""
    units = list(units)
    whole = {unit.gang for unit in units if not unit.spare}
    return [unit for unit in units if not unit.spare or unit.gang not in whole]


def smallest_set(units: Sequence[Unit], enough: Enough, start: Start) -> list[Unit] | None:
    """The units to take, by name, or None when nothing is enough.

    Args:
        units: candidates. enough: tries a set; more is never worse. start: a set that is enough, found by looking
            where room is missing, or None. Only where it finds none is everything tried at once, which costs most.

    O(log levels + units of the start + a bounded number) trials."""
    levels = sorted({unit.level for unit in units})
    starts: dict[int, list[Unit] | None] = {}

    def pool(at: int) -> list[Unit]:
        return sorted((unit for unit in units if unit.level <= levels[at]), key=lambda unit: unit.name)

    def possible(at: int) -> bool:
        if at not in starts:
            starts[at] = start(pool(at))
        return starts[at] is not None or enough(everything(pool(at)))

    if not levels:
        return None
    low, high = 0, len(levels) - 1
    if possible(low):
        high = low
    elif high == low or not possible(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if possible(middle):
            high = middle
        else:
            low = middle + 1
    for at in range(low, len(levels)):
        if at not in starts:
            starts[at] = start(pool(at))
        first = starts[at]
        if first is None:
            first = _all_that_may_go(pool(at), enough)
        best = _search(pool(at), None if first is None else _reprieve(first, enough), enough)
        if best is not None:
            return sorted(best, key=lambda unit: unit.name)
    return None


def _all_that_may_go(pool: Sequence[Unit], enough: Enough) -> list[Unit] | None:
    chosen: list[Unit] = []
    for unit in everything(pool):
        if go_together(chosen, unit):
            chosen.append(unit)
    return chosen if enough(chosen) else None


def _reprieve(chosen: list[Unit], enough: Enough) -> list[Unit]:
    """Leave out the units that are not needed after all, the highest level and the most work first."""
    kept = list(chosen)
    for unit in sorted(chosen, key=lambda unit: (unit.level, unit.work, unit.size, unit.name), reverse=True):
        fewer = [other for other in kept if other is not unit]
        if enough(fewer):
            kept = fewer
    return kept


def _search(pool: Sequence[Unit], known: list[Unit] | None, enough: Enough) -> list[Unit] | None:
    """Sets in the order of work lost until none can be better than the best known; bounded in number."""
    best, limit = known, None if known is None else cost(known)
    useful = sorted(
        (unit for unit in pool if limit is None or unit.work <= limit[0]), key=lambda u: (u.work, u.size, u.name)
    )[:_MAX_POOL]
    trials = 1 << _EXACT_POOL if len(useful) <= _EXACT_POOL else _MAX_TRIALS
    heap: list[tuple[int, int, tuple[int, ...]]] = [(useful[0].work, 1, (0,))] if useful else []
    # Sets that cost less but go against each other are passed over without a trial.
    steps = trials * 8
    while heap and trials and steps:
        steps -= 1
        work, size, picks = heapq.heappop(heap)
        if limit is not None and work > limit[0]:
            break
        candidate = [useful[pick] for pick in picks]
        if all(go_together(candidate[:n], unit) for n, unit in enumerate(candidate)):
            price = cost(candidate)
            if limit is None or price < limit:
                trials -= 1
                if enough(candidate):
                    best, limit = candidate, price
        last = picks[-1]
        if last + 1 < len(useful):
            step = useful[last + 1].work
            heapq.heappush(heap, (work + step, size + 1, (*picks, last + 1)))
            heapq.heappush(heap, (work + step - useful[last].work, size, (*picks[:-1], last + 1)))
    return best
