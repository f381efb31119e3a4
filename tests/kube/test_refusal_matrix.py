"""Each write that TideSched needs, refused in each way, in the middle of a living installation.

The cells come from the table of RBAC (`clusters/kubernetes/verbs.py`). In each: a gang runs, one waits, one arrives and
an edit is pushed while the fault stands. What a change alone writes (queues and priority classes that come, change and
go) has a test of its own below; what is read, test_read_matrix. No cells have Events' create (one PATCH creates and
changes), Volcano's commands, which no installation in mode *schedule* sends, and the removal of a PodGroup (minutes
after its owner has no pods). `make proof-refusals` prints the table of `docs/kubernetes.md`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from django.db import connection, connections

from tests.cluster.objects import CARD
from tests.kube.fault_proxy import Fault, FaultProxy
from tests.kube.living import Living
from tests.kube.real_server import RealServer
from tests.waiting import until
from tidesched_web.changes import services as changes
from tidesched_web.changes.models import ChangeObject, QuotaChange
from tidesched_web.changes.services.carrying import carry
from tidesched_web.clusters.kubernetes.paths import PRIORITY_CLASS, QUEUE
from tidesched_web.clusters.kubernetes.verbs import NEEDS
from tidesched_web.common.permissions import Access
from tidesched_web.quota.models import Queue
from tidesched_web.quota.services import push
from tidesched_web.scheduling.models import Session

pytestmark = [pytest.mark.proof, pytest.mark.timeout(300)]

_HOOK = 'admission webhook "guard.example.com" denied the request'
FAULTS = {
    "refused (403)": Fault(code=403, reason="Forbidden"),
    "refused by a webhook": Fault(code=400, reason=_HOOK),
    "hanging": Fault(delay=6.0, code=504, reason="Timeout"),
    "done, answer lost": Fault(lose_answer=True),
}
# How a request of a need is known: its method and a part of its path. An apply is one PATCH, also where it creates.
_REQUESTS = {
    ("queues", "patch"): ("PATCH", "/queues/train?"),
    ("queues/status", "patch"): ("PATCH", "/queues/train/status"),
    ("leases", "update"): ("PUT", "/leases/tidesched-scheduler"),
    ("leases", "get"): ("GET", "/leases/tidesched-scheduler"),
    ("pods/binding", "create"): ("POST", "/pods/new-worker-"),
    ("pods/eviction", "create"): ("POST", "/eviction"),
    ("pods/status", "patch"): ("PATCH", "/pods/web-"),
    ("events", "patch"): ("PATCH", "/events/"),
    ("podgroups", "patch"): ("PATCH", "/podgroups/podgroup-"),
    ("podgroups/status", "patch"): ("PATCH", "/podgroups/new-"),
    ("pods", "delete"): ("DELETE", "/pods/new-worker-"),
}
# What a change writes: its edits, one after the other on one cluster, and the request of each.
_EXTRA = {"service_type": "training", "business_line": "research", "tenant": "acme", "card_quota": {CARD: 1}}
_EDITS: dict[str, tuple[str, dict[str, object] | None, str, str]] = {
    "create queues": ("queue/extra", _EXTRA, "PATCH", "/queues/extra?"),
    "delete queues": ("queue/extra", None, "DELETE", "/queues/extra"),
    "create priorityclasses": ("priority-class/extra", {"value": 7}, "PATCH", "/priorityclasses/extra?"),
    "patch priorityclasses": ("priority-class/extra", {"description": "x"}, "PATCH", "/priorityclasses/extra?"),
    "delete priorityclasses": ("priority-class/extra", None, "DELETE", "/priorityclasses/extra"),
}
_TELLING = {"write_refused", "cluster_unreachable", "session_failed", "foreign_scheduler", "drift"}
# Inference asks for all cards: training is evicted, and its pods are nominated for what falls free.
_RECLAIMS = ("pods/eviction", "pods/status")
READS = ("get", "list", "watch")


@dataclass(frozen=True)
class Cell:
    resource: str
    verb: str
    fault: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}: {self.fault}"


def cells() -> list[Cell]:
    needed = {(need.resource, verb) for need in NEEDS for verb in need.verbs if verb not in READS}
    needed |= {("leases", "get")}
    return [Cell(*what[:1], what[1], fault) for what in _REQUESTS if what in needed for fault in FAULTS]


@pytest.fixture(scope="module")
def table() -> Iterator[list[tuple[str, ...]]]:
    rows: list[tuple[str, ...]] = []
    yield rows
    print()
    for row in rows:
        print(f"| {' | '.join(row)} |")


@pytest.fixture
def living(server: RealServer, proxy: FaultProxy, transactional_db: None) -> Iterator[Living]:
    made = Living(server, proxy, nodes=3)
    yield made
    made.close()
    connections.close_all()


def beside(work: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        work()
        connection.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("cell", cells(), ids=str)
def test_a_fault_costs_others_nothing_and_heals(cell: Cell, living: Living, table: list[tuple[str, ...]]) -> None:
    method, part = _REQUESTS[cell.resource, cell.verb]
    living.train("runs", 4)
    until(lambda: living.running("runs") == 4)
    living.train("waits", 30)  # more than there is
    fault = living.proxy.spoil(replace(FAULTS[cell.fault], method=method, part=part))
    if cell.resource == "pods":  # bound in part, so that the bound members are to be taken back
        living.proxy.spoil(Fault(403, "Forbidden", "POST", "/pods/new-worker-0/binding"))
    began = time.monotonic()
    living.approve("train", 23)
    pushes = beside(push.push_pending)
    living.train("new", 3)
    if cell.resource in ("podgroups", *_RECLAIMS):
        living.serve("web", 4 if cell.resource == "podgroups" else 24)
    told = ""
    lost = cell.fault == "done, answer lost"
    quiet = cell.resource == "leases" and lost  # asked again it finds its own work done
    if not quiet:
        until(lambda: fault.seen > 0, story=living.story)
        if not lost and cell.resource != "events":  # what is told once of each object is told no second time
            told = until(lambda: _told(living, cell), 30, story=living.story)
    seconds = time.monotonic() - began
    ended = Session.objects.filter(state="done").count()
    if cell.resource not in ("leases", *_RECLAIMS):
        living.train("other", 2)
        until(lambda: living.running("other") == 2, story=living.story)
    sessions = Session.objects.filter(state="done").count() - ended
    living.proxy.heal()
    healed = time.monotonic()
    until(lambda: _as_meant(living, cell), 90, story=living.story)
    after = time.monotonic() - healed
    table.append(
        (f"{cell.verb} {cell.resource}", cell.fault, told or "–", f"{seconds:.0f}", str(sessions), f"{after:.0f}")
    )
    pushes.join(60)
    # Pods that were taken back come again under their names.
    assert cell.resource == "pods" or living.bound_twice() == []
    assert living.quota("train") == 23
    assert 0 in (living.bound("waits"), len(living.pods("waits")) - 30)


@pytest.mark.parametrize("what", FAULTS)
def test_what_a_change_writes_is_told_and_carried_out(what: str, living: Living, table: list[tuple[str, ...]]) -> None:
    access = Access(actor="test", everything=True, administers=True)
    lost = what == "done, answer lost"
    living.approve("train", 23)
    push.push_pending()
    for name, (key, document, method, part) in _EDITS.items():
        fault = living.proxy.spoil(replace(FAULTS[what], method=method, part=part))
        began = time.monotonic()
        change = changes.carry_out(cluster=living.stage.cluster, edits={key: document}, access=access, reason="test")
        gang = name.replace(" ", "-")
        living.train(gang, 2)
        told = until(lambda change=change, key=key: _carried(change, key), 60, story=living.story)
        seconds = time.monotonic() - began
        assert fault.seen > 0
        until(lambda gang=gang: living.running(gang) == 2, story=living.story)
        living.proxy.heal()
        healed = time.monotonic()
        until(lambda change=change: _done(change, access), 90, story=living.story)
        there = living.direct.send("GET", f"{_path(key)}/extra").done
        assert there == (document is not None)
        row = (name, what, "–" if lost else told, f"{seconds:.0f}", "–", f"{time.monotonic() - healed:.0f}")
        table.append(row)
        living.end(gang)


def _path(key: str) -> str:
    return QUEUE.path() if key.startswith("queue") else PRIORITY_CLASS.path()


def _carried(change: QuotaChange, key: str) -> str:
    """What the page of the change says of the object that was not taken; or that all was."""
    carry(change.pk)
    change.refresh_from_db()
    name = key.partition("/")[2]
    row = ChangeObject.objects.get(change=change, name=name)
    return "its change" if row.reason else "carried out" if change.state == "applied" else ""


def _done(change: QuotaChange, access: Access) -> bool:
    change.refresh_from_db()
    if change.state == "failed":
        changes.retry(change=change, access=access)
    carry(change.pk)
    change.refresh_from_db()
    return change.state == "applied"


def _told(living: Living, cell: Cell) -> str:
    resource = cell.resource.partition("/")[0].rstrip("s")
    for code, text in living.alerts().items():
        if code == "push_refused" or (code in _TELLING and resource in text.lower() and _names(cell, code, text)):
            return code
    if cell.resource == "queues" and Queue.objects.get(name="train").sync_error:
        return "the queue's own line"
    return ""


def _names(cell: Cell, code: str, text: str) -> bool:
    # Where the kind has no subresource its status is patched with the object.
    return code != "write_refused" or f"{cell.verb} {cell.resource.partition('/')[0]}" in text


def _as_meant(living: Living, cell: Cell) -> bool:
    push.push_pending()
    if cell.resource in _RECLAIMS:
        standing = living.running("web") == 24
    else:
        standing = living.running("new") == 3 and living.group("new").get("status", {}).get("phase") in (
            "Running",
            None,
        )
    figures = bool(living.direct.get(QUEUE.path(name="train")).get("status", {}).get("allocated"))
    quiet = not living.alerts().keys() - {"promise_unused"}
    return standing and figures and quiet and living.quota("train") == 23
