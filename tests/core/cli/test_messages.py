"""What is wrong is said with its place and what would be right."""

import json
import re
from pathlib import Path

import pytest

from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from tests import builders as b

LIST = '{"apiVersion": "v1", "kind": "List", "items": [%s]}'
GROUP = '{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": %s}'
SHAPE = """actions: "enqueue, allocate"
tiers:
- plugins:
  - name: requested-to-capacity-ratio
    arguments:
      weight: 2
      functionshape:
      - {utilization: 50, score: 3}
      - {utilization: %s, score: %s}
"""
KUBE = """apiVersion: kubescheduler.config.k8s.io/v1alpha1
kind: KubeSchedulerConfiguration
plugins:
  score:
    enabled:
    - name: RequestedToCapacityRatio
pluginConfig:
- name: RequestedToCapacityRatio
  args:
    functionshape:
    - utilization: 50
      score: 0
    - utilization: %s
      score: %s
    resourcetoweightmap: {cpu: 1}
"""
OWNERS = """actions: "enqueue, allocate"
tiers:
- plugins:
  - name: capacity-card
    arguments:
      podOwnerReferenceToServiceType:
        ReplicaSet: inference
        Job: trainning
"""


@pytest.fixture
def refused(command):
    def run(snapshot=LIST % "", policy=FOUNDING_POLICY):
        arguments = ("run", "--snapshot", "snapshot", "--conf", "policy", "--output", "json")
        status, _, err = command(*arguments, snapshot=snapshot, policy=policy)
        assert status == 2, err
        return json.loads(err)["error"]

    return run


@pytest.fixture
def found(command):
    """What a session says of the one object that it cannot read."""

    def run(snapshot):
        arguments = ("run", "--snapshot", "snapshot", "--conf", "policy", "--output", "json")
        status, out, err = command(*arguments, snapshot=snapshot, policy=FOUNDING_POLICY)
        assert status == 0, err
        (finding,) = json.loads(out)["findings"]
        return finding

    return run


class TestKeysThatStandTwice:
    YAML = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: a\n    name: b\n"

    def test_in_yaml(self, refused):
        error = refused(self.YAML)
        assert (error["code"], error["line"], error["path"]) == ("duplicate_key", 8, "items[0].metadata.name")
        assert error["message"] == "'name' is in one mapping twice, first on line 7"

    def test_in_a_later_document(self, refused):
        error = refused(f"apiVersion: v1\nkind: Node\nmetadata: {{name: a}}\n---\n{self.YAML}")
        assert (error["code"], error["line"], error["path"]) == (
            "duplicate_key", 12, "documents[1].items[0].metadata.name",
        )  # fmt: skip

    @pytest.mark.parametrize("space", ["", " ", "\t"])
    def test_in_json(self, refused, space):
        node = (
            f'{{"apiVersion": "v1", "kind": "Node", "metadata": {{"name": "a"}},\n{space}"spec": {{}}, "spec": {{}}}}'
        )
        error = refused(LIST % node)
        assert (error["code"], error["value"]) == ("duplicate_key", "spec")
        assert error["path"].endswith("spec")
        if space != "\t":
            assert (error["line"], error["path"]) == (2, "items[0].spec")

    def test_what_looks_like_one_is_none(self, decided):
        odd = {'a":': '":":"', "b\\": '\\":', "c": '"c": "c": '}
        assert decided(b.node("n", labels={"x": "y"}), b.queue("q", annotations=odd)).codes == {}

    def test_merged_keys_of_yaml_are_none(self, command):
        text = "x: &x {apiVersion: v1, kind: Node}\n<<: *x\nkind: List\nitems: []\n"
        status, _, err = command("run", "--snapshot", "s", "--conf", "p", s=text, p=FOUNDING_POLICY)
        assert status == 0, err

    def test_lint_finds_it_too(self, command):
        status, _, err = command("lint", "--workload", "job", job="kind: Queue\nkind: Queue\n")
        assert (status, "[duplicate_key]" in err) == (2, True)


