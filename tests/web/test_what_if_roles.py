"""A Job of several roles that an edit would admit: what is said of it is what its pods, once made, get."""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgspec
import pytest

from scheduler_core.model.podgroup import GangPhase
from scheduler_core.model.resources import Amount
from tests import builders as b
from tests.core.small_cluster import H, policy
from tests.web.test_what_if import names, picture, quota_edit
from tidesched_web.engine import bridge, remedies
from tidesched_web.engine.admitted import with_pods
from tidesched_web.engine.model import Snapshot
from tidesched_web.engine.what_if import GAINS, impact, try_out

CHIEF = {"name": "chief", "replicas": 1, "minAvailable": 1}
WORKERS = {"name": "worker", "replicas": 4, "minAvailable": 2}


def template(cards: int = 0, **of_pod: Any) -> dict[str, Any]:
    amounts = {"cpu": "4", "memory": "8Gi"} | ({"nvidia.com/gpu": cards} if cards else {})
    notes = {"volcano.sh/card.name": H} if cards else {}
    container = {"name": "main", "resources": {"requests": amounts, "limits": amounts}}
    return {"metadata": {"annotations": notes}, "spec": {"containers": [container], **of_pod}}


def waiting_job(*tasks: dict[str, Any], least: int = 3) -> list[dict[str, Any]]:
    """A Job as Volcano's controller leaves it before its gang is admitted: a PodGroup with sums, and no pods."""
    made = b.job("train", "training", 0, min_available=least)
    made["spec"]["tasks"] = list(tasks)
    made["status"] = {"state": {"phase": "Pending"}}
    group = b.pod_group("train-uid-train", "training", least)
    group["metadata"]["ownerReferences"] = [b.owned_by("Job", "train")]
    group["spec"]["minTaskMember"] = {task["name"]: task["minAvailable"] for task in tasks}
    return [made, group]


def cluster(*objects: Any, quota: float = 0) -> Snapshot:
    return b.snapshot(b.queue("training", {H: quota}, service_type="training"), *objects)


def lists_of(found: Snapshot, cards: float = 16) -> dict[str, list[str]]:
    said = impact(try_out(picture(found), quota_edit(found, training=cards)))
    return {name: [gang.split("/")[1] for gang in names(said[name])] for name in GAINS if said[name]}


def comes(found: Snapshot, cards: float = 16) -> GangPhase:
    """What the scheduler makes of the gang with that quota, once its pods are there as the controller makes them."""
    (group,) = found.pod_groups
    queues = tuple(
        msgspec.structs.replace(queue, card_quota={H: int(cards * 1000)}) if queue.name == "training" else queue
        for queue in found.queues
    )
    pods = [
        msgspec.structs.replace(role.pod, name=f"{role.role}-{index}")
        for role in group.to_come
        for index in range(role.count)
    ]
    ready = msgspec.structs.replace(group, phase=GangPhase.INQUEUE, waits_for_admission=False)
    there = msgspec.structs.replace(
        found, queues=queues, pod_groups=(ready,), pods=tuple(sorted(pods, key=lambda p: p.key))
    )
    decided = bridge.decide(there, policy(), now=1000.0, memory=None, workspace=bridge.Workspace())[0]
    return decided.podgroups[0].phase


ROOMY = [b.node("a", H, 8), b.node("cpu", cpu=8)]


@pytest.mark.parametrize(
    ("nodes", "tasks", "list_name"),
    [
        (ROOMY, (CHIEF | {"template": template()}, WORKERS | {"template": template(2)}), "gangs_run"),
        # The sum fits, one pod of a worker does not: four cards are free on each of two nodes.
        (
            [b.node("a", H, 4), b.node("b", H, 4)],
            (CHIEF | {"template": template()}, WORKERS | {"replicas": 2, "template": template(6)}),
            "gangs_admitted",
        ),
        # The chief has a node of its own kind to go to, which is not there: the workers alone are no start.
        (
            ROOMY,
            (CHIEF | {"template": template(nodeSelector={"kind": "chief"})}, WORKERS | {"template": template(2)}),
            "gangs_admitted",
        ),
        # Room for the least of each role, not for all workers.
        (
            [b.node("a", H, 4), b.node("cpu", cpu=8)],
            (CHIEF | {"template": template()}, WORKERS | {"template": template(2)}),
            "gangs_run",
        ),
    ],
    ids=["all fit", "a worker is too large", "no node for the chief", "the least of each role fits"],
)
def test_a_job_of_several_roles_is_said_to_run_where_its_pods_will(nodes, tasks, list_name: str) -> None:
    found = cluster(nodes, waiting_job(*tasks))
    assert lists_of(found) == {list_name: ["train-uid-train"]}
    assert (comes(found) is GangPhase.RUNNING) is (list_name == "gangs_run")


