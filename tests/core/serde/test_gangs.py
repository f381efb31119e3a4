"""PodGroups: as they stand, as a controller would make them, and what their owners say."""

import pytest

from scheduler_core.model.errors import BadInput
from scheduler_core.model.podgroup import EvictedPolicy, GangPhase
from scheduler_core.model.resources import Amount
from scheduler_core.serde.kubernetes.builder import SnapshotBuilder
from tests import builders as b
from tests.builders import (
    job,
    node,
    now,
    owned_by,
    pod,
    pod_group,
    priority_class,
    priority_classes,
    queue,
    snapshot,
    training,
)

H200 = node("h", "NVIDIA-H200", 8)


def gangs(*objects):
    return {group.key: group for group in b.taken(b.listing(*objects)["items"]).pod_groups}


def workload(kind, name, *, annotations=None, replicas=3, owner=None):
    body = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": annotations or {}},
        "spec": {"replicas": replicas},
    }
    if owner:
        body["metadata"]["ownerReferences"] = [owned_by("Deployment", owner)]
    return body


class TestAsItStands:
    def test_fields(self):
        body = pod_group(
            "g",
            "q",
            4,
            priority="pc-low",
            phase="Inqueue",
            created=7,
            card_request={"A|B": 4},
            service_type="training",
            preemptable="false",
            min_resources={"cpu": 8, "memory": "1Gi", "nvidia.com/gpu": 4},
            annotations={"tidesched.io/submitted-at": "2026-01-01T00:00:03Z"},
        )
        group = gangs(body, priority_classes())["default/g"]
        assert (group.min_member, group.priority, group.phase) == (4, 20000, GangPhase.INQUEUE)
        assert group.card_request == {"A|B": 4000}
        assert group.min_resources == Amount(8000, 1024)
        assert group.min_scalars == {"nvidia.com/gpu": 4}
        assert (group.service_type, group.preemptable) == ("training", False)
        assert (group.created, group.waiting_since) == (now(7), now(3))
        assert not group.made

    @pytest.mark.parametrize(
        ("key", "text"),
        [
            ("volcano.sh/service.type", "batch"),
            ("volcano.sh/card.request", "eight"),
            ("tidesched.io/submitted-at", "long ago"),
        ],
    )
    def test_an_annotation_that_cannot_be_read_makes_it_misconfigured(self, key, text):
        assert gangs(pod_group("g", "q", annotations={key: text}))["default/g"].problem.startswith(
            f"annotation {key}: "
        )

    def test_an_unknown_phase_and_a_negative_size_are_errors(self):
        with pytest.raises(BadInput, match="not a PodGroup phase"):
            snapshot(pod_group("g", "q", phase="Dreaming"))
        with pytest.raises(BadInput) as caught:
            snapshot(pod_group("g", "q", -1))
        assert caught.value.path == "items[0].spec.minMember"

    def test_a_pod_that_asks_for_nonsense_makes_its_gang_misconfigured(self):
        objects = [pod_group("g", "q"), pod("p", "g", annotations={"tidesched.io/card-milli": "7000"})]
        assert gangs(*objects)["default/g"].problem.startswith("pod p: annotation tidesched.io/card-milli")

    def test_a_finished_pod_no_longer_matters(self):
        objects = [pod_group("g", "q"), pod("p", "g", phase="Failed", annotations={"tidesched.io/card-milli": "7000"})]
        assert gangs(*objects)["default/g"].problem == ""

    def test_the_owner_of_the_pods_stands_in_for_its_own(self):
        group = gangs(pod_group("g", "q"), pod("p", "g", owner=owned_by("Job", "j")))["default/g"]
        assert (group.owner_kind, group.owner_name) == ("Job", "j")