class TestWhatIsOfAnotherType:
    @pytest.mark.parametrize(
        ("spec", "message", "hint"),
        [
            ('{"minMember": "3"}', "a whole number is expected here, not a text", "without quotes: 3"),
            ('{"queue": 8}', "a text is expected here, not a whole number", 'in quotes: "8"'),
            ('{"minMember": 99999999999}', "a whole number <= 2147483647 is expected here", "a number <= 2147483647"),
            ('{"minTaskMember": []}', "a mapping is expected here, not a list", None),
        ],
    )
    def test_is_said_in_words(self, found, spec, message, hint):
        finding = found(LIST % (GROUP % spec))
        assert (finding["code"], finding["message"].partition(" (it is")[0]) == ("malformed_object", message)
        assert finding["fix"] if hint is None else finding["fix"] == hint

    def test_a_field_that_is_missing(self, found):
        finding = found(LIST % '{"apiVersion": "v1", "kind": "Node", "metadata": {}}')
        assert (finding["object"], finding["message"]) == ("items[0]", "the field name is missing")
        assert finding["fix"] == "add name"


class TestAmounts:
    def test_a_part_of_a_card(self, found):
        finding = found(b.listing(b.pod("p", resources={"nvidia.com/gpu": 0.5})))
        assert (finding["object"], finding["code"]) == ("Pod default/p", "bad_quantity")
        assert "tidesched.io/card-milli" in finding["fix"]

    @pytest.mark.parametrize(
        ("resource", "amount", "most"),
        [
            ("cpu", "1000000000001", "1000000000 cores"),
            ("memory", "4Ei", "1Ei"),
            ("example.com/fpga", "4Ei", "1125899906842624"),
        ],
    )
    def test_the_largest_amount_has_a_unit_and_an_absurd_node_stops_nothing(self, decided, resource, amount, most):
        n = b.node("n")
        n["status"]["allocatable"][resource] = amount
        found = decided(n, b.pod("fine"), naive=False)
        assert found.binds == {"fine": "n"}
        assert "node n: status.allocatable" in found.remarks
        assert f"'{amount}' is more than the largest amount that is counted, {most}" in found.remarks

    def test_a_ceiling_of_a_queue_that_is_out_of_reach_is_no_limit(self, decided):
        queue = b.queue("q", capability={"cpu": "1e30", "memory": "7630840000Gi", "example.com/fpga": "4Ei"})
        found = decided(b.node("n", "A", 8), queue, *b.inference("g", "q", 1, priority=""), naive=False)
        assert found.binds == {"g-0": "n"}

    def test_more_cards_than_a_node_can_have_are_none(self, decided):
        gang = b.inference("g", "q", 1, "A", priority="")
        found = decided(b.node("n", "A", 10**12), b.node("m", "A", 8), b.queue("q", {"A": 8}), *gang, naive=False)
        assert found.binds == {"g-0": "m"}
        assert "node n: nvidia.com/gpu is left aside" in found.remarks

    @pytest.mark.parametrize(
        ("resources", "place"),
        [
            ({"nvidia.com/gpu": 10**16}, 'spec.containers[0].resources.requests["nvidia.com/gpu"]'),
            ({"cpu": "1e60"}, "spec.containers[0].resources.requests.cpu"),
            ({"memory": "4Ei"}, "spec.containers[0].resources.requests.memory"),
        ],
    )
    @pytest.mark.parametrize("node", ["", "n1"])
    def test_an_absurd_pod_is_a_matter_of_its_gang_alone(self, decided, resources, place, node):
        wrong = [b.pod_group("g", "default", 1, phase="Inqueue"), b.pod("g-0", "g", resources=resources, node=node)]
        found = decided(b.node("n1", "A", 8), b.node("n2"), *wrong, b.pod("fine"), naive=False)
        assert [finding["path"] for finding in found.document["findings"]] == [place]
        assert found.binds.keys() == {"fine"}
        if node:
            assert found.binds == {"fine": "n2"}, "nobody can say what it leaves of its node"
        else:
            assert found.codes == {"g": "Misconfigured"}
            assert place in found.reasons["g"]["message"]

    def test_so_is_an_absurd_job(self, decided):
        spec = {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 10**16}}}]}
        job = b.job("j", "default", 1, template={"spec": spec})
        assert decided(b.node("n1"), job, b.pod("fine"), naive=False).codes == {"j-uid-j": "Misconfigured"}


