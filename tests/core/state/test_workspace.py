"""Tables that are repaired for what changed equal tables that are built anew."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.model.pod import Pod, PodPhase
from scheduler_core.state.card_table import choose_cards
from scheduler_core.state.workspace import Workspace
from tests.core.small_cluster import H, gang, inference, node, service, snapshot, training
from tests.core.state.tables import tables

NODES = [node("n1", 4), node("n2", 2)]
QUEUES = [inference(), training()]


changes = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from(["run1", "run2", "leave", "finish", "wait", "gone"])), max_size=12
)


@given(st.lists(changes, min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_repaired_equals_fresh(rounds):
    gangs = [gang("job", 4, 1, "training"), gang("half", 3, 0.6, "training"), service("svc", 3, 2)]
    pods = {pod.key: pod for _, members in gangs for pod in members}
    base = dict(pods)
    groups = {group.key: group for group, _ in gangs}
    kept = Workspace()
    for steps in rounds:
        for pick, what in steps:
            key = sorted(base)[pick]
            pods.pop(key, None)
            if what != "gone":
                pods[key] = _changed(base[key], what)
        present = {pod.group_key for pod in pods.values()}
        members: dict[str, list[Pod]] = {}
        for pod in pods.values():
            members.setdefault(pod.group_key, []).append(pod)
        given = snapshot(NODES, QUEUES, *((groups[key], members[key]) for key in sorted(present)))
        fresh = Workspace()
        kept.load(given)
        fresh.load(given)
        assert tables(kept) == tables(fresh)


def _changed(pod: Pod, what: str) -> Pod:
    if what in ("run1", "run2"):
        return msgspec.structs.replace(pod, node=f"n{what[-1]}", phase=PodPhase.RUNNING)
    if what == "leave":
        return msgspec.structs.replace(pod, node="n1", phase=PodPhase.RUNNING, deleted=5.0)
    if what == "finish":
        return msgspec.structs.replace(pod, node="n1", phase=PodPhase.SUCCEEDED)
    return pod


def test_known_cards_are_kept_and_unknown_ones_placed_by_name():
    known = service("known", 1, 1, on=["n1"], card_indices=(2,))
    loose = service("loose", 2, 1, on=["n1", "n1"])
    workspace = Workspace()
    workspace.load(snapshot([node("n1", 4)], QUEUES, known, loose))
    tasks = workspace.tasks
    held = {tasks.keys[t]: tasks.indices[t] for t in range(len(tasks)) if tasks.live[t]}
    assert held == {"ns/known-0": (2,), "ns/loose-0": (0,), "ns/loose-1": (1,)}


def test_pods_of_other_schedulers_take_room_and_are_nobodys_task():
    stranger = Pod(namespace="x", name="p", node="n1", phase=PodPhase.RUNNING, scheduler="other", cpu_milli=500)
    workspace = Workspace()
    workspace.load(snapshot(NODES, QUEUES, pods=[stranger]))
    assert workspace.nodes.used[0].tolist() == [500, 0]
    assert workspace.tasks.gang[0] == -1


def test_a_finished_pod_takes_nothing():
    done = service("svc", 1, 1, on=["n1"], phase=None)
    pods = [msgspec.structs.replace(done[1][0], phase=PodPhase.SUCCEEDED)]
    workspace = Workspace()
    workspace.load(snapshot(NODES, QUEUES, (done[0], pods)))
    assert workspace.nodes.used.sum() == 0
    assert workspace.cards.used.sum() == 0


def test_a_share_fills_the_fullest_card_and_whole_cards_the_first_free_ones():
    assert choose_cards([400, 1000, 500], 0, 400) == (0,)
    assert choose_cards([400, 1000, 500], 0, 450) == (2,)
    assert choose_cards([400, 1000, 500], 0, 600) == (1,)
    assert choose_cards([400, 1000, 500], 2, 0) is None
    assert choose_cards([1000, 0, 1000], 2, 0) == (0, 2)


def test_six_tenths_twice_and_eight_tenths_do_not_fit_two_cards():
    workspace = Workspace()
    workspace.load(snapshot([node("n1", 2)], QUEUES, service("a", 2, 0.6, on=["n1", "n1"])))
    cards = workspace.cards
    assert cards.left_now.tolist() == [[800]]
    assert cards.best_now.tolist() == [[400]]
    assert workspace.axes.cards == (H,)
