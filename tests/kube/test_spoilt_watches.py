"""The cache ends where a fresh list begins, whatever happens to its watches."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import orjson
import pytest

from tests.cluster.objects import job, pod
from tests.kube.fault_proxy import Fault, FaultProxy
from tests.kube.real_server import RealServer
from tests.waiting import until
from tidesched_web.clusters.kubernetes.cache import ClusterCache
from tidesched_web.clusters.kubernetes.client import ApiFailure, KubernetesClient
from tidesched_web.clusters.kubernetes.paths import JOB, POD

pytestmark = pytest.mark.usefixtures("beside")
_HEALED_SECONDS = 60.0


@pytest.fixture
def cache(client: KubernetesClient) -> Iterator[ClusterCache]:
    made = ClusterCache(client, schedulers=("tidesched",))
    made.start()
    assert made.wait_synced(60)
    yield made
    made.stop()


def pods(cache: ClusterCache, namespace: str) -> set[str]:
    return {one.name for one in cache.snapshot().pods if one.namespace == namespace}


def make(client: KubernetesClient, namespace: str, *names: str) -> None:
    for name in names:
        assert client.send("POST", POD.path(namespace), pod(name)).done


def lists_of_pods(proxy: FaultProxy) -> int:
    return sum(method == "GET" and path.startswith("/api/v1/pods?limit=500") for method, path, _ in proxy.requests)


def test_it_goes_on_where_a_watch_was_cut(
    cache: ClusterCache, proxy: FaultProxy, direct: KubernetesClient, namespace: str
) -> None:
    make(direct, namespace, "a")
    until(lambda: pods(cache, namespace) == {"a"}, _HEALED_SECONDS)
    listed = lists_of_pods(proxy)
    proxy.spoil(Fault(part="/api/v1/pods?limit=1", delay=1.0, times=1))  # it answers with what comes meanwhile
    proxy.cut(only_watches=True)
    make(direct, namespace, "b")
    direct.send("DELETE", POD.path(namespace, "a"))
    until(lambda: pods(cache, namespace) == {"b"}, _HEALED_SECONDS)
    assert lists_of_pods(proxy) == listed, "it listed all again"
    assert cache.went_back() == ""
    until(lambda: cache.errors() == {}, _HEALED_SECONDS)


def test_it_survives_a_server_that_is_gone(
    cache: ClusterCache, proxy: FaultProxy, direct: KubernetesClient, namespace: str
) -> None:
    make(direct, namespace, "a")
    until(lambda: pods(cache, namespace) == {"a"}, _HEALED_SECONDS)
    proxy.vanish()
    until(lambda: len(cache.errors()) > 0, _HEALED_SECONDS)
    make(direct, namespace, "b")
    proxy.start()
    until(lambda: pods(cache, namespace) == {"a", "b"}, _HEALED_SECONDS)
    until(lambda: cache.errors() == {}, _HEALED_SECONDS)


@pytest.mark.parametrize(("code", "reason"), [(500, "InternalError"), (429, "TooManyRequests"), (401, "Unauthorized")])
def test_it_asks_again_later_where_watches_are_refused(
    cache: ClusterCache, proxy: FaultProxy, direct: KubernetesClient, namespace: str, code: int, reason: str
) -> None:
    refused = proxy.spoil(Fault(code=code, reason=reason, part="/api/v1/pods?watch"))
    proxy.cut(only_watches=True)
    make(direct, namespace, "a")
    until(lambda: refused.seen > 1 and reason in cache.errors().get("Pod", ""), _HEALED_SECONDS)
    proxy.heal()
    until(lambda: pods(cache, namespace) == {"a"}, _HEALED_SECONDS)
    until(lambda: cache.errors() == {}, _HEALED_SECONDS)


def test_it_lists_again_where_its_version_is_too_old(
    cache: ClusterCache, proxy: FaultProxy, direct: KubernetesClient, namespace: str
) -> None:
    make(direct, namespace, "a")
    until(lambda: pods(cache, namespace) == {"a"}, _HEALED_SECONDS)
    listed = lists_of_pods(proxy)
    proxy.spoil(Fault(code=410, reason="Expired", part="/api/v1/pods?watch", times=1))
    proxy.cut(only_watches=True)
    direct.send("DELETE", POD.path(namespace, "a"))
    make(direct, namespace, "b")
    until(lambda: pods(cache, namespace) == {"b"}, _HEALED_SECONDS)
    assert lists_of_pods(proxy) > listed


def test_a_page_whose_version_was_forgotten_begins_the_list_anew(
    client: KubernetesClient, proxy: FaultProxy, direct: KubernetesClient, namespace: str
) -> None:
    make(direct, namespace, "a", "b")
    forgotten = proxy.spoil(Fault(code=410, reason="Expired", part="continue=", times=1))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tidesched_web.clusters.kubernetes.reflector.PAGE", 1)
        cache = ClusterCache(client, schedulers=("tidesched",))
        cache.start()
        try:
            assert cache.wait_synced(60)
            assert pods(cache, namespace) == {"a", "b"}
            assert forgotten.seen == 1
        finally:
            cache.stop()


def test_a_kind_may_go_and_come_back(
    cache: ClusterCache, server: RealServer, direct: KubernetesClient, namespace: str
) -> None:
    """Without Volcano's Jobs all the rest goes on."""
    server.remove_definition("jobs.batch.volcano.sh")
    try:
        make(direct, namespace, "a")
        until(lambda: pods(cache, namespace) == {"a"}, _HEALED_SECONDS)
        with pytest.raises(ApiFailure):
            direct.get(JOB.path())
    finally:
        server.install()
    assert direct.send("POST", JOB.path(namespace), job("later", pods=1)).done
    until(lambda: [g for g in cache.snapshot().pod_groups if g.namespace == namespace], _HEALED_SECONDS)


