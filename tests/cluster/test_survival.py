"""A confirmed write is there after kill -9, once, and so is all that follows from it."""

from __future__ import annotations

import random
import threading
from typing import Any

import orjson
import pytest

from tests.cluster.objects import deployment, job, node
from tests.cluster.servers import SimulatedServer
from tests.waiting import until
from tidesched_web.clusters.kubernetes.client import ApiFailure, Json, KubernetesClient
from tidesched_web.clusters.kubernetes.cluster_clock import ClusterClock
from tidesched_web.clusters.kubernetes.outcomes import OutcomeKind
from tidesched_web.clusters.kubernetes.paths import DEPLOYMENT, JOB, NODE, POD, POD_GROUP, QUEUE, WATCHED
from tidesched_web.clusters.kubernetes.writes import ClusterWrites
from tidesched_web.simcluster.patching import MERGE_PATCH


def fill(client: KubernetesClient) -> None:
    client.send("POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})
    for index in range(4):
        assert client.send("POST", NODE.path(), node(f"n{index}")).done
    assert client.send("POST", DEPLOYMENT.path("a"), deployment("serve", replicas=20)).done


def picture(client: KubernetesClient) -> dict[str, list[Json]]:
    return {kind.id: client.get(kind.path())["items"] for kind in WATCHED if not kind.spare}


def test_every_confirmed_write_survives(own_server: SimulatedServer) -> None:
    client = own_server.client()
    fill(client)
    confirmed: dict[str, str] = {}
    for round_ in range(4):
        writes = ClusterWrites(client, session=str(round_), epoch=round_)
        waiting = [p["metadata"] for p in client.get(POD.path("a"))["items"] if not p["spec"].get("nodeName")]
        killer = threading.Timer(random.uniform(0.005, 0.06), own_server.kill)
        killer.start()
        for index, metadata in enumerate(waiting):
            target = f"n{index % 4}"
            outcome = writes.bind_pod("a", metadata["name"], uid=metadata["uid"], node=target)
            if outcome.done:
                confirmed[metadata["uid"]] = target
            elif outcome.kind is OutcomeKind.UNREACHABLE:
                break
        killer.join()
        own_server.start()
        now = {p["metadata"]["uid"]: p["spec"].get("nodeName") for p in client.get(POD.path("a"))["items"]}
        assert {uid: now[uid] for uid in confirmed} == confirmed
    done = [row for row in own_server.writes() if row["verb"] == "bind" and row["code"] == 201]
    assert len({row["uid"] for row in done}) == len(done), "a pod was bound twice"
    # What was done is what is there: a write that was not confirmed happened in full, or not at all.
    bound = {p["metadata"]["uid"] for p in client.get(POD.path("a"))["items"] if p["spec"].get("nodeName")}
    assert {row["uid"] for row in done} == bound


def test_the_world_goes_on_as_if_nothing_had_been(own_server: SimulatedServer) -> None:
    client = own_server.client()
    writes = ClusterWrites(client)
    fill(client)
    assert client.send("POST", JOB.path("a"), job("train", pods=2, run_seconds=300)).done
    uid = client.get(POD_GROUP.path("a", "train"))["metadata"]["uid"]
    assert writes.patch_podgroup_status("a", "train", uid=uid, phase="Inqueue").done
    own_server.kill()
    own_server.start()

    def members() -> list[Json]:
        selector = {"labelSelector": "volcano.sh/job-name=train"}
        return list(client.get(POD.path("a"), selector)["items"])

    # the controller's work of before the crash is done after it
    for index, pod in enumerate(until(lambda: len(members()) == 2 and members())):
        metadata = pod["metadata"]
        assert writes.bind_pod("a", metadata["name"], uid=metadata["uid"], node=f"n{index}").done
    own_server.kill()
    own_server.start()
    assert until(lambda: [m["status"]["phase"] for m in members()] == ["Running", "Running"])
    assert until(lambda: [m["status"]["phase"] for m in members()] == ["Succeeded", "Succeeded"])


def test_a_restart_in_good_order_changes_no_object(own_server: SimulatedServer) -> None:
    client = own_server.client()
    fill(client)
    before = picture(client)
    assert own_server.stop() == 0
    own_server.start()
    assert picture(client) == before


def test_a_kill_changes_no_object(own_server: SimulatedServer) -> None:
    client = own_server.client()
    fill(client)
    before = picture(client)
    own_server.kill()
    own_server.start()
    assert picture(client) == before


def test_the_clock_never_goes_back_and_stands_still_while_the_server_is_down(own_server: SimulatedServer) -> None:
    client = own_server.client()

    def now() -> str:
        return str(client.get("/tidesched/clock")["now"])

    seen = [now() for _ in range(5)]
    own_server.kill()
    own_server.start()
    seen += [now() for _ in range(5)]
    assert seen == sorted(seen)


def test_a_watch_goes_on_after_a_restart(own_server: SimulatedServer) -> None:
    client = own_server.client()
    fill(client)
    version = client.get(POD.path())["metadata"]["resourceVersion"]
    own_server.kill()
    own_server.start()
    name = client.get(POD.path("a"))["items"][0]["metadata"]["name"]
    assert client.send("DELETE", POD.path("a", name)).done
    query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": 1}
    with client.stream(POD.path(), query, read_timeout=60) as response:
        lines = [orjson.loads(line) for line in b"".join(response.stream()).splitlines()]
    assert ("DELETED", name) in [(line["type"], line["object"]["metadata"]["name"]) for line in lines]


def test_the_log_names_every_write_and_its_end(own_server: SimulatedServer) -> None:
    client = own_server.client()
    fill(client)
    seq = own_server.writes()[-1]["seq"]
    writes = ClusterWrites(client, session="17", epoch=3)
    metadata = client.get(POD.path("a"))["items"][0]["metadata"]
    name, uid = metadata["name"], metadata["uid"]
    writes.bind_pod("a", name, uid=uid, node="n1")
    writes.bind_pod("a", name, uid=uid, node="n2")
    writes.evict_pod("a", name, uid=uid, dry_run=True)
    writes.evict_pod("a", name, uid=uid)
    quota = {"volcano.sh/card.quota": '{"NVIDIA-H200":3}'}
    queue = {"apiVersion": QUEUE.group_version, "kind": "Queue", "metadata": {"name": "q", "annotations": quota}}
    client.send("POST", QUEUE.path(), queue)
    client.send(
        "PATCH", QUEUE.path(name="q", subresource="status"), {"status": {"state": "Open"}}, content_type=MERGE_PATCH
    )
    rows = own_server.writes(after=seq)
    told: list[tuple[Any, ...]] = [
        (row["verb"], row["key"], row["detail"], row["code"], row["dry_run"], row["session"], row["epoch"])
        for row in rows
    ]
    assert told == [
        ("bind", f"a/{name}", "n1", 201, False, "17", "3"),
        ("bind", f"a/{name}", "", 409, False, "17", "3"),
        ("evict", f"a/{name}", "", 201, True, "17", "3"),
        ("evict", f"a/{name}", "", 201, False, "17", "3"),
        ("create", "q", '{"NVIDIA-H200":3}', 201, False, "", ""),
        ("patch", "q", "Open", 200, False, "", ""),
    ]
    assert [row["seq"] for row in rows] == sorted(row["seq"] for row in rows)
    assert all(len(row["digest"]) == 64 for row in rows)


@pytest.fixture
def small_server(tmp_path: Any) -> Any:
    server = SimulatedServer(tmp_path, "--ring", "100", "--write-log-rows", "200")
    server.start()
    yield server
    server.kill()


def test_what_is_kept_is_bounded(small_server: SimulatedServer) -> None:
    client = small_server.client()
    client.send("POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})
    version = client.get(POD.path())["metadata"]["resourceVersion"]
    for index in range(170):
        client.send("POST", POD.path("a"), {"metadata": {"name": f"p{index}"}, "spec": {"containers": []}})

    def expired() -> bool:
        try:
            with client.stream(
                POD.path(), {"watch": "1", "resourceVersion": version, "timeoutSeconds": 1}, read_timeout=60
            ) as response:
                response.close()
        except ApiFailure as error:
            return error.code == 410
        return False

    assert until(expired)


def test_a_second_process_on_the_same_data_is_refused(own_server: SimulatedServer, tmp_path: Any) -> None:
    second = SimulatedServer(tmp_path)
    with pytest.raises(AssertionError, match="did not start"):
        second.start()
    assert second.process is not None
    assert second.process.wait(60) == 2
    assert second.process.stdout is not None
    second.process.stdout.close()


def test_a_clients_clock_stands_still_with_the_cluster(own_server: SimulatedServer) -> None:
    clock = ClusterClock(own_server.client(), simulated=True)
    first = clock.now()
    assert until(lambda: clock.now() > first + 5)
    own_server.kill()
    read = [clock.now()]
    # For a moment it goes on by what it knows; it stands still where it says the same many times.
    until(lambda: read.append(clock.now()) or read[-10:] == [read[-1]] * 10)
    stopped = read[-1]
    own_server.start()
    assert until(lambda: clock.now() > stopped)
