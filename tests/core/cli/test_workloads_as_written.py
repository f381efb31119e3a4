"""What a workload says of itself, however it says it, reaches the session."""

import pytest

from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from tests import builders as b

CARD = "NVIDIA-GeForce-RTX-4090"
QUEUES = b.listing(
    b.node("n1", CARD, 8),
    b.priority_classes(),
    b.queue("web", {CARD: 8}, **b.INFERENCE),
    b.queue("train", {CARD: 8}, **b.TRAINING),
)["items"]


def without_name(pod):
    """The pod as a file written by hand has it: its owner is there, the name of its PodGroup is not."""
    del pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"]
    return pod


class TestPreemptionPolicyOfAClass:
    CLASS = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "polite"},
        "value": 80000,
        "preemptionPolicy": "Never",
    }

    def claim(self, decided, naming, **of_class):
        full = b.training("t", "train", 1, CARD, 8, nodes=["n1"])
        return decided(QUEUES, {**self.CLASS, **of_class}, full, b.inference("s", "web", 1, CARD, 4, priority=naming))

    def test_a_pod_that_only_names_the_class_takes_nothing_back(self, decided):
        assert self.claim(decided, "polite").evictions == []

    def test_nor_does_one_of_the_default_class(self, decided):
        assert self.claim(decided, "", globalDefault=True).evictions == []

    def test_another_class_takes_back(self, decided):
        assert self.claim(decided, "pc-high").evictions == ["t-0"]


class TestPodsOfAJob:
    def job(self, *, named=(), group=None, pods=2):
        owner = b.owned_by("Job", "j")
        members = [b.pod(f"j-worker-{i}", "j-uid-j", owner=owner, card=CARD) for i in range(pods)]
        members = [pod if i in named else without_name(pod) for i, pod in enumerate(members)]
        made = [] if group is None else [b.pod_group(group, "train", 2, phase="Inqueue")]
        return [*QUEUES, b.job("j", "train", 2, min_available=2), *made, *members]

    @pytest.mark.parametrize("named", [(), (0,), (1,)])
    @pytest.mark.parametrize("group", [None, "j-uid-j", "j"])
    def test_belong_to_its_gang_whether_they_name_it_or_not(self, decided, named, group):
        objects = self.job(named=named, group=group)
        if group == "j":
            for pod in objects[-2:]:
                if pod["metadata"]["annotations"].get("scheduling.k8s.io/group-name"):
                    pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = "j"
        found = decided(*objects)
        assert list(found.gangs) == [group or "j-uid-j"]
        assert found.binds == {"j-worker-0": "n1", "j-worker-1": "n1"}

    def test_one_of_two_alone_does_not_start(self, decided):
        found = decided(*self.job(pods=1))
        assert found.binds == {}
        assert found.codes == {"j-uid-j": "GangIncomplete"}

    def test_without_the_job_they_stand_for_themselves(self, decided):
        objects = [body for body in self.job() if not isinstance(body, dict) or body["kind"] != "Job"]
        assert list(decided(*objects).gangs) == ["podgroup-uid-j"]

    def test_the_snapshot_follows_what_comes_later(self):
        *before, first, second = b.listing(*self.job())["items"]
        job = next(body for body in before if body["kind"] == "Job")
        builder = b.SnapshotBuilder()
        for body in (body for body in before if body is not job):
            builder.upsert(body)
        builder.upsert(first)
        assert {pod.group for pod in builder.build().pods} == {"podgroup-uid-j"}
        builder.upsert(job)
        builder.upsert(second)
        assert {pod.group for pod in builder.build().pods} == {"j-uid-j"}
        builder.upsert(b.pod_group("j", "train", 2))
        assert {pod.group for pod in builder.build().pods} == {"j"}
        builder.delete("Pod", "default", second["metadata"]["name"])
        assert [(pod.name, pod.group) for pod in builder.build().pods] == [("j-worker-0", "j")]


class TestAPodGroupOfAJobWithoutPods:
    POLICY = FOUNDING_POLICY

    @pytest.mark.parametrize("name", ["j", "j-uid-j"])
    def test_is_of_the_type_of_its_job(self, decided, name):
        job = b.job("j", "train", 2, min_available=2)
        assert decided(QUEUES, job).gangs["j-uid-j"]["service_type"] == "training"
        found = decided(QUEUES, job, b.pod_group(name, "train", 2))
        assert found.gangs[name]["service_type"] == "training"
        assert list(found.gangs) == [name]

    def test_also_where_an_annotation_of_the_job_says_so(self, decided):
        job = b.job("j", "train", 2, min_available=2, annotations={"volcano.sh/service.type": "inference"})
        found = decided(QUEUES, job, b.pod_group("j", "train", 2))
        assert found.gangs["j"]["service_type"] == "inference"


class TestRoles:
    def test_a_label_names_the_role_too(self, decided):
        group = b.pod_group("g", "train", 2, phase="Inqueue")
        group["spec"]["minTaskMember"] = {"ps": 1, "worker": 1}
        ps = b.pod("g-ps-0", "g", labels={"volcano.sh/task-spec": "ps"})
        worker = b.pod("g-w-0", "g", role="worker", labels={"volcano.sh/task-spec": "ps"})
        assert set(decided(QUEUES, group, ps, worker).binds) == {"g-ps-0", "g-w-0"}
        assert decided(QUEUES, group, ps, b.pod("g-ps-1", "g", labels={"volcano.sh/task-spec": "ps"})).binds == {}


class TestPodsThatAreBeingDeleted:
    def test_one_without_a_node_is_not_in_place(self, decided):
        gang = b.training("t", "train", 2, CARD, 1, deleted=900)
        found = decided(QUEUES, gang)
        assert found.gangs["t"]["phase"] != "Running"
        assert found.gangs["t"]["ready"] == 0
        assert found.codes == {}, "all of it is on its way out"

    def test_a_gang_that_loses_one_of_two_says_what_it_lacks(self, decided):
        group, first, second = b.training("t", "train", 2, CARD, 1, nodes=["n1"])[1:]
        second["metadata"]["deletionTimestamp"] = b.at(900)
        found = decided(QUEUES, group, first, second)
        assert found.codes == {"t": "GangIncomplete"}
        conditions = found.gangs["t"]["conditions"]
        assert [condition["type"] for condition in conditions] == ["Unschedulable"]

    def test_a_gang_of_which_all_leave_says_nothing(self, decided):
        found = decided(QUEUES, b.training("t", "train", 2, CARD, 1, nodes=["n1"], deleted=900))
        assert found.codes == {}
