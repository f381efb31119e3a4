"""A replay seen from outside: the invariants are computed again from its trace, with no code of the engine."""

import csv
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.outside_check import check_trace

DATA = Path(os.environ.get("TIDESCHED_DATA", "../shared/data"))
POD_COLUMNS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
)


def replay(folder, *options):
    """Run the command; its report and the path of its trace."""
    trace = folder / "trace.ndjson"
    command = [sys.executable, "-m", "scheduler_core", "replay", "--output", "json", "--trace", str(trace), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), trace


def write_cluster(folder):
    """A small cluster of three models."""
    lines = ["sn,cpu_milli,memory_mib,gpu,model"]
    for model, nodes, cards in (("T4", 6, 2), ("G2", 4, 8), ("V100M32", 4, 4)):
        lines += [f"{model.lower()}-{n},{16000 * cards},{65536 * cards},{cards},{model}" for n in range(nodes)]
    path = folder / "nodes.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def write_tasks(folder, count=600):
    """Tasks as the trace has them: whole cards, shares, choices, some without a card."""
    rng = random.Random(5)
    lines = [POD_COLUMNS]
    at = 0.0
    for index in range(count):
        at += rng.expovariate(1 / 30)
        qos = rng.choice(("LS", "LS", "BE", "BE", "Burstable"))
        cards, milli = rng.choice(((1, 1000), (1, 1000), (1, 460), (1, 320), (2, 1000), (0, 0)))
        spec = rng.choice(("", "", "T4", "G2|V100M32", "V100M32")) if cards else ""
        life = rng.lognormvariate(6.5, 1.0)
        lines.append(
            f"task-{index:04d},{rng.choice((2000, 4000, 8000))},8192,{cards},{milli},{spec},{qos},Running,"
            f"{at:.0f},{at + life:.0f},{at:.0f}"
        )
    path = folder / "tasks.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def write_tide(folder):
    path = folder / "tide.csv"
    path.write_text("seconds,qps\n0,1\n3600,2\n7200,9\n9000,10\n12600,4\n14400,1\n")
    return path


def write_queues(folder):
    """Queues that leave less than the hardware, so that their limits are met."""
    quotas = {
        "serve-a": ("inference", {"T4": 5, "G2": 12}),
        "serve-b": ("inference", {"V100M32": 8, "G2": 6}),
        "learn-a": ("training", {"T4": 7, "G2": 20}),
        "learn-b": ("training", {"V100M32": 13, "G2": 9}),
    }
    items = [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {
                "name": name,
                "annotations": {"volcano.sh/card.quota": json.dumps(cards), "tidesched.io/service-type": kind},
            },
            "spec": {
                "weight": 1,
                "priority": 80000 if kind == "inference" else 20000,
                "reclaimable": kind == "training",
            },
        }
        for name, (kind, cards) in quotas.items()
    ]
    path = folder / "queues.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path, {name: cards for name, (_, cards) in quotas.items()}


def agree(report, counts, saturated):
    """The report's own figures are those of the trace."""
    assert report["saturated_hours"] == pytest.approx(saturated["three"], abs=0.002)
    assert report["saturated_stretch_hours"] == pytest.approx(saturated["longest"], abs=0.002)
    assert report["saturated_5min_hours"] == pytest.approx(saturated["three_5min"], abs=0.002)
    assert report["saturated_5min_stretch_hours"] == pytest.approx(saturated["longest_5min"], abs=0.002)
    for card, share in report["allocation"].items():
        assert share["saturated_hours"] == pytest.approx(saturated["by_card"].get(card, 0), abs=0.002)
    assert report["binds"] == counts["bind"]
    assert sum(report["evictions"].values()) == counts.get("evict", 0)
    assert report["evictions"]["inference"] == report["quota_violations"] == report["gangs_partial_steps"] == 0
    assert report["refused_writes"] == 0


