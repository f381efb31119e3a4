"""Whole CPUs of a node by NUMA cell."""

from __future__ import annotations

import pytest

from scheduler_core.algorithms.numa import Hint, best_hint, hints, place, take, unreserved
from scheduler_core.model.observed import NumaTopology


def machine(policy="single-numa-node", *, free=None, reserved=0):
    """Two sockets, each one cell with four cores of two threads: CPUs 0-7 and 16-23 in cell 0, the others in cell 1."""
    cpus = {
        socket * 8 + core * 2 + thread: (socket, core) for socket in (0, 1) for core in range(4) for thread in (0, 1)
    }
    return NumaTopology(
        name="n",
        policy=policy,
        static_cpus=True,
        cells={cpu: socket for cpu, (socket, _) in cpus.items()},
        sockets={cpu: socket for cpu, (socket, _) in cpus.items()},
        cores={cpu: core for cpu, (_, core) in cpus.items()},
        free=tuple(cpus) if free is None else tuple(free),
        reserved_milli=reserved,
    )


@pytest.mark.parametrize(
    ("available", "count", "expected"),
    [
        (range(16), 1, (0,)),
        (range(16), 2, (0, 1)),
        (range(16), 8, tuple(range(8))),
        (range(16), 10, tuple(range(10))),
        (range(1, 16), 8, tuple(range(8, 16))),
        ((1, 4, 5, 7), 2, (4, 5)),
        ((1, 4, 5, 7), 1, (1,)),
        ((1, 4, 5, 7), 3, (1, 4, 5)),
        ((1, 2), 3, None),
        ((1, 2), 0, ()),
    ],
)
def test_sockets_before_cores_before_threads(available, count, expected):
    assert take(machine(), available, count) == expected


def test_what_the_system_keeps_is_not_given_away():
    assert unreserved(machine(reserved=1500)) == frozenset(range(2, 16))
    assert unreserved(machine(free=(0, 5, 6), reserved=500)) == frozenset((5, 6))


def test_hints_are_preferred_when_no_fewer_cells_could_do():
    assert hints(machine(), frozenset(range(16)), 4) == [Hint((0,), True), Hint((1,), True), Hint((0, 1), False)]
    assert hints(machine(), frozenset((0, 1, 8, 9)), 4) == [Hint((0, 1), False)]
    assert hints(machine(), frozenset(range(16)), 12) == [Hint((0, 1), True)]
    assert hints(machine(), frozenset((0,)), 2) == []


@pytest.mark.parametrize(
    ("policy", "free", "count", "expected"),
    [
        ("single-numa-node", range(16), 4, (0,)),
        ("single-numa-node", range(6, 16), 4, (1,)),
        ("single-numa-node", (0, 1, 8, 9), 4, None),
        ("single-numa-node", range(16), 12, None),
        ("restricted", (0, 1, 8, 9), 4, None),
        ("restricted", range(16), 12, (0, 1)),
        ("best-effort", (0, 1, 8, 9), 4, (0, 1)),
        ("best-effort", range(16), 4, (0,)),
        ("best-effort", (0, 1), 4, None),
    ],
)
def test_policies(policy, free, count, expected):
    hint = best_hint(policy, hints(machine(policy), frozenset(free), count))
    assert (hint.cells if hint else None) == expected


@pytest.mark.parametrize(
    ("policy", "free", "containers", "expected"),
    [
        ("single-numa-node", range(16), (4, 4), tuple(range(8))),
        ("single-numa-node", range(16), (6, 4), (0, 1, 2, 3, 4, 5, 8, 9, 10, 11)),
        ("single-numa-node", range(16), (6, 6, 4), None),
        ("restricted", range(16), (0, 2), (0, 1)),
        ("best-effort", (0, 1, 8, 9), (3,), (0, 1, 8)),
    ],
)
def test_containers_one_after_the_other(policy, free, containers, expected):
    assert place(machine(policy), frozenset(free), containers) == expected