class TestVolcanoJob:
    @pytest.mark.parametrize(
        ("policies", "of_task", "expected"),
        [
            ([{"event": "PodEvicted", "action": "AbortJob"}], None, "AbortJob"),
            ([{"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"}], None, "RestartJob"),
            ([{"event": "*", "action": "TerminateJob"}], None, "TerminateJob"),
            ([{"event": "PodFailed", "action": "AbortJob"}], None, ""),
            (
                [{"event": "PodEvicted", "action": "AbortJob"}],
                [{"event": "PodEvicted", "action": "RestartPod"}],
                "RestartPod",
            ),
            (
                [{"event": "PodEvicted", "action": "RestartPod"}, {"event": "*", "action": "AbortJob"}],
                None,
                "RestartPod",
            ),
            (None, [{"event": "*", "action": "RestartJob"}], "RestartJob"),
            (None, None, ""),
        ],
    )
    def test_what_an_eviction_does(self, policies, of_task, expected):
        body = job("j", "q", 2)
        body["spec"]["policies"] = policies
        body["spec"]["tasks"][0]["policies"] = of_task
        group = gangs(body, pod_group("j", "q", owner=owned_by("Job", "j")))["default/j"]
        assert group.evicted_policy is EvictedPolicy(expected)

    def test_where_roles_differ_the_one_that_fells_the_gang_wins(self):
        body = job("j", "q", 2)
        body["spec"]["tasks"] = [
            {"name": "a", "policies": [{"event": "PodEvicted", "action": "RestartPod"}]},
            {"name": "b", "policies": [{"event": "PodEvicted", "action": "RestartJob"}]},
        ]
        assert gangs(body)["default/j-uid-j"].evicted_policy is EvictedPolicy.RESTART_JOB

    def test_a_job_without_a_podgroup_gets_the_one_its_controller_makes(self):
        template = {
            "metadata": {"annotations": {"volcano.sh/card.name": "NVIDIA-H200"}},
            "spec": {"containers": [{"resources": {"requests": {"cpu": 2, "memory": "1Gi", "nvidia.com/gpu": 4}}}]},
        }
        body = job(
            "j", "q", 3, evicted="AbortJob", min_available=2, template=template, annotations={"volcano.sh/x": "y"}
        )
        body["spec"]["priorityClassName"] = "pc-low"
        group = gangs(body, priority_classes(), H200)["default/j-uid-j"]
        assert (group.made, group.min_member, group.replicas, group.waits_for_admission) == (True, 2, 3, True)
        assert (group.priority, group.queue, group.owner_kind) == (20000, "q", "Job")
        assert group.min_resources == Amount(4000, 2048)
        assert group.card_request == {"NVIDIA-H200": 8000}
        assert group.min_scalars == {"nvidia.com/gpu": 8}
        assert group.annotations == {"volcano.sh/x": "y"}

    def test_the_smallest_set_takes_the_important_roles_first(self):
        def role(name, cpu, priority, replicas):
            spec = {"priorityClassName": priority, "containers": [{"resources": {"requests": {"cpu": cpu}}}]}
            return {"name": name, "replicas": replicas, "template": {"spec": spec}}

        body = job("j", "q", 1, min_available=3)
        body["spec"]["tasks"] = [role("worker", 1, "pc-low", 4), role("master", 8, "pc-high", 1)]
        assert gangs(body, priority_classes())["default/j-uid-j"].min_resources.cpu_milli == 10000

    def test_an_ended_job_needs_no_podgroup_and_an_aborted_one_is_suspended(self):
        ended, aborted = job("e", "q", 1), job("a", "q", 1)
        ended["status"] = {"state": {"phase": "Completed"}}
        aborted["status"] = {"state": {"phase": "Aborted"}}
        assert {key: group.suspended for key, group in gangs(ended, aborted).items()} == {"default/a-uid-a": True}

    def test_a_job_of_another_scheduler_is_none_of_ours(self):
        body = job("j", "q", 1)
        body["spec"]["schedulerName"] = "default-scheduler"
        assert gangs(body) == {}

    def test_its_podgroup_of_any_name_is_found_by_the_owner(self):
        found = gangs(training("t", "q", 2, "NVIDIA-H200", evicted="RestartJob"), H200)
        assert list(found) == ["default/t"]
        assert found["default/t"].evicted_policy is EvictedPolicy.RESTART_JOB
        assert found["default/t"].replicas == 2

    def test_a_negative_quantity_in_a_template_names_its_place(self):
        template = {"spec": {"containers": [{"resources": {"limits": {"memory": "-1Gi"}}}]}}
        with pytest.raises(BadInput) as caught:
            snapshot(job("j", "q", 1, template=template))
        assert caught.value.path == "items[0].spec.tasks[0].template.spec.containers[0].resources.limits.memory"