class TestAPodThatIsNeitherProtectedNorNot:
    def test_makes_its_gang_misconfigured(self, decided):
        found = decided(b.node("n1", "A", 8), b.training("t", "default", 1, "A", preemptable="flase"))
        assert found.codes == {"t": "Misconfigured"}
        assert "'flase' is neither true nor false" in found.reasons["t"]["message"]

    def test_is_a_finding_where_it_runs_and_leaves_its_node_open(self, decided):
        pod = b.pod("p", "t", node="n1", preemptable="flase")
        found = decided(b.node("n1"), b.pod_group("t", "default", 1, phase="Running"), pod, b.pod("w", cpu=1))
        (told,) = found.document["findings"]
        assert (told["object"], told["path"]) == ("Pod default/p", 'metadata.annotations["volcano.sh/preemptable"]')
        assert told["message"] == "'flase' is neither true nor false"
        assert found.binds == {"w": "n1"}

    @pytest.mark.parametrize("text", ["true", "false", "False", "1", "f"])
    def test_other_spellings_are_fine(self, decided, text):
        assert decided(b.node("n1"), b.pod("p", preemptable=text)).codes == {}


FALLING = [{"utilization": 50, "score": 3}, {"utilization": 20, "score": 3}]


class TestPolicies:
    @pytest.mark.parametrize(
        ("policy", "line", "path", "value"),
        [
            (SHAPE % (120, 3), 9, "tiers[0].plugins[0].arguments.functionshape[1].utilization", 120),
            (SHAPE % (60, "x"), 9, "tiers[0].plugins[0].arguments.functionshape[1].score", "x"),
            (SHAPE % (20, 3), 7, "tiers[0].plugins[0].arguments.functionshape", FALLING),
            (KUBE % (120, 3), 13, "pluginConfig[0].args.functionshape[1].utilization", 120),
            (KUBE % (20, 3), 10, "pluginConfig[0].args.functionshape", [{"utilization": 50, "score": 0}, FALLING[1]]),
            (OWNERS, 8, "tiers[0].plugins[0].arguments.podOwnerReferenceToServiceType.Job", "trainning"),
        ],
    )
    def test_the_place_of_a_bad_argument(self, refused, policy, line, path, value):
        error = refused(policy=policy)
        assert (error["code"], error["line"], error["path"], error["value"]) == ("bad_argument", line, path, value)

    @pytest.mark.parametrize("text", ["plugins:\n- name: gang\n", "name: gang\n", "enableReclaimable: false\n"])
    def test_lost_indentation(self, refused, text):
        assert "indentation" in refused(policy=f'actions: "allocate"\n{text}tiers: []\n')["hint"]

    @pytest.mark.parametrize("text", ["a: b: c\n", "a:\n b: 1\n  c: 2\n", "items: [\n", "a: @x\n"])
    def test_yaml_that_is_none(self, refused, text):
        error = refused(text)
        assert (error["code"], "indent" in error["hint"]) == ("malformed_yaml", True)

    def test_what_is_not_built(self, refused):
        error = refused(policy='actions: "allocate"\ntiers: []\nmetrics: {}\n')
        assert (error["code"], "compatibility: volcano" in error["hint"]) == ("not_built", True)


class TestNamesThatNobodyHas:
    OBJECTS = b.listing(b.node("n1", "NVIDIA-H200", 8), b.queue("training", {"NVIDIA-H200": 8}, **b.TRAINING))["items"]

    def test_a_card(self, decided):
        found = decided(*self.OBJECTS, b.training("t", "training", 1, "NVIDIA-H20"))
        assert found.reasons["t"]["message"] == "No node has the card NVIDIA-H20; did you mean NVIDIA-H200?"
        found = decided(*self.OBJECTS, b.training("t", "training", 1, "NVIDIA-B300"))
        assert found.reasons["t"]["message"] == "No node has the card NVIDIA-B300; there are NVIDIA-H200."
        found = decided(*self.OBJECTS, b.training("t", "training", 1, "Ascend-910"))
        assert found.reasons["t"]["message"] == "No node has the card Ascend-910; there are NVIDIA-H200."

    def test_a_queue(self, decided):
        found = decided(*self.OBJECTS, b.training("t", "trainin", 1, "NVIDIA-H200"))
        assert "queue trainin does not exist; did you mean training?" in found.reasons["t"]["message"]

    @pytest.mark.parametrize(
        ("given", "hint"),
        [
            ("default/lama", "did you mean 'default/llama'?"),
            ("lama", "did you mean 'default/llama'?"),
            ("other/llama", "did you mean 'default/llama'?"),
            ("zzz", "there are default/llama"),
        ],
    )
    def test_a_gang(self, command, given, hint):
        objects = b.listing(*self.OBJECTS, b.training("llama", "training", 1, "NVIDIA-H200"))
        arguments = ("explain", given, "--snapshot", "s", "--conf", "p", "--output", "json")
        status, _, err = command(*arguments, s=objects, p=FOUNDING_POLICY)
        error = json.loads(err)["error"]
        assert (status, error["code"], error["hint"]) == (2, "unknown_gang", hint)

    def test_a_gang_by_its_job(self, command):
        objects = b.listing(*self.OBJECTS, b.job("j", "training", 1))
        arguments = ("--snapshot", "s", "--conf", "p", "--output", "json")
        for given in ("j", "default/j", "j-uid-j"):
            status, out, _ = command("explain", given, *arguments, s=objects, p=FOUNDING_POLICY)
            assert (status, json.loads(out)["podgroup"]) == (0, "default/j-uid-j")


