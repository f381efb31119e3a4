"""The simulated cluster: room, controllers, restarts, persistence."""

import msgspec
import pytest

from scheduler_core.model.cards import NodeCards
from scheduler_core.model.node import Node
from scheduler_core.model.pod import PodPhase
from scheduler_core.model.podgroup import EvictedPolicy, GangPhase
from scheduler_core.model.queue import PriorityClass, Queue
from scheduler_core.simulator.errors import Refusal, WorldError
from scheduler_core.simulator.workload import OwnerKind, PodTemplate, Workload, WorkloadPhase
from scheduler_core.simulator.world import World

GPU = "nvidia.com/gpu"
CARD = "NVIDIA-H200"


def node(name="n1", cards=4):
    return Node(name=name, cpu_milli=64_000, memory_mib=256_000, cards=(NodeCards(CARD, GPU, cards),))


def world(*nodes, seed=1):
    queues = [Queue(name="inf", service_type="inference"), Queue(name="train", service_type="training")]
    classes = [PriorityClass(name=name, value=value) for name, value in (("pc-high", 80_000), ("pc-low", 20_000))]
    return World(nodes or (node(),), queues, classes, seed=seed, start=1000.0)


def template(milli=1000, cpu=4000):
    return PodTemplate(
        cpu_milli=cpu, memory_mib=8192, card_names=(CARD,), resource=GPU if milli % 1000 == 0 else "", card_milli=milli
    )


def job(name="train-1", replicas=2, policy=EvictedPolicy.RESTART_JOB, duration=100.0, ttl=0.0, milli=1000):
    return Workload(
        namespace="lab",
        name=name,
        queue="train",
        service_type="training",
        owner_kind=OwnerKind.JOB,
        template=template(milli),
        replicas=replicas,
        min_member=replicas,
        priority_class="pc-low",
        evicted_policy=policy,
        duration=duration,
        ttl_seconds=ttl,
    )


def service(name="chat", replicas=2, milli=1000, duration=None):
    return Workload(
        namespace="shop",
        name=name,
        queue="inf",
        service_type="inference",
        owner_kind=OwnerKind.REPLICA_SET,
        template=template(milli),
        replicas=replicas,
        priority_class="pc-high",
        duration=duration,
    )


def admit(w, key="lab/train-1"):
    w.set_group_status(key, GangPhase.INQUEUE)
    w.advance(w.t + w.controller_delay)


def run_job(w, name="train-1"):
    admit(w, f"lab/{name}")
    for key in list(w.workloads[f"lab/{name}"].pods):
        w.bind(key, "n1")
    w.advance(w.t + 3)


def test_the_pods_of_a_job_are_made_after_admission_and_those_of_a_service_at_once():
    w = world()
    w.submit(job())
    w.submit(service())
    assert [pod.namespace for pod in w.pods.values()] == ["shop", "shop"]
    assert w.pod_groups["lab/train-1"].waits_for_admission
    admit(w)
    assert sorted(key for key in w.pods if key.startswith("lab/")) == ["lab/train-1-worker-0", "lab/train-1-worker-1"]
    assert w.pod_groups["shop/chat"].preemptable is False
    assert all(pod.preemptable is False for pod in w.pods.values() if pod.namespace == "shop")


def test_a_job_runs_for_its_duration_once_all_members_run_and_then_gives_everything_back():
    w = world()
    w.submit(job(duration=100.0, ttl=50.0))
    run_job(w)
    state = w.workloads["lab/train-1"]
    assert state.phase is WorkloadPhase.RUNNING
    began = state.started
    w.advance(began + 99.9)
    assert state.phase is WorkloadPhase.RUNNING
    w.advance(began + 100)
    assert state.phase is WorkloadPhase.COMPLETED
    assert w.pod_groups["lab/train-1"].phase is GangPhase.COMPLETED
    w.submit(service(replicas=4))
    for key in [key for key in w.pods if key.startswith("shop/")]:
        w.bind(key, "n1")
    w.advance(began + 150)
    assert "lab/train-1" not in w.workloads
    assert not [key for key in w.pods if key.startswith("lab/")]


def test_one_evicted_member_restarts_the_whole_job_with_its_place_kept():
    w = world()
    w.submit(job())
    run_job(w)
    first = w.pod_groups["lab/train-1"]
    w.evict("lab/train-1-worker-0")
    t = w.t
    w.advance(t + 29)
    assert len(w.pods) == 2
    w.advance(t + 32)
    assert list(w.pods) == ["lab/train-1-worker-1"], "the sibling is killed when the controller has seen it"
    assert w.pods["lab/train-1-worker-1"].deleted == t + 32
    w.advance(t + 64)
    second = w.pod_groups["lab/train-1"]
    assert not w.pods
    assert (second.phase, second.uid != first.uid) == (GangPhase.PENDING, True)
    assert (second.submitted, second.created) == (1000.0, t + 64)
    run_job(w)
    assert w.workloads["lab/train-1"].phase is WorkloadPhase.RUNNING


def test_a_job_whose_members_are_leaving_does_not_finish():
    w = world()
    w.submit(job(duration=20.0))
    run_job(w)
    w.advance(w.workloads["lab/train-1"].started + 10)
    for key in list(w.pods):
        w.evict(key)
    w.advance(w.t + 15)
    assert w.workloads["lab/train-1"].phase is WorkloadPhase.RUNNING
    w.advance(w.t + 20)
    assert w.workloads["lab/train-1"].version == 1


