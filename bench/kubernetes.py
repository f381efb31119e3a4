"""`python -m bench.kubernetes`: A7 and A8 against a real API server, with the server in columns of its own.

The cluster is put into etcd directly; what is measured is how TideSched reads it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.clusters import GANG, Size, objects
from tests.kube.binaries import find_or_build, kubernetes_version
from tests.kube.etcd_seed import fill
from tests.kube.real_server import RealServer

_READER = "--read"


class Case(NamedTuple):
    """What is read, and how much time and memory it may take (wall seconds, MiB)."""

    name: str
    size: Size
    decides: bool
    seconds: float
    mib: float | None


CASES = {
    "A7": Case("A7", Size("XL", 10_000, 100_000), False, 1.0, 1.2 * 1024),
    "A8": Case("A8", Size("L150", 5_000, 150_000), True, 5.0, None),
}


def main() -> int:
    """Print a table, or one reader's figures as JSON."""
    if sys.argv[1:2] == [_READER]:
        print(json.dumps(_read(*sys.argv[2:])))
        return 0
    parser = argparse.ArgumentParser(prog="python -m bench.kubernetes", description=__doc__)
    parser.add_argument("--only", choices=sorted(CASES), action="append")
    parser.add_argument("--scale", type=float, default=1.0, help="a part of the sizes, to try it out")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    print(f"kube-apiserver {kubernetes_version()}, {os.cpu_count()} cores; seconds unless said")
    names = ("wall", "client CPU", "server CPU", "etcd CPU", "client MiB", "server MiB", "etcd MiB", "target")
    print(f"{'id':6}" + "".join(f"{name:>12}" for name in names))
    for name in options.only or sorted(CASES):
        _measure(CASES[name], options.scale, options.runs)
    return 0


def _measure(case: Case, scale: float, runs: int) -> None:
    size = Size(case.size.name, int(case.size.nodes * scale), int(case.size.tasks * scale))
    with tempfile.TemporaryDirectory(prefix="tidesched-bench-") as folder:
        server = RealServer(Path(folder), find_or_build())
        try:
            server.start()
            server.kill_api()
            _say(f"{fill(server.ask_etcd, _cluster(size))} objects are in etcd")
            server.start_api()
            for _ in range(runs):
                _print(case, _one_run(case, size, server))
        finally:
            server.stop()


def _one_run(case: Case, size: Size, server: RealServer) -> dict[str, float]:
    before = server.cpu_seconds()
    argv = [sys.executable, "-m", "bench.kubernetes", _READER, server.url, str(int(case.decides))]
    began = time.perf_counter()
    environment = os.environ | {"BENCH_TOKEN": server.token, "BENCH_CA": server.ca_certificate}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - began
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout)
    after, resident = server.cpu_seconds(), server.resident_mib()
    assert (said["nodes"], said["pods"]) == (size.nodes, size.tasks // GANG * GANG), said
    return {
        "wall": wall if case.decides else said["wall"],
        "client CPU": said["cpu"],
        "server CPU": after["kube-apiserver"] - before["kube-apiserver"],
        "etcd CPU": after["etcd"] - before["etcd"],
        "client MiB": said["mib"],
        "server MiB": resident["kube-apiserver"],
        "etcd MiB": resident["etcd"],
    }


def _print(case: Case, row: dict[str, float]) -> None:
    target = f"{case.seconds:g} s" + (f", {case.mib:.0f} MiB" if case.mib else "")
    print(f"{case.name:6}" + "".join(f"{value:>12.2f}" for value in row.values()) + f"  {target}", flush=True)


def _cluster(size: Size) -> Iterator[dict[str, Any]]:
    """As an API server has them: pods with all the fields that it fills in."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}}
    for obj in objects(size):
        if obj["kind"] == "Pod":
            _fill_in(obj)
        yield obj


def _fill_in(pod: dict[str, Any]) -> None:
    """What users, the API server and controllers add: about 3 KB, most of which TideSched has no use for."""
    managed = {f"f:{name}": {} for name in ("containers", "dnsPolicy", "nodeName", "restartPolicy", "tolerations")}
    pod["metadata"] |= {
        "labels": {"app": "trainer", "volcano.sh/job-name": pod["metadata"]["name"].rpartition("-")[0]},
        "managedFields": [
            {
                "manager": manager,
                "operation": "Update",
                "apiVersion": "v1",
                "time": pod["metadata"]["creationTimestamp"],
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {"f:annotations": {}, "f:labels": {}}, "f:spec": managed, "f:status": {}},
            }
            for manager in ("vc-controller-manager", "kubelet")
        ],
    }
    pod["spec"] |= {
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "Never",
        "securityContext": {},
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for key in ("not-ready", "unreachable")
        ],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}}],
    }
    pod["spec"]["containers"][0] |= {
        "image": "registry.example/research/trainer:2026.01",
        "imagePullPolicy": "IfNotPresent",
        "command": ["torchrun", "--nproc-per-node=8", "train.py", "--config", "/etc/train/config.yaml"],
        "env": [{"name": f"TRAIN_SETTING_{number}", "value": f"value-{number}"} for number in range(12)],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [{"name": "shm", "mountPath": "/data/shared"}],
    }
    pod["status"] |= {
        "qosClass": "Guaranteed",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/10000 nodes are available: 10000 Insufficient nvidia.com/gpu.",
                "lastProbeTime": None,
                "lastTransitionTime": pod["metadata"]["creationTimestamp"],
            }
        ],
    }


def _read(url: str, decides: str) -> dict[str, float]:
    """What a fresh process does: list and watch everything into a snapshot and, for A8, decide."""
    import resource

    from tidesched_web.clusters.kubernetes.cache import ClusterCache
    from tidesched_web.clusters.kubernetes.client import KubernetesClient
    from tidesched_web.clusters.kubernetes.connection import Connection

    client = KubernetesClient(Connection(url, ca_certificate=os.environ["BENCH_CA"], token=os.environ["BENCH_TOKEN"]))
    cache = ClusterCache(client, schedulers=("volcano",))
    began = time.perf_counter()
    cache.start()
    assert cache.wait_synced(600), cache.errors()
    snapshot = cache.snapshot()
    wall = time.perf_counter() - began
    if decides == "1":
        from scheduler_core.serde.policy.founding import FOUNDING_POLICY
        from tidesched_web.engine import bridge
        from tidesched_web.engine.model import Memory

        result, _ = bridge.decide(snapshot, bridge.read_policy(FOUNDING_POLICY), now=time.time(), memory=Memory())
        assert result.binds
    figures = {
        "wall": wall,
        "cpu": time.process_time(),
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "nodes": len(snapshot.nodes),
        "pods": len(snapshot.pods),
    }
    # The watches have nothing to say any more.
    sys.stdout.flush()
    return figures


def _say(text: str) -> None:
    print(f"  ...  {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)
