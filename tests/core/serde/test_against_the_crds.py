"""The objects that the tests are made of are ones that a Volcano cluster would accept."""

import os
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests import builders as b

CRDS = Path(os.environ.get("TIDESCHED_DATA", "../shared/data")) / "volcano-crds"


def schema_of(name):
    file = CRDS / name
    if not file.exists():
        pytest.skip(f"{file} is not there; TIDESCHED_DATA names the folder of the shared data")
    document = yaml.safe_load(file.read_text())
    (version,) = [v for v in document["spec"]["versions"] if v["storage"]]
    return version["schema"]["openAPIV3Schema"]


@pytest.mark.parametrize(
    ("crd", "objects"),
    [
        (
            "scheduling.volcano.sh_queues.yaml",
            [b.queue("q", {"A": 8}, **b.INFERENCE, cpu=4, memory="4Gi", service_type="inference", parent="root")],
        ),
        (
            "scheduling.volcano.sh_podgroups.yaml",
            [b.pod_group("g", "q", 4, priority="pc-low", card_request={"A|B": 4}, min_resources={"cpu": 4})],
        ),
        ("batch.volcano.sh_jobs.yaml", [b.job("j", "q", 4, evicted="AbortJob")]),
    ],
)
def test_the_builders_make_valid_objects(crd, objects):
    schema = schema_of(crd)
    for body in objects:
        jsonschema.validate(body, schema)


def test_the_founding_objects_are_valid_and_readable():
    file = CRDS.parent / "founding" / "objects.yaml"
    if not file.exists():
        pytest.skip(f"{file} is not there; TIDESCHED_DATA names the folder of the shared data")
    documents = list(yaml.safe_load_all(file.read_text()))
    queues = schema_of("scheduling.volcano.sh_queues.yaml")
    for body in documents:
        if body["kind"] == "Queue":
            jsonschema.validate(body, queues)
    taken = b.snapshot([body for body in documents if "namespace" not in body])
    assert {queue.name for queue in taken.queues} == {"default", "queue-inference", "queue-training"}
    assert [group.key for group in taken.pod_groups] == ["default/training-low"]
