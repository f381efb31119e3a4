"""What makes each alert fire: done to a running installation for as long as the block lasts."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx

from tests.browser.demo import Demo
from tests.crew.cluster import CARD, CARDS_OF_NODE, NAMESPACE, QUEUES, Cluster
from tests.waiting import until

QUEUE, OWNER = "proof-training", "proof-inference"


@dataclass(frozen=True)
class Stage:
    """The demo, its cluster past TideSched, and its REST API as an admin."""

    demo: Demo
    cluster: Cluster
    rest: httpx.Client

    def rows(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.rest.get(path).raise_for_status().json()["results"]
        return found

    def send(self, path: str, body: dict[str, Any], **headers: str) -> dict[str, Any]:
        answer = self.rest.post(path, json=body, headers=headers)
        assert answer.is_success, f"{path}: {answer.status_code} {answer.text}"
        found: dict[str, Any] = answer.json()
        return found

    def change(self, edits: dict[str, Any]) -> str:
        """Draft a change of quota and have it applied; its path."""
        change = self.send("quota-changes/", {"cluster": "demo", "edits": edits, "reason": "The proof of the alerts."})
        path = f"quota-changes/{change['id']}/"
        self.send(f"{path}apply/", {}, **{"If-Match": f'"{change["version"]}"'})
        return path

    def until_applied(self, path: str) -> None:
        until(lambda: self.rest.get(path).json()["state"] == "applied", story=lambda: self.rest.get(path).text)


def set_up(stage: Stage) -> None:
    """A node with cards of its own, all in use by inference, which training may have too; and no drift."""
    stage.cluster.add_nodes(1)
    stage.cluster.add_namespace(NAMESPACE)
    until(lambda: CARD in {row["name"] for row in stage.rows("card-types/?cluster=demo&limit=200")}, 240)
    edits: dict[str, Any] = {"business-line/-/proof": {"name": "Proof"}}
    edits |= {"tenant/proof": {"name": "Proof"}, "project/proof/proof": {"name": "Proof"}}
    owners = {QUEUE: {"business_line": "proof"}, OWNER: {"tenant": "proof", "project": "proof"}}
    for queue, service_type in ((QUEUE, "training"), (OWNER, "inference")):
        quota = {"service_type": service_type, "card_quota": {CARD: CARDS_OF_NODE}}
        edits |= {f"queue/{queue}": quota | owners[queue], f"grant/{NAMESPACE}/{queue}": {}}
    stage.until_applied(stage.change(edits))
    stage.cluster.submit("proof-service", OWNER, pods=CARDS_OF_NODE, service=True)
    until(lambda: stage.cluster.pods_placed("proof-service") == CARDS_OF_NODE)
    ids = until(lambda: [row["id"] for row in stage.rows("drift/?cluster=demo&state=open")])
    stage.send("drift/", {"ids": ids, "act": "repush", "reason": "The proof begins without drift."})


@contextmanager
def stopped(stage: Stage, *names: str) -> Iterator[None]:
    """SIGSTOP; what was replaced meanwhile is left alone."""
    processes = json.loads((stage.demo.folder / "runtime.json").read_text())["processes"]
    pids = [processes[name]["pid"] for name in names]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@contextmanager
def _refused_pushes(stage: Stage) -> Iterator[None]:
    with stopped(stage, "simcluster"):
        path = stage.change({f"queue/{QUEUE}": {"card_quota": {CARD: CARDS_OF_NODE - 1}}})
        yield
    stage.until_applied(path)


@contextmanager
def _edited_by_hand(stage: Stage) -> Iterator[None]:
    def weigh(weight: int) -> None:
        found = stage.cluster.ask("GET", f"{QUEUES}/{QUEUE}")
        stage.cluster.ask("PUT", f"{QUEUES}/{QUEUE}", found | {"spec": found["spec"] | {"weight": weight}})

    before = stage.cluster.ask("GET", f"{QUEUES}/{QUEUE}")["spec"]["weight"]
    weigh(before + 1)
    yield
    weigh(before)


@contextmanager
def _no_card_is_free(stage: Stage) -> Iterator[None]:
    stage.cluster.submit("proof-job", QUEUE, pods=CARDS_OF_NODE // 2)
    yield
    stage.cluster.end("proof-job")


@contextmanager
def _no_worker(stage: Stage) -> Iterator[None]:
    with stopped(stage, "work"):
        (cluster,) = stage.rows("clusters/?slug=demo")
        stage.send(f"clusters/{cluster['id']}/connection/test/", {})
        yield


Cause = Callable[[Stage], AbstractContextManager[None]]
# Alert -> the labels that it fires with, and its cause.
CAUSES: dict[str, tuple[str, Cause]] = {
    "TideSchedDown": ("", lambda stage: stopped(stage, "web", "web-2")),
    "TideSchedNoSession": ('cluster="demo"', lambda stage: stopped(stage, "sessions")),
    "TideSchedWatchLag": ('cluster="demo"', lambda stage: stopped(stage, "simcluster")),
    "TideSchedPushFails": ('cluster="demo"', _refused_pushes),
    "TideSchedDrift": ('cluster="demo"', _edited_by_hand),
    "TideSchedGangsWait": (f'queue="{QUEUE}"', _no_card_is_free),
    "TideSchedJobsWait": ("", _no_worker),
    "TideSchedCriticalAlert": ('code="cluster_unreachable"', lambda stage: stopped(stage, "simcluster")),
}