class TestMade:
    def test_replicas_of_one_set_share_one(self):
        owner = owned_by("ReplicaSet", "web-5f")
        pods = [pod(f"web-5f-{i}", owner=owner, created=10 + i, priority="pc-high", cpu=2) for i in range(3)]
        deployment = workload("Deployment", "web", annotations={"volcano.sh/service.type": "inference", "other": "x"})
        replica_set = workload("ReplicaSet", "web-5f", owner="web", annotations={"volcano.sh/preemptable": "false"})
        found = gangs(pods, deployment, replica_set, priority_classes())
        assert list(found) == ["default/podgroup-uid-web-5f"]
        group = found["default/podgroup-uid-web-5f"]
        assert (group.made, group.min_member, group.replicas, group.created) == (True, 1, 3, now(10))
        assert (group.service_type, group.preemptable, group.priority) == ("inference", False, 80000)
        assert group.min_resources == Amount(2000, 100)
        assert group.annotations == {"volcano.sh/service.type": "inference", "volcano.sh/preemptable": "false"}

    def test_the_deployment_is_found_by_name_where_the_replica_set_is_missing(self):
        pods = pod("web-5f-a", owner=owned_by("ReplicaSet", "web-5f"))
        deployment = workload("Deployment", "web", annotations={"volcano.sh/service.type": "inference"})
        assert gangs(pods, deployment)["default/podgroup-uid-web-5f"].service_type == "inference"

    def test_the_annotations_of_the_pod_win(self):
        notes = {"volcano.sh/preemptable": "true", "volcano.sh/card.name": "NVIDIA-H200"}
        pods = pod("w", owner=owned_by("ReplicaSet", "rs"), annotations=notes)
        group = gangs(pods, workload("ReplicaSet", "rs", annotations={"volcano.sh/preemptable": "false"}))[
            "default/podgroup-uid-rs"
        ]
        assert group.preemptable is True
        assert "volcano.sh/card.name" not in group.annotations

    def test_group_min_member_of_the_workload(self):
        pods = pod("w", owner=owned_by("ReplicaSet", "rs"), cpu=1)
        notes = {"scheduling.volcano.sh/group-min-member": "4"}
        group = gangs(pods, workload("ReplicaSet", "rs", annotations=notes))["default/podgroup-uid-rs"]
        assert (group.min_member, group.min_resources.cpu_milli) == (4, 4000)

    @pytest.mark.parametrize(
        ("version", "kind", "replicas"),
        [("apps/v1", "StatefulSet", 3), ("apps/v1", "DaemonSet", 0), ("batch/v1", "Job", 0)],
    )
    def test_owners_right_above_their_pods_say_the_same(self, version, kind, replicas):
        owner = {**owned_by(kind, "w"), "apiVersion": version}
        notes = {"scheduling.volcano.sh/group-min-member": "2", "volcano.sh/service.type": "training", "other": "x"}
        above = {**workload(kind, "w", replicas=3, annotations=notes), "apiVersion": version}
        group = gangs(pod("w-0", owner=owner, cpu=1), above)["default/podgroup-uid-w"]
        assert (group.min_member, group.replicas, group.service_type) == (2, replicas, "training")
        assert (group.annotations, group.min_resources.cpu_milli) == ({"volcano.sh/service.type": "training"}, 2000)

    def test_a_podgroup_made_for_a_workload_is_revised_where_that_says_otherwise_now(self):
        owner = {**owned_by("StatefulSet", "w"), "apiVersion": "apps/v1"}
        builder = SnapshotBuilder()
        made = pod_group("podgroup-uid-w", "q", 1, owner=owner, annotations={"tidesched.io/made-for": "StatefulSet/w"})
        made["spec"]["minResources"] = {"cpu": "1000m", "memory": "100Mi"}
        queue_name = {"scheduling.volcano.sh/queue-name": "q"}
        builder.upsert(made)
        builder.upsert(pod("w-0", owner=owner, cpu=1, annotations=queue_name))

        def revisions(**notes):
            notes = {key.replace("__", "/"): text for key, text in notes.items()}
            body = workload("StatefulSet", "w", replicas=3, annotations=notes)
            builder.take({**body, "apiVersion": "apps/v1"})
            standing = builder.build().pod_groups[0]
            assert (standing.min_member, standing.replicas, standing.made) == (1, 3, False)
            return builder.revisions()

        assert revisions() == {}
        least = {"scheduling.volcano.sh__group-min-member": "2"}
        (revised,) = revisions(**least).values()
        assert (revised.min_member, revised.min_resources.cpu_milli, revised.queue) == (2, 2000, "q")
        assert revisions(**{"volcano.sh__x": "y"})["default/podgroup-uid-w"].annotations == {"volcano.sh/x": "y"}
        assert revisions(**{"scheduling.volcano.sh__group-min-member": "many"}) == {}, (
            "what cannot be read changes nothing"
        )
        assert revisions(**least)
        builder.delete("StatefulSet", "default", "w")
        builder.build()
        assert builder.revisions() == {}

    def test_the_queue_is_said_by_pod_then_namespace_then_default(self):
        namespace = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "ns", "annotations": {"scheduling.volcano.sh/queue-name": "of-ns"}},
        }
        found = gangs(
            namespace,
            pod("a", namespace="ns", annotations={"scheduling.volcano.sh/queue-name": "own"}),
            pod("b", namespace="ns"),
            pod("c"),
        )
        assert {key: group.queue for key, group in found.items()} == {
            "ns/podgroup-uid-ns-a": "own",
            "ns/podgroup-uid-ns-b": "of-ns",
            "default/podgroup-uid-default-c": "default",
        }

    def test_by_label_of_the_coscheduling_plugin(self):
        labels = {
            "pod-group.scheduling.sigs.k8s.io/name": "tf",
            "pod-group.scheduling.sigs.k8s.io/min-available": "2",
        }
        found = gangs([pod(f"p{i}", labels=labels) for i in range(3)])
        assert {key: group.min_member for key, group in found.items()} == {"default/tf": 2}

    @pytest.mark.parametrize("text", ["many", "0", "-2"])
    def test_a_size_that_is_no_number_is_a_problem(self, text):
        labels = {
            "pod-group.scheduling.sigs.k8s.io/name": "tf",
            "pod-group.scheduling.sigs.k8s.io/min-available": text,
        }
        assert "is not a whole number above zero" in gangs(pod("p", labels=labels))["default/tf"].problem

    def test_a_podgroup_that_pods_name_and_nobody_made_must_not_start(self):
        group = gangs(pod("p", "lost"))["default/lost"]
        assert group.problem == "its pods name the PodGroup default/lost, which does not exist"

    def test_a_priority_of_the_pod_itself_counts(self):
        classes = priority_class("c", 7)
        assert gangs(pod("p", spec={"priority": 9}), classes)["default/podgroup-uid-default-p"].priority == 9

    def test_pods_of_other_schedulers_get_none(self):
        assert gangs(pod("p", scheduler="default-scheduler")) == {}
        taken = snapshot(pod("p", scheduler="mine"), schedulers=("mine",))
        assert len(taken.pod_groups) == 1