@pytest.mark.parametrize("own_queues", [False, True], ids=["a-queue-per-model", "queues-of-ones-own"])
def test_a_saturated_tide_keeps_every_rule(tmp_path, own_queues):
    nodes = write_cluster(tmp_path)
    options = [
        *("--nodes", str(nodes), "--pods", str(write_tasks(tmp_path)), "--tide", str(write_tide(tmp_path))),
        *("--gang-size", "3", "--hours", "2"),
    ]
    quotas = None
    if own_queues:
        path, quotas = write_queues(tmp_path)
        options += ["--queues", str(path)]
    report, trace = replay(tmp_path, *options)
    findings, counts, saturated = check_trace(nodes, trace, quotas=quotas, hours=2)
    assert findings == []
    assert report["sessions"] == 720
    assert report["reclaims"] >= 10
    assert counts["requeue"] >= 10
    agree(report, counts, saturated)
    assert report["promise_s"]["inference"]["p50"] <= 10


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    nodes, tasks = write_cluster(tmp_path), write_tasks(tmp_path, 200)
    traces = []
    for hash_seed in ("1", "2"):
        trace = tmp_path / f"{hash_seed}.ndjson"
        command = [sys.executable, "-m", "scheduler_core", "replay", "--nodes", str(nodes), "--pods", str(tasks)]
        command += ["--hours", "1", "--gang-size", "2", "--output", "json", "--trace", str(trace)]
        done = subprocess.run(
            command, capture_output=True, check=True, timeout=120, env={**os.environ, "PYTHONHASHSEED": hash_seed}
        )
        traces.append((done.stdout, trace.read_bytes()))
    assert traces[0] == traces[1]


def test_a_slice_of_the_real_trace_keeps_every_rule(tmp_path):
    openb = DATA / "openb"
    if not openb.is_dir():
        pytest.skip(f"the openb trace is not at {DATA} (TIDESCHED_DATA names another place)")
    with (openb / "openb_node_list_gpu_node.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    nodes = tmp_path / "nodes.csv"
    # Every twentieth node: all models but the rarest stay.
    nodes.write_text("\n".join(",".join(row) for row in [rows[0], *rows[1::20]]) + "\n")
    report, trace = replay(
        tmp_path,
        *("--nodes", str(nodes), "--pods", str(openb / "openb_pod_list_gpuspec33.csv")),
        *("--tide", str(DATA / "tide" / "inference_qps_5min.csv")),
        *("--gang-size", "4", "--hours", "4", "--scale", "0.25", "--session-seconds", "30"),
    )
    findings, counts, saturated = check_trace(nodes, trace, session=30, hours=4)
    assert findings == []
    assert report["reclaims"] >= 5
    agree(report, counts, saturated)


def test_the_check_finds_what_is_wrong(tmp_path):
    """The oracle itself: a trace that breaks every rule is not let through."""
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn,1,1,2,T4\n")
    base = {"queue": "training-t4", "service_type": "training", "gang": "r/g", "cards": {"T4": 1}}
    serve = {"queue": "inference-t4", "service_type": "inference", "gang": "r/s", "cards": {"T4": 1}}
    lines = [
        {"t": 0, "event": "arrive", "pod": "r/g-0", "node": None, "min_member": 2, **base},
        {"t": 0, "event": "arrive", "pod": "r/g-1", "node": None, "min_member": 2, **base},
        {"t": 0, "event": "arrive", "pod": "r/s-0", "node": None, "min_member": 1, **serve},
        {"t": 10, "event": "bind", "pod": "r/g-0", "node": "n", "card_indices": [0], **base},
        {"t": 20, "event": "bind", "pod": "r/s-0", "node": "n", "card_indices": [0], **serve},
        {"t": 30, "event": "evict", "pod": "r/s-0", "node": "n", "until": 60, "reclaimer": "r/none", **serve},
    ]
    trace = tmp_path / "trace.ndjson"
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    findings, _, _ = check_trace(nodes, trace, quotas={"training-t4": {"T4": 2}}, hours=1)
    text = "\n".join(findings)
    for what in ("used twice", "uses 1000 of 0", "stands with 1 of 2", "inference was evicted", "fell for r/none"):
        assert what in text
