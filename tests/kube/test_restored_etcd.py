"""A cluster that is restored from a copy of etcd, or replaced by another server, while users work on it."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from tests.cluster.objects import CLASSES, job
from tests.kube.binaries import find
from tests.kube.fault_proxy import FaultProxy
from tests.kube.living import Living
from tests.kube.real_server import DEFINITIONS, RealServer
from tests.kube.shared import stand_aside, stand_by, upstream_definitions
from tests.waiting import until
from tidesched_web.clusters.kubernetes.client import ApiFailure, Unreachable
from tidesched_web.clusters.kubernetes.paths import JOB, NAMESPACE, NODE, QUEUE, WATCHED, Kind
from tidesched_web.quota.models import Drift
from tidesched_web.quota.services import push

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def living(server: RealServer, proxy: FaultProxy, transactional_db: None) -> Iterator[Living]:
    made = Living(server, proxy)
    yield made
    made.close()
    connections.close_all()


@pytest.fixture
def other(server: RealServer, tmp_path: Path) -> Iterator[RealServer]:
    binaries = find()
    assert binaries is not None
    users = {server.token: ("admin", ["system:masters"])}
    made = RealServer(tmp_path, binaries, definitions=[DEFINITIONS, *upstream_definitions()], users=users)
    made.start()
    yield made
    stand_aside()
    made.stop()


@contextmanager
def load(server: RealServer) -> Iterator[list[int]]:
    """Jobs of one pod come and go, whatever the server does; yields the numbers of those that it took."""
    made: list[int] = []
    ending = threading.Event()

    def work() -> None:
        client, number = server.client(), 0
        while not ending.wait(0.1):
            number += 1
            try:
                manifest = job(f"load{number}", pods=1, queue="train")
                if client.send("POST", JOB.path("work"), manifest).done:
                    made.append(number)
                if number > 4:
                    client.send("DELETE", JOB.path("work", f"load{number - 4}"))
            except (ApiFailure, Unreachable):
                continue
        client.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        ending.set()
        thread.join()


def copied(kinds: tuple[str | Kind, ...], source: RealServer, target: RealServer) -> None:
    """Objects of the same names, with uids and versions of their own."""
    from_, to = source.client(), target.client()
    for kind in kinds:
        path = kind if isinstance(kind, str) else kind.path()
        for one in from_.get(path)["items"]:
            old = one["metadata"]
            meta: dict[str, Any] = {key: old[key] for key in ("name", "labels", "annotations") if key in old}
            outcome = to.send("POST", path, {**one, "metadata": meta})
            assert outcome.done or outcome.reason == "AlreadyExists", outcome
    from_.close()
    to.close()


def mended(living: Living, mark: int, back_at: float, made: list[int], word: str) -> None:
    """From ``mark``, of requests, and ``back_at`` on there is another state behind the proxy."""
    until(living.alert("went_back", word), story=living.story)
    told = time.monotonic() - back_at
    before = len(made)
    until(lambda: living.cached() and living.cached() == living.listed(), story=living.story)
    print(f"told after {told:.1f} s, cache equal after {time.monotonic() - back_at:.1f} s, under load")
    row = until(lambda: Drift.objects.exclude(state="resolved").filter(name="train").first(), story=living.story)
    assert (row.fields[0]["live"], row.fields[0]["intent"]) == ("16", "12")
    print(f"drift after {time.monotonic() - back_at:.1f} s")
    living.train("after", 2)
    until(lambda: living.running("after") == 2, 120, story=living.story)
    until(lambda: len(made) > before + 10)
    lists = {f"{kind.path()}?limit=500" for kind in WATCHED}
    early: list[tuple[str, str, int]] = []  # what was under way when the server went may still arrive, and is refused
    for method, path, code in living.proxy.requests[mark:]:
        if method == "GET":
            lists.discard(path)
        elif lists and "/leases" not in path:
            early.append((method, path, code))
    print(f"before the lists: {early}")
    assert not [one for one in early if one[2] < 300], early


def test_a_copy_that_is_restored_under_load_is_read_anew(living: Living) -> None:
    server = living.server
    living.train("old", 2)
    until(lambda: living.running("old") == 2)
    with load(server) as made:
        until(lambda: len(made) > 10)
        server._end_programs()
        copy = Path(tempfile.mkdtemp(prefix="etcd-", dir=server._data.parent)) / "data"
        shutil.copytree(server._data, copy)
        server.start_etcd()
        server.start_api()
        living.train("new", 4)
        until(lambda: living.running("new") == 4, 120, story=living.story)
        living.approve("train", 12)
        until(lambda: push.push_pending() and living.quota("train") == 12, story=living.story)
        server._end_programs()
        until(lambda: not living.proxy._watching)
        mark = len(living.proxy.requests)
        shutil.rmtree(server._data)
        shutil.move(copy, server._data)
        copy.parent.rmdir()
        server.start_etcd()
        server.start_api()
        back_at = time.monotonic()
        stand_aside()
        stand_by(server, grace=0.3)
        mended(living, mark, back_at, made, "version")
    until(lambda: living.cached() == living.listed(), story=living.story)


def test_another_server_of_the_same_address_is_read_anew(living: Living, other: RealServer) -> None:
    first = living.server
    living.train("old", 2)
    until(lambda: living.running("old") == 2)
    copied((NAMESPACE, CLASSES, NODE, QUEUE), first, other)
    living.approve("train", 12)
    until(lambda: push.push_pending() and living.quota("train") == 12, story=living.story)
    with load(first) as before, load(other) as made:
        until(lambda: len(before) > 10 and len(made) > 10)
        stand_aside()
        stand_by(other, grace=0.3)
        living.direct.close()
        living.direct = other.client()
        living.proxy.vanish()
        until(lambda: not living.proxy._open)  # what was under way is answered by the first
        mark = len(living.proxy.requests)
        living.proxy.lead_to(other)
        living.proxy.start()
        mended(living, mark, time.monotonic(), made, "")
    until(lambda: living.cached() == living.listed(), story=living.story)