def test_an_aborted_job_ends_and_loses_its_gang():
    w = world()
    w.submit(job(policy=EvictedPolicy.ABORT_JOB, ttl=None))
    run_job(w)
    for key in list(w.pods):
        w.evict(key)
    w.advance(w.t + 33)
    assert w.workloads["lab/train-1"].phase is WorkloadPhase.ABORTED
    assert not w.pod_groups
    assert not w.pods


def test_a_service_replaces_a_pod_that_leaves_at_once_and_scales_the_youngest_away():
    w = world()
    w.submit(service())
    keys = list(w.pods)
    for key in keys:
        w.bind(key, "n1")
    w.advance(w.t + 3)
    w.evict(keys[0])
    assert len(w.pods) == 3
    w.advance(w.t + 30)
    assert len(w.pods) == 2
    w.scale("shop", "chat", 1)
    assert list(w.pods) == [keys[1]], "the pod that waits goes before the one that runs"
    w.scale("shop", "chat", 0)
    assert "shop/chat" not in w.pod_groups
    w.advance(w.t + 30)
    assert not w.pods


def test_many_pods_that_wait_are_scaled_away_at_once():
    w = world()
    w.submit(service(replicas=6))
    first = next(iter(w.pods))
    w.bind(first, "n1")
    w.scale("shop", "chat", 1)
    assert list(w.pods) == [first]


def test_binding_is_refused_with_the_reason():
    w = world(node(cards=2), node("n2"))
    w.submit(service(replicas=4))
    a, b, c, d = w.pods
    w.bind(a, "n1", CARD, (1,))
    cases = [
        (Refusal.ALREADY_BOUND, lambda: w.bind(a, "n2")),
        (Refusal.NODE_FULL, lambda: w.bind(b, "n1", CARD, (1,))),
        (Refusal.INVALID, lambda: w.bind(b, "n1", CARD, (2,))),
        (Refusal.INVALID, lambda: w.bind(b, "n1", "NVIDIA-L40S", (0,))),
        (Refusal.NOT_FOUND, lambda: w.bind("shop/none", "n1")),
        (Refusal.NOT_FOUND, lambda: w.bind(b, "n9")),
        (Refusal.UID_MISMATCH, lambda: w.bind(b, "n1", uid="other")),
    ]
    for code, call in cases:
        with pytest.raises(WorldError) as refused:
            call()
        assert refused.value.code is code
    w.bind(c, "n1")
    with pytest.raises(WorldError) as refused:
        w.bind(d, "n1")
    assert refused.value.code is Refusal.NODE_FULL
    assert w.pods[d].node == ""


def test_shares_need_room_on_one_card():
    w = world(node(cards=2))
    w.submit(service(replicas=3, milli=600))
    a, b, c = w.pods
    w.bind(a, "n1")
    w.bind(b, "n1")
    with pytest.raises(WorldError):
        w.bind(c, "n1")
    assert {w.placements[a], w.placements[b]} == {(CARD, (0,)), (CARD, (1,))}
    assert w.pods[a].annotations["tidesched.io/card-indices"] == "0"


def test_the_loss_of_a_node_is_seen_by_the_controllers():
    w = world()
    w.submit(job())
    run_job(w)
    w.remove_node("n1")
    w.advance(w.t + 3)
    assert not w.pods
    assert w.workloads["lab/train-1"].version == 1


def play(w):
    for step in range(40):
        w.advance(w.t + 5)
        for key, group in list(w.pod_groups.items()):
            if group.phase is GangPhase.PENDING:
                w.set_group_status(key, GangPhase.INQUEUE)
        for key, pod in list(w.pods.items()):
            if not pod.node:
                try:
                    w.bind(key, "n1")
                except WorldError:
                    continue
        if step % 7 == 3:
            running = sorted(key for key, pod in w.pods.items() if pod.phase is PodPhase.RUNNING)
            if running:
                w.evict(running[0])


def test_a_world_that_was_stored_goes_on_as_the_first_one():
    w = world()
    w.submit(job(duration=20.0))
    w.submit(job("train-2", policy=EvictedPolicy.ABORT_JOB))
    w.submit(service())
    play(w)
    copy = World.load(w.dump())
    assert copy.dump() == w.dump()
    heard = []
    copy.subscribe(heard.append)
    w.submit(job("train-3", duration=9.0))
    copy.submit(job("train-3", duration=9.0))
    play(w)
    play(copy)
    assert copy.dump() == w.dump()
    assert heard


def test_listeners_hear_each_change_with_the_object():
    w = world()
    heard = []
    w.subscribe(heard.append)
    w.submit(job())
    run_job(w)
    assert [(c.verb, c.kind, c.cause.value) for c in heard[:4]] == [
        ("upsert", "Job", "submitted"),
        ("upsert", "PodGroup", "submitted"),
        ("upsert", "PodGroup", "status"),
        ("upsert", "Pod", "made"),
    ]
    w.evict("lab/train-1-worker-0")
    w.advance(w.t + 30)
    gone = heard[-1]
    assert (gone.verb, gone.kind, gone.key, gone.value.node) == ("delete", "Pod", "lab/train-1-worker-0", "n1")


def test_impossible_workloads_are_refused():
    w = world()
    w.submit(job())
    for broken in (
        job(),
        msgspec.structs.replace(job("x"), priority_class="none"),
        msgspec.structs.replace(job("y"), min_member=3),
    ):
        with pytest.raises(WorldError):
            w.submit(broken)