class TestClaimsThatAreNotThere:
    POD = b.pod("p", spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]})

    def test_keep_the_pod_waiting_with_a_reason(self, decided):
        found = decided(b.node("n1"), b.node("n2"), self.POD)
        assert found.binds == {}
        (reason,) = found.reasons.values()
        assert (reason["code"], reason["numbers"]["nodes"]) == ("NoNodeMatches", {"volume claim missing": 2})


class TestExplanations:
    def explained(self, command, *objects):
        arguments = ("explain", "g", "--snapshot", "s", "--conf", "p", "--output", "json")
        status, out, err = command(*arguments, s=b.listing(*objects), p=FOUNDING_POLICY)
        assert status == 0, err
        return json.loads(out)

    def test_a_gang_that_is_bound_now_runs(self, command):
        gang = [b.pod_group("g", "default", 1, phase="Inqueue"), b.pod("g-0", "g")]
        found = self.explained(command, b.node("n1"), *gang)
        assert (found["phase"], found["decision"]) == ("Running", "1 bound now")

    def test_amounts_are_those_of_the_result(self, command):
        asked = {"hugepages-2Mi": "512Mi", "rdma/hca": 2}
        gang = [b.pod_group("g", "default", 1, phase="Inqueue"), b.pod("g-0", "g", resources=asked)]
        few = b.node("a", extended={"hugepages-2Mi": "256Mi", "rdma/hca": 4})
        other = b.node("b", extended={"hugepages-2Mi": "1Gi", "rdma/hca": 1})
        nodes = self.explained(command, few, other, *gang)["members"][0]["nodes"]
        shown = [(node["resource"], node["requested"], node["free"]) for node in nodes]
        assert shown == [("hugepages-2Mi", 512 << 20, 256 << 20), ("rdma/hca", 2, 1)]


class TestReclaimForbidden:
    def test_where_only_taking_back_would_make_room(self, decided):
        shares = [b.pod(f"t-{i}", "t", card="A", milli=milli) for i, milli in enumerate((600, 600, 550))]
        group = b.pod_group("t", "q", 3, phase="Inqueue")
        found = decided(b.node("n1", "A", 2), b.queue("q", {"A": 8}), group, *shares)
        assert found.codes == {"t": "ReclaimForbidden"}


class TestAChoiceOfCards:
    def test_the_remedy_is_the_smallest(self, decided):
        objects = [
            *(b.node(card, card, 8) for card in "AB"),
            b.queue("q", {"A": 5, "B": 3}, **b.TRAINING),
            *(b.training(f"r{card}", "q", 1, card, count, nodes=[card]) for card, count in (("A", 2), ("B", 1))),
            b.training("t", "q", 1, "A|B", 4),
        ]
        reason = decided(*objects).reasons["t"]
        assert (reason["code"], reason["numbers"]["short"]) == ("WaitingForQuota", 1)
        assert reason["remedy"] == {"change": "quota", "queue": "q", "card": "A", "by": 1, "verified": True}
        objects[2]["metadata"]["annotations"]["volcano.sh/card.quota"] = '{"A": 6, "B": 3}'
        assert decided(*objects).binds == {"t-0": "A"}


def test_every_code_of_an_error_is_in_the_docs():
    page = Path("docs/cli.md").read_text()
    code = re.compile(r'(?:BadInput|source\.error|_fault|_complain)\(\s*"([a-z_]+)"')
    named = {found for file in Path("scheduler_core").rglob("*.py") for found in code.findall(file.read_text())}
    assert len(named) > 30
    assert sorted(found for found in named if f"`{found}`" not in page) == []
