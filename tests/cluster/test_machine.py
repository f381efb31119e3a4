"""The machine behind the API, in this process: at whatever commit it dies, the next start goes on where it was."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from scheduler_core.model.podgroup import GangPhase
from scheduler_core.simulator.errors import WorldError
from tidesched_web.engine.demo import QUEUES as DEMO_QUEUES
from tidesched_web.simcluster.clock import VirtualClock
from tidesched_web.simcluster.database import open_database
from tidesched_web.simcluster.machine import WORLD_KINDS, Machine
from tidesched_web.simcluster.resources import NODES, PODS, PRIORITY_CLASSES, QUEUES
from tidesched_web.simcluster.stages import Stage, demo_stage
from tidesched_web.simcluster.steps import Bind, DeleteWorkload, Evict, Scale, SetGroupStatus, Step
from tidesched_web.simcluster.store import Store

RATE = 144.0


class HandClock:
    """A wall clock that the test moves."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def start(path: Path, stage: Stage, hand: HandClock) -> Machine:
    machine = Machine.start(Store(open_database(path)), rate=RATE, stage=stage)
    machine.clock = VirtualClock(machine.clock.now(), RATE, monotonic=hand)
    return machine


def push(machine: Machine) -> None:
    with machine.writing():
        for queue in DEMO_QUEUES:
            machine.store.put(QUEUES, {"metadata": {"name": queue.name}, "spec": {"weight": 1}}, now="")
        for name in ("pc-high", "pc-medium", "pc-normal", "pc-low"):
            machine.store.put(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": 1}, now="")


def random_step(machine: Machine, rng: random.Random) -> Step | None:
    world = machine.world
    waiting = [g for g in world.pod_groups.values() if g.phase is GangPhase.PENDING]
    unbound = [p for p in world.pods.values() if not p.node]
    bound = [p for p in world.pods.values() if p.node and p.deleted is None]
    choice = rng.random()
    if choice < 0.3 and waiting:
        return SetGroupStatus(rng.choice(waiting).key, GangPhase.INQUEUE, ())
    if choice < 0.8 and unbound:
        return Bind(rng.choice(unbound).key, rng.choice(list(world.nodes)), "", ())
    if choice < 0.93 and bound:
        return Evict(rng.choice(bound).key)
    namespace, name = rng.choice(list(world.workloads)).split("/")
    return DeleteWorkload(namespace, name) if choice < 0.96 else Scale(namespace, name, rng.randint(0, 5))


def live(machine: Machine, hand: HandClock, rng: random.Random, steps: int) -> None:
    for _ in range(steps):
        hand.at += rng.uniform(0.0, 0.4)
        machine.keep_time(1.0)
        step = random_step(machine, rng)
        if step is None:
            continue
        with machine.writing():
            machine.catch_up()
            try:
                machine.run(step)
            except WorldError:
                continue


def copy_of(machine: Machine, path: Path) -> None:
    """What is on disk at this moment, as after a kill."""
    with sqlite3.connect(path) as target:
        machine.store.connection.backup(target)
    target.close()


def objects(machine: Machine) -> dict[str, list[bytes]]:
    return {kind.plural: [body for _, _, body in machine.store.bodies(kind)] for kind in WORLD_KINDS}


@pytest.mark.parametrize("seed", range(4))
def test_a_start_stands_where_the_last_one_died(tmp_path: Path, seed: int) -> None:
    rng, hand = random.Random(seed), HandClock()
    first = start(tmp_path / "first.db", demo_stage(seed), hand)
    push(first)
    for round_ in range(4):
        # sometimes soon after a dump, sometimes with many steps to do again
        if rng.random() < 0.5:
            first._dumped_at = float("-inf")
        live(first, hand, rng, rng.randint(1, 60))
        path = tmp_path / f"copy-{round_}.db"
        copy_of(first, path)
        second = start(path, demo_stage(seed), hand)
        assert objects(second) == objects(first)
        assert second.store.version == first.store.version, "the restart had to mend something"
        latest = max(first.world.t, second.world.t)
        for machine in (first, second):
            machine.world.advance(latest)
        assert second.world.dump() == first.world.dump()


def test_two_lives_of_one_seed_are_the_same(tmp_path: Path) -> None:
    lives = []
    for name in ("a", "b"):
        rng, hand = random.Random(7), HandClock()
        machine = start(tmp_path / f"{name}.db", demo_stage(3), hand)
        push(machine)
        live(machine, hand, rng, 60)
        lives.append(machine.world.dump())
    assert lives[0] == lives[1]


def test_another_seed_is_another_history(tmp_path: Path) -> None:
    seen = []
    for seed in (1, 2):
        hand = HandClock()
        machine = start(tmp_path / f"{seed}.db", demo_stage(seed), hand)
        push(machine)
        live(machine, hand, random.Random(0), 20)
        seen.append({obj["metadata"]["name"] for obj in machine.store.all(PODS)})
    assert seen[0] != seen[1]


def test_time_that_was_not_stored_is_not_shown() -> None:
    hand = HandClock()
    clock = VirtualClock(1000.0, 10.0, monotonic=hand)
    hand.at = 5.0
    assert clock.now() == 1000.0
    clock.extend(clock.next_horizon(1.0))
    assert clock.horizon == 1010.0
    assert clock.now() == 1000.0, "it goes on from where it stood"
    hand.at = 5.5
    assert clock.now() == 1005.0
    hand.at = 60.0
    assert clock.now() == 1010.0


def test_a_data_file_of_version_1_goes_on_without_large_values_among_its_keys(tmp_path: Path) -> None:
    """There each commit read the whole dump of the world to find the row of the version."""
    hand, path = HandClock(), tmp_path / "cluster.db"
    machine = start(path, demo_stage(0), hand)
    push(machine)
    world, nodes = machine.world.dump(), machine.store.bodies(NODES)
    machine.close()
    raw = machine.store.connection
    for table in ("state", "objects"):
        (sql,) = raw.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        raw.execute(f"ALTER TABLE {table} RENAME TO newer")
        raw.execute(f"{sql} WITHOUT ROWID")
        raw.execute(f"INSERT INTO {table} SELECT * FROM newer")
        raw.execute("DROP TABLE newer")
    raw.execute("PRAGMA user_version=1")
    raw.close()
    again = start(path, demo_stage(0), hand)
    assert nodes
    assert again.store.bodies(NODES) == nodes
    assert again.world.dump() == world
    tables = again.store.connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    assert [name for name, sql in tables if "WITHOUT ROWID" in sql] == []
    assert not {"state_1", "objects_1", "newer"} & {name for name, _sql in tables}