def test_what_the_store_forgot_is_answered_with_410(
    server: RealServer, direct: KubernetesClient, namespace: str
) -> None:
    """The real thing, not the proxy's: a token of a list, and a version of a watch."""
    make(direct, namespace, "a", "b", "c")
    page = direct.get(POD.path(namespace), {"limit": 1})
    version, token = page["metadata"]["resourceVersion"], page["metadata"]["continue"]
    make(direct, namespace, "d")
    server.kill_api()
    server.compact()
    server.start_api()
    with pytest.raises(ApiFailure) as caught:
        direct.get(POD.path(namespace), {"limit": 1, "continue": token})
    assert caught.value.code == 410
    query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": 2}
    with direct.stream(POD.path(namespace), query, read_timeout=10) as response:
        said = b"".join(response.stream())
    assert b'"code":410' in said


def test_a_server_that_was_killed_comes_back_with_all_it_had(
    cache: ClusterCache, server: RealServer, direct: KubernetesClient, namespace: str
) -> None:
    make(direct, namespace, "a")
    until(lambda: pods(cache, namespace) == {"a"}, _HEALED_SECONDS)
    server.kill_api()
    server.start_api()
    make(direct, namespace, "b")
    until(lambda: pods(cache, namespace) == {"a", "b"}, _HEALED_SECONDS)
    until(lambda: cache.errors() == {}, _HEALED_SECONDS)


def test_a_watch_ends_with_a_bookmark(direct: KubernetesClient, namespace: str) -> None:
    """The server sends one before it ends a watch, so that the next one need not go through all again."""
    version = direct.get(POD.path(namespace))["metadata"]["resourceVersion"]
    timer = threading.Timer(1.0, make, (direct, namespace, "a"))
    timer.start()
    query = {"watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": 8}
    with direct.stream(POD.path(namespace), query, read_timeout=30) as response:
        lines = [orjson.loads(line) for line in b"".join(response.stream()).splitlines()]
    timer.join()
    made, *bookmarks = lines
    assert made["type"] == "ADDED"
    assert {line["type"] for line in bookmarks} == {"BOOKMARK"}
    versions = [int(line["object"]["metadata"]["resourceVersion"]) for line in (made, *bookmarks)]
    assert versions == sorted(versions)