class TestFoundingKinds:
    def test_batch_process(self):
        body = {
            "apiVersion": "workspace.brainpp.cn/v1alpha1",
            "kind": "BatchProcess",
            "metadata": {"name": "b", "namespace": "ns", "annotations": {"scheduling.volcano.sh/queue-name": "q"}},
            "spec": {
                "podGroup": {"replicas": 4, "minAvailable": 2, "timeoutSeconds": 10},
                "simpleProcesses": [
                    {"replicas": 2, "minAvailable": 1, "resources": {"limits": {"cpu": 2, "memory": 2048}}},
                    {"replicas": 2, "minAvailable": 1},
                ],
            },
        }
        taken = snapshot(body, queue("q"))
        (group,) = taken.pod_groups
        assert (group.key, group.min_member, group.replicas, group.queue) == ("ns/b", 2, 4, "q")
        assert group.min_task_member == {"process-0": 1, "process-1": 1}
        assert group.annotations["tidesched.io/schedule-timeout-seconds"] == "10"
        assert [(p.name, p.cpu_milli, p.memory_mib, p.role) for p in taken.pods] == [
            ("b-process-0-0", 2000, 2048, "process-0"),
            ("b-process-0-1", 2000, 2048, "process-0"),
            ("b-process-1-0", 0, 0, "process-1"),
            ("b-process-1-1", 0, 0, "process-1"),
        ]

    def test_tf_job_and_pods_that_exist_already(self):
        labels = {
            "pod-group.scheduling.sigs.k8s.io/name": "tf",
            "pod-group.scheduling.sigs.k8s.io/min-available": "3",
        }
        template = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}]},
        }
        body = {
            "apiVersion": "kubeflow.org/v1",
            "kind": "TFJob",
            "metadata": {"name": "t"},
            "spec": {"tfReplicaSpecs": {"PS": {"template": template}, "Worker": {"replicas": 2, "template": template}}},
        }
        taken = snapshot(body)
        assert [(g.key, g.min_member, g.replicas) for g in taken.pod_groups] == [("default/tf", 3, 3)]
        assert [p.name for p in taken.pods] == ["t-ps-0", "t-worker-0", "t-worker-1"]
        assert taken.pods[1].scalars == {"nvidia.com/gpu": 1}

        own = [pod(f"t-{i}", labels=labels, owner=owned_by("TFJob", "t")) for i in range(3)]
        taken = snapshot(body, own)
        assert [p.name for p in taken.pods] == ["t-0", "t-1", "t-2"]
        assert [g.min_member for g in taken.pod_groups] == [3]