def test_roles_of_a_job_are_told_from_it_only_while_it_has_no_pods() -> None:
    tasks = (CHIEF | {"template": template()}, WORKERS | {"template": template(2)})
    found = cluster(ROOMY, waiting_job(*tasks))
    (group,) = found.pod_groups
    assert [(role.role, role.count, role.least, role.pod.role) for role in group.to_come] == [
        ("chief", 1, 1, "chief"),
        ("worker", 4, 2, "worker"),
    ]
    assert [role.pod.card.milli if role.pod.card else 0 for role in group.to_come] == [0, 2000]
    assert {role.pod.group for role in group.to_come} == {group.name}
    pod = b.pod("train-chief-0", group="train-uid-train", owner=b.owned_by("Job", "train"), scheduler="volcano")
    assert cluster(ROOMY, waiting_job(*tasks), pod).pod_groups[0].to_come == ()


def test_a_template_that_asks_for_what_cannot_be_read_is_not_guessed_at() -> None:
    bad = template()
    bad["metadata"]["annotations"] = {"tidesched.io/card-milli": "9000"}
    found = cluster(ROOMY, waiting_job(CHIEF | {"template": bad}, WORKERS | {"template": template(2)}))
    assert found.pod_groups[0].to_come == ()


def test_more_quota_for_the_least_of_each_role_is_what_helps_a_job_that_waits() -> None:
    """A chief and two of four workers with two cards each may start; the queue has two."""
    found = cluster(ROOMY, waiting_job(CHIEF | {"template": template()}, WORKERS | {"template": template(2)}), quota=2)
    now = picture(found)
    answer = remedies.remedy(now, remedies.reasons_of(now)["default/train-uid-train"], urgent=lambda: False)
    assert answer.starts
    assert answer.remedy == {"change": "quota", "queue": "training", "card": H, "by": 2.0, "verified": True}


def test_a_growing_job_of_several_roles_gets_the_pods_that_it_is_said_to_get() -> None:
    """It runs with the least of each role; more quota gives it the workers that wait."""
    tasks = (CHIEF | {"template": template()}, WORKERS | {"template": template(2)})
    objects = waiting_job(*tasks)
    objects[0]["status"] = {"state": {"phase": "Running"}}
    objects[1]["status"] = {"phase": "Running"}
    roles = [("chief", 0, 0, "cpu"), *(("worker", index, 2, "a" if index < 2 else "") for index in range(4))]
    pods = [
        b.pod(
            f"train-{role}-{index}", group="train-uid-train", owner=b.owned_by("Job", "train"), scheduler="volcano",
            node=node, annotations={"volcano.sh/task-spec": role}, **({"card": H, "count": cards} if cards else {}),
        )
        for role, index, cards, node in roles
    ]  # fmt: skip
    found = cluster(ROOMY, objects, pods, quota=4)
    (row,) = impact(try_out(picture(found), quota_edit(found, training=6)))["gangs_run"]
    assert (row["becomes"], row["pods_more"], row["pods"]) == ("larger", 1, 4)
    (row,) = impact(try_out(picture(found), quota_edit(found, training=16)))["gangs_run"]
    assert (row["becomes"], row["pods_more"], row["pods"]) == ("larger", 2, 5)


@pytest.mark.parametrize("with_job", [True, False])
@pytest.mark.parametrize("least", [True, False])
def test_pods_of_a_job_that_says_it_has_very_many_are_not_made(with_job, least) -> None:
    """Replicas and members are what a user writes: up to two billion."""
    many = 200_000
    workers = {"name": "worker", "replicas": many, "minAvailable": many, "template": template()}
    found = cluster(ROOMY, waiting_job(workers, least=many) if with_job else waiting_job(workers, least=many)[1:])
    (group,) = found.pod_groups
    assert (bool(group.to_come), group.min_member) == (with_job, many)
    if not with_job:
        asked = msgspec.structs.replace(group, min_resources=Amount(many, many), min_task_member={})
        found = msgspec.structs.replace(found, pod_groups=(asked,))
    tracemalloc.start()
    try:
        assert with_pods(found, {group.key}, least=least) is found
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**20
