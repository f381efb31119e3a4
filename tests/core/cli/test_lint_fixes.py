"""What lint advises is right: the fix, written where lint says, ends the finding, and a session takes the result."""

import copy
import json

import pytest
import yaml

from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from tests import builders as b

CARD = "NVIDIA-H200"
OBJECTS = b.listing(
    b.node("n1", CARD, 64), b.priority_classes(), b.queue("research", {CARD: 64}), b.queue("default", {CARD: 64})
)["items"]


def template(**notes):
    notes = {"volcano.sh/card.name": CARD, "scheduling.volcano.sh/queue-name": "research", **notes}
    limits = {"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": 1}
    return {
        "metadata": {"annotations": {key: text for key, text in notes.items() if text is not None}},
        "spec": {"schedulerName": "volcano", "containers": [{"name": "main", "resources": {"limits": limits}}]},
    }


def job(replicas=2, of_template=None, **spec):
    body = {
        "schedulerName": "volcano",
        "queue": "research",
        "minAvailable": replicas,
        "maxRetry": 100,
        "policies": [{"events": ["PodEvicted", "PodFailed"], "action": "RestartJob"}],
        "tasks": [{"name": "w", "replicas": replicas, "template": of_template or template()}],
    }
    notes = spec.pop("annotations", {})
    body = {key: value for key, value in {**body, **spec}.items() if value is not None}
    meta = {"name": "train", "namespace": "default", "annotations": notes}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": meta, "spec": body}


def service(**notes):
    body = {"replicas": 1, "selector": {}, "template": template(**{"volcano.sh/preemptable": "false", **notes})}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "chat", "annotations": {}},
        "spec": body,
    }


NOTES, OF_POD = ("metadata", "annotations"), ("spec", "template", "metadata", "annotations")
CASES = [
    ("bad_value", job(annotations={"volcano.sh/service.type": "trainning"}), NOTES),
    ("bad_value", service(**{"volcano.sh/service.type": "inferrence"}), OF_POD),
    ("card-request-differs", job(annotations={"volcano.sh/card.request": json.dumps({CARD: 1})}), NOTES),
    ("bad_quantity", job(annotations={"volcano.sh/card.request": "two"}), NOTES),
    ("gang-not-whole", job(minAvailable=1), ("spec",)),
    ("gang-not-whole", job(minAvailable=0), ("spec",)),
    ("gang-never-complete", job(minAvailable=3), ("spec",)),
    ("gang-never-complete", job(replicas=0), ("spec", "tasks", 0)),
    ("no-evicted-policy", job(policies=None), ("spec",)),
    ("scheduler-not-named", job(schedulerName=None), ("spec",)),
    ("card-not-named", service(**{"volcano.sh/card.name": None}), OF_POD),
    ("inference-not-protected", service(**{"volcano.sh/preemptable": None}), OF_POD),
    ("no-queue", service(**{"scheduling.volcano.sh/queue-name": None}), OF_POD),
    ("no-card-quota", b.queue("q"), NOTES),
    ("bad_quantity", b.queue("q", annotations={"volcano.sh/card.quota": "8"}), NOTES),
    ("inference-reclaimable", b.queue("q", {CARD: 1}, service_type="inference"), ("spec",)),
    ("training-not-reclaimable", b.queue("q", {CARD: 1}, service_type="training", reclaimable=False), ("spec",)),
]
# What a fix leaves to its reader, and what stands behind it.
BLANKS = {"<card type>": CARD, "<how many>": "8", "<queue>": "research"}
REMARKS = (", unless", " in spec.template", " in the annotations", " in a task")


def applied(body, fix, path):
    """The object with the fix written where the path says."""
    for blank, word in BLANKS.items():
        fix = fix.replace(blank, word)
    for remark in REMARKS:
        fix = fix.partition(remark)[0]
    written = yaml.safe_load(fix)
    body = copy.deepcopy(body)
    place = body
    for step in path:
        place = place[step]
    assert all(not isinstance(value, dict) for value in written.values()), f"no annotation is a mapping: {fix}"
    place.update(written)
    return body


@pytest.mark.parametrize(("code", "body", "path"), CASES, ids=[f"{i} {case[0]}" for i, case in enumerate(CASES)])
def test_the_fix_helps(command, code, body, path):
    def found(obj):
        _, out, err = command("lint", "--workload", "w", "--output", "json", w=obj)
        assert out, err
        return {finding["code"]: finding for finding in json.loads(out)}

    before = found(body)
    assert code in before
    mended = applied(body, before[code]["fix"], path)
    assert code not in found(mended)
    assert not [finding for finding in found(mended).values() if finding["severity"] == "error"]
    session = command("run", "--snapshot", "s", "--conf", "p", "--output", "json",
                      s=b.listing(*OBJECTS[:-2], mended, *(q for q in OBJECTS[-2:])), p=FOUNDING_POLICY)  # fmt: skip
    assert session[0] == 0, session[2]
    assert "Misconfigured" not in session[1]


def test_lint_and_run_agree_on_a_service_type(command):
    body = job(annotations={"volcano.sh/service.type": "trainning"})
    _, out, _ = command("lint", "--workload", "w", "--output", "json", w=body)
    assert [finding["severity"] for finding in json.loads(out)] == ["error"]
    _, out, _ = command("run", "--snapshot", "s", "--conf", "p", "--output", "json", s=b.listing(*OBJECTS, body),
                        p=FOUNDING_POLICY)  # fmt: skip
    assert [reason["code"] for reason in json.loads(out)["reasons"]] == ["Misconfigured"]


def test_a_card_of_another_vendor_is_the_nodes_to_tell(command):
    other = template(**{"volcano.sh/card.name": "Ascend910"})
    other["spec"]["containers"][0]["resources"]["limits"] = {"huawei.com/npu": 1}
    _, out, _ = command("lint", "--workload", "w", "--output", "json", w=job(of_template=other))
    assert "card-not-asked" not in out


WORDS = [("reserve", "locks nodes"), ("elect", "chooses"), ("reclaim", "takes room back")]


@pytest.mark.parametrize(("action", "word"), WORDS)
def test_each_action_before_allocate_has_its_own_words(command, action, word):
    policy = FOUNDING_POLICY.replace("enqueue, allocate, backfill, reclaim", f"enqueue, {action}, allocate, backfill")
    _, out, _ = command("lint", "--conf", "p", "--output", "json", p=policy)
    (finding,) = [finding for finding in json.loads(out) if finding["code"] == "before-allocate"]
    assert word in finding["message"]
