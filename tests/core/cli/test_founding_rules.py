"""Rules of the founding documents, as a user of the command line meets them."""

import pytest

from tests import builders as b

COSCHEDULING = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: coscheduling}, {name: predicates}, {name: nodeorder}]
"""
RARE = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - {name: gang}
  - {name: predicates}
  - {name: card-model, arguments: {rareCards: [H200]}}
"""
TURNS = """
actions: "enqueue, allocate%s"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: nodeorder}]
"""
PRODUCT = "nvidia.com/gpu.product"


class TestGroupsGoByThePriorityOfTheirPods:
    def group(self, name, created, pods, priority=None, of_group=""):
        found = [b.pod_group(name, "default", 2, created=created, priority=of_group, phase="Inqueue")]
        for i in range(pods):
            pod = b.pod(f"{name}{i}", name, cpu=1, created=created + i)
            if priority is not None:
                pod["spec"]["priority"] = priority
            found.append(pod)
        return found

    def test_the_higher_one_first(self, decided):
        groups = [*self.group("a", 0, 2, 1), *self.group("z", 5, 2, 9)]
        assert set(decided(b.node("n", cpu=2), *groups, policy=COSCHEDULING).binds) == {"z0", "z1"}

    def test_where_they_are_equal_the_class_of_the_group_decides(self, decided):
        groups = [*self.group("a", 0, 2), *self.group("z", 5, 2, of_group="pc-high")]
        objects = [b.node("n", cpu=2), *b.priority_classes(), *groups]
        assert set(decided(*objects, policy=COSCHEDULING).binds) == {"z0", "z1"}

    def test_then_the_older_group(self, decided):
        groups = [*self.group("z", 0, 2, 3), *self.group("a", 5, 2, 3)]
        assert set(decided(b.node("n", cpu=2), *groups, policy=COSCHEDULING).binds) == {"z0", "z1"}


def affinity(kind, operator, *values, key=PRODUCT):
    term = {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}
    if kind == "required":
        return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}


class TestAWishForARareCard:
    NODE = b.node("n1", "H200", 8, labels={"tidesched.io/card-model": "H200", "zone.example/x": "H200"})

    def pod(self, **spec):
        return b.pod("p", cpu=1, resources={"nvidia.com/gpu": 1}, spec=spec)

    @pytest.mark.parametrize(
        "spec",
        [
            {"affinity": {"nodeAffinity": affinity("required", "In", "H200")}},
            {"affinity": {"nodeAffinity": affinity("required", "In", "A100", "H200")}},
            {"affinity": {"nodeAffinity": affinity("preferred", "In", "H200")}},
            {"affinity": {"nodeAffinity": affinity("required", "In", "H200", key="tidesched.io/card-model")}},
            {"nodeSelector": {PRODUCT: "H200"}},
        ],
    )
    def test_by_selector_or_affinity(self, decided, spec):
        assert decided(self.NODE, self.pod(**spec), policy=RARE).binds == {"p": "n1"}

    @pytest.mark.parametrize(
        "spec",
        [
            {},
            {"affinity": {"nodeAffinity": affinity("required", "NotIn", "A100")}},
            {"affinity": {"nodeAffinity": affinity("preferred", "In", "A100")}},
            {"nodeSelector": {"zone.example/x": "H200"}},
        ],
    )
    def test_others_stay_off_it(self, decided, spec):
        found = decided(self.NODE, self.pod(**spec), policy=RARE)
        assert found.binds == {}
        (reason,) = found.reasons.values()
        assert (reason["code"], reason["numbers"]["nodes"]) == ("NoNodeMatches", {"rare card": 1})


class TestPodsThatAskForNothing:
    IDLE = b.pod("idle")
    IDLE["spec"]["containers"] = [{"name": "main"}]

    @pytest.mark.parametrize("compatibility", ["", "compatibility: volcano"])
    def test_are_placed_by_backfill_alone(self, decided, compatibility):
        naive = not compatibility
        for action, binds in ((", backfill", {"idle": "n"}), ("", {})):
            found = decided(b.node("n"), self.IDLE, policy=compatibility + TURNS % action, naive=naive)
            assert found.binds == binds

    def test_the_reason_names_the_action(self, decided):
        (reason,) = decided(b.node("n"), self.IDLE, policy=TURNS % "").reasons.values()
        assert reason["code"] == "PendingEvaluation"
        assert "action backfill" in reason["message"]

    def gang(self):
        idle = b.pod("g-1", "g")
        idle["spec"]["containers"] = [{"name": "main"}]
        return [b.pod_group("g", "default", 2, phase="Inqueue"), b.pod("g-0", "g", cpu=1), idle]

    def test_a_gang_with_one_starts_whole_or_not_at_all(self, decided):
        objects = [b.node("n"), *self.gang()]
        assert set(decided(*objects, policy=TURNS % ", backfill").binds) == {"g-0", "g-1"}
        assert decided(*objects, policy=TURNS % "").binds == {}

    def test_upstream_starts_the_others_without_it(self, decided):
        policy = "compatibility: volcano" + TURNS % ""
        assert set(decided(b.node("n"), *self.gang(), policy=policy, naive=False).binds) == {"g-0"}

    def test_pods_one_by_one_take_them_like_any_other(self, decided):
        policy = COSCHEDULING.replace(", backfill", "")
        assert decided(b.node("n"), self.IDLE, policy=policy).binds == {"idle": "n"}


class TestAJobThatNamesNoScheduler:
    def job(self):
        job = b.job("j", "train", 1, min_available=1)
        del job["spec"]["schedulerName"]
        return job

    def test_is_volcanos_as_its_webhook_writes_it(self, decided):
        found = decided(b.node("n1", "A", 8), b.queue("train", {"A": 8}, **b.TRAINING), self.job())
        assert found.gangs["j-uid-j"]["phase"] == "Inqueue"

    def test_lint_says_so(self, command):
        status, out, _ = command("lint", "--workload", "job.json", **{"job.json": self.job()})
        assert status == 1
        assert '"scheduler-not-named"' in out
