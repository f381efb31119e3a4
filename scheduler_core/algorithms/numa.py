"""Whole CPUs of one node by NUMA cell: which cells a container would get, and which CPUs. Source: volcano-semantics
4.12 (numa-aware); the kubelet's topology manager (hints, policies) and static CPU manager."""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

import msgspec

from scheduler_core.model.observed import NumaTopology
from scheduler_core.model.resources import MILLI

# Every combination of cells is looked at; real machines have at most eight.
MOST_CELLS = 8
BEST_EFFORT, RESTRICTED, SINGLE = "best-effort", "restricted", "single-numa-node"


class Hint(msgspec.Struct, frozen=True):
    """Cells that would do together; preferred when no smaller number of cells could ever do."""

    cells: tuple[int, ...]
    preferred: bool


def unreserved(topology: NumaTopology) -> frozenset[int]:
    """CPUs that containers may have to themselves: the free ones, less those that the system keeps."""
    kept = -(-topology.reserved_milli // MILLI)
    reserved = take(topology, topology.cells, kept)
    return frozenset(topology.free) - frozenset(reserved or ())


def hints(topology: NumaTopology, free: frozenset[int], count: int) -> list[Hint]:
    """All combinations of cells with ``count`` free CPUs, fewest cells first, then lowest numbers."""
    cells = sorted(set(topology.cells.values()))[:MOST_CELLS]
    size = dict.fromkeys(cells, 0)
    there = dict(size)
    for cpu, cell in topology.cells.items():
        if cell in size:
            size[cell] += 1
            there[cell] += cpu in free
    found: list[tuple[int, ...]] = []
    least = len(cells)
    for number in range(1, len(cells) + 1):
        for chosen in combinations(cells, number):
            if sum(size[cell] for cell in chosen) >= count:
                least = min(least, number)
            if sum(there[cell] for cell in chosen) >= count:
                found.append(chosen)
    return [Hint(chosen, len(chosen) == least) for chosen in found]


def best_hint(policy: str, offered: Sequence[Hint]) -> Hint | None:
    """The hint that a topology manager policy takes; None = it does not admit the container."""
    if policy == SINGLE:
        offered = [hint for hint in offered if hint.preferred and len(hint.cells) == 1]
    elif policy == RESTRICTED:
        offered = [hint for hint in offered if hint.preferred]
    return min(offered, key=lambda hint: (not hint.preferred, len(hint.cells), hint.cells), default=None)


def place(topology: NumaTopology, free: frozenset[int], containers: Iterable[int]) -> tuple[int, ...] | None:
    """The CPUs that a pod's containers would get, one container after the other. ``free``: CPUs that no container has.
    ``containers``: how many CPUs each has to itself; 0 = it shares. Returns: CPU numbers, ascending; None where the
    node's policy does not admit one of the containers."""
    got: list[int] = []
    for count in containers:
        if not count:
            continue
        hint = best_hint(topology.policy, hints(topology, free, count))
        if hint is None:
            return None
        aligned = frozenset(cpu for cpu in free if topology.cells.get(cpu) in hint.cells)
        chosen = take(topology, aligned, count)
        if chosen is None:
            return None
        got += chosen
        free = free - frozenset(chosen)
    return tuple(sorted(got))


def take(topology: NumaTopology, available: Iterable[int], count: int) -> tuple[int, ...] | None:
    """``count`` CPUs out of ``available``: whole sockets, then whole cores, then single CPUs of used cores first. None
    when there are too few. Ties go to the lowest numbers."""
    left = sorted(cpu for cpu in available if cpu in topology.cells)
    if len(left) < count:
        return None
    got: list[int] = []

    def socket(cpu: int) -> tuple[int, ...]:
        return (topology.sockets[cpu],)

    def core(cpu: int) -> tuple[int, ...]:
        return topology.sockets[cpu], topology.cores[cpu]

    for key_of in (socket, core):
        whole = _groups(topology.cells, key_of)
        for key, cpus in sorted(_groups(left, key_of).items(), key=lambda item: item[0]):
            if len(cpus) == len(whole[key]) and len(cpus) <= count - len(got):
                got += cpus
        left = [cpu for cpu in left if cpu not in set(got)]
    for _, cpus in sorted(_groups(left, core).items(), key=lambda item: (len(item[1]), item[0])):
        got += cpus[: count - len(got)]
    return tuple(sorted(got))


def _groups(cpus: Iterable[int], key_of: Callable[[int], tuple[int, ...]]) -> dict[tuple[int, ...], list[int]]:
    found: dict[tuple[int, ...], list[int]] = {}
    for cpu in sorted(cpus):
        found.setdefault(key_of(cpu), []).append(cpu)
    return found
