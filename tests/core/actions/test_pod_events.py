"""What wakes a pod that found no place: the event that may help it, and no other."""

import pytest

from scheduler_core import run_session
from scheduler_core.model.queued_pod import Where
from scheduler_core.serde.policy import parse_policy
from tests import builders as b

ONE_BY_ONE = "actions: allocate\ntiers:\n- plugins: [{name: priority-sort}, {name: predicates}, {name: nodeorder}]\n"
TOGETHER = ONE_BY_ONE.replace("priority-sort", "coscheduling")
TAINT = {"key": "k", "effect": "NoSchedule"}
VOLUMES = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
IN_A = {"nodeSelector": {"zone": "a"}}
BESIDE = {
    "affinity": {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
}

APART = {"affinity": {"podAntiAffinity": BESIDE["affinity"]["podAffinity"]}}


def claim(phase):
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "default"},
        "spec": {"volumeName": "pv", "storageClassName": ""}, "status": {"phase": phase},
    }  # fmt: skip


def volume(labels):
    return {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv", "labels": labels},
        "spec": {"storageClassName": "", "claimRef": {"name": "c", "namespace": "default"}},
    }  # fmt: skip


def runs(name, **more):
    return b.pod(name, node="n1", **more)


WAITS = b.pod("p", cpu=4)
SMALL, LARGE = b.node("n1", cpu=4), b.node("n1", cpu=64)
HOLDS = runs("other", cpu=2)
# event: the pod, the cluster in which it waits, with what helps it, with what does not.
EVENTS = {
    "a node comes": (
        WAITS, [SMALL, HOLDS], [SMALL, HOLDS, b.node("n2")], [b.node("n1", cpu=4, labels={"x": "y"}), HOLDS],
    ),
    "a node grows": (WAITS, [SMALL, HOLDS], [LARGE, HOLDS], [SMALL, HOLDS, claim("Pending")]),
    "a label comes": (
        b.pod("p", spec=IN_A), [LARGE], [b.node("n1", labels={"zone": "a"})], [LARGE, claim("Pending")],
    ),
    "a taint goes": (
        b.pod("p"), [b.node("n1", taints=[TAINT])], [LARGE], [b.node("n1", taints=[TAINT], labels={"x": "y"})],
    ),
    "a node is uncordoned": (
        b.pod("p"), [b.node("n1", unschedulable=True)], [LARGE], [b.node("n1", unschedulable=True, labels={"x": "y"})],
    ),
    "a pod goes": (WAITS, [SMALL, HOLDS], [SMALL], [SMALL, runs("other", cpu=2, labels={"app": "db"})]),
    "a pod is labelled": (
        b.pod("p", spec=BESIDE), [LARGE, HOLDS], [LARGE, runs("other", cpu=2, labels={"app": "db"})],
        [LARGE, HOLDS, claim("Pending")],
    ),
    "a claim is bound": (
        b.pod("p", spec=VOLUMES), [LARGE, HOLDS, volume({})], [LARGE, HOLDS, volume({}), claim("Bound")],
        [LARGE, volume({}), runs("other", cpu=2, labels={"app": "db"})],
    ),
    "another's dislike goes": (
        b.pod("p", labels={"app": "db"}), [LARGE, runs("other", cpu=2, spec=APART)], [LARGE, runs("other", cpu=2)],
        [LARGE, runs("other", cpu=2, spec=APART), claim("Pending")],
    ),
}  # fmt: skip


def queued(policy, waits, *clusters):
    """The queue's entry of the pod after each session, 20 seconds apart; None where it has its place."""
    memory, found = None, []
    for number, objects in enumerate(clusters):
        result, memory = run_session(
            b.snapshot(waits, objects), parse_policy(policy), now=b.now(20 * number), memory=memory, check=True
        )
        bound = {bind.pod for bind in result.binds}
        found.append(None if "default/p" in bound else next(e for e in memory.queue if e.pod == "default/p"))
    return found


@pytest.mark.parametrize("event", EVENTS)
def test_the_event_that_helps_wakes_it(event):
    waits, before, after, _ = EVENTS[event]
    first, second = queued(ONE_BY_ONE, waits, before, after)
    assert (first.where, first.attempts) == (Where.UNSCHEDULABLE, 1)
    assert second is None


@pytest.mark.parametrize("event", EVENTS)
def test_another_event_does_not(event):
    waits, before, _, another = EVENTS[event]
    first, second = queued(ONE_BY_ONE, waits, before, another)
    assert (second.where, second.attempts) == (first.where, first.attempts) == (Where.UNSCHEDULABLE, 1)


def group(**more):
    return b.pod_group("g", "default", **more)


@pytest.mark.parametrize(
    ("after", "bound"),
    [
        ([group(min_member=2), b.pod("q", "g")], True),
        ([group(min_member=1)], True),
        ([group(min_member=2), b.pod_group("h", "default", 2)], False),
        ([group(min_member=2), b.pod("alone")], False),
    ],
    ids=["a member comes", "the minimum falls", "another group comes", "another pod comes"],
)
def test_a_group_is_woken_by_what_happens_to_it(after, bound):
    waits = b.pod("p", "g")
    first, second = queued(TOGETHER, waits, [LARGE, group(min_member=2)], [LARGE, *after])
    assert first.attempts == 1
    assert (second is None) is bound


def test_another_policy_wakes_all():
    waits, before, _, _ = EVENTS["a taint goes"]
    _, memory = run_session(b.snapshot(waits, before), parse_policy(ONE_BY_ONE), now=b.now(0))
    blind = ONE_BY_ONE.replace(
        "{name: predicates}", "{name: predicates, arguments: {predicate.TaintTolerationEnable: false}}"
    )
    result, _ = run_session(b.snapshot(waits, before), parse_policy(blind), now=b.now(20), memory=memory)
    assert [bind.pod for bind in result.binds] == ["default/p"]


def test_profiles_of_one_policy_do_not_wake_each_others_pods():
    tiers = "  tiers:\n  - plugins: [{name: priority-sort}, {name: predicates}]\n"
    profiles = f"actions: allocate\nprofiles:\n- schedulerName: volcano\n{tiers}- schedulerName: other\n{tiers}"
    first, second = queued(profiles, WAITS, [SMALL, HOLDS], [SMALL, HOLDS])
    assert (first.attempts, second.attempts) == (1, 1)


@pytest.mark.parametrize(("cpu", "larger", "smaller"), [(4, 3, 2), (6, 4, 3), (8, 5, 4), (2, 2, 1)])
def test_a_group_that_never_fits_gives_way_to_one_that_does(cpu, larger, smaller):
    groups = [
        b.pod_group(name, "default", size, created=made)
        for made, (name, size) in enumerate((("a", larger), ("b", smaller)))
    ]
    pods = [b.pod(f"{name}-{i}", name, cpu=2) for name, size in (("a", larger), ("b", smaller)) for i in range(size)]
    memory, bound = None, []
    for number in range(70):
        seen = b.snapshot([b.node("n1", cpu=cpu), b.queue("default"), *groups, *pods])
        result, memory = run_session(seen, parse_policy(TOGETHER), now=b.now(2 + number), memory=memory, check=True)
        bound += [bind.pod for bind in result.binds]
        if bound:
            break
    assert bound == [f"default/b-{i}" for i in range(smaller)]
