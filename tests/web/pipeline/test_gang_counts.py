"""How many pods of each gang run: followed from edition to edition, and the same as counted anew."""

from __future__ import annotations

import random
from collections import Counter

from scheduler_core.model.journal import Journal
from tidesched_web.clusters.kubernetes.cache import GangCounts
from tidesched_web.engine.model import Pod, PodPhase
from tidesched_web.scheduling.pipeline import gang_counts
from tidesched_web.scheduling.pipeline.gang_counts import Counted

PHASES = (PodPhase.PENDING, PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED)


def _pod(name: str, draw: random.Random) -> Pod:
    return Pod(
        namespace="work",
        name=name,
        phase=draw.choice(PHASES),
        group=draw.choice(("", "a", "b", "c")),
        deleted=draw.choice((None, None, 5.0)),
    )


def _naive(pods: list[Pod]) -> dict[str, GangCounts]:
    told: Counter[tuple[str, str]] = Counter()
    for pod in pods:
        if pod.group and not (pod.phase == PodPhase.RUNNING and pod.deleted is not None):
            told[f"{pod.namespace}/{pod.group}", pod.phase] += 1
    found = {
        gang: GangCounts(told[gang, PHASES[1]], told[gang, PHASES[2]], told[gang, PHASES[3]]) for gang, _ in list(told)
    }
    return {gang: counts for gang, counts in found.items() if any(counts)}


def test_followed_counts_are_those_of_a_count_from_the_start() -> None:
    for seed in range(20):
        draw = random.Random(seed)
        journal: Journal[Pod] = Journal()
        followed, there = Counted(), {}
        for _ in range(25):
            for _ in range(draw.choice((0, 1, 3, 30))):
                key = f"work/p{draw.randrange(120):03}"
                if draw.random() < 0.25:
                    there.pop(key, None)
                    journal.note(key, None)
                else:
                    there[key] = _pod(key.partition("/")[2], draw)
                    journal.note(key, there[key])
            assert dict(followed.follow(journal.next())) == _naive(list(there.values()))
        assert dict(followed.follow(tuple(there.values()))) == _naive(list(there.values()))  # of no series at all


def test_a_look_at_a_large_cluster_touches_only_what_changed(monkeypatch) -> None:
    draw = random.Random(1)
    journal: Journal[Pod] = Journal()
    for number in range(5_000):
        journal.note(f"work/p{number:05}", _pod(f"p{number:05}", draw))
    followed = Counted()
    followed.follow(journal.next())
    looked = []
    place = gang_counts._place
    monkeypatch.setattr(gang_counts, "_place", lambda pod: looked.append(pod.name) or place(pod))
    followed.follow(journal.next())
    assert looked == []
    for number in (7, 11):
        journal.note(f"work/p{number:05}", _pod(f"p{number:05}", draw))
    followed.follow(journal.next())
    assert sorted(looked) == ["p00007", "p00011"]
