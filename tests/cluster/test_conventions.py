"""What any Kubernetes API server answers, as far as TideSched relies on it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from http.client import HTTPConnection
from itertools import groupby
from urllib.parse import urlsplit

import orjson
import pytest

from tests.cluster.objects import CLASSES, QUEUES, pod
from tests.cluster.servers import ApiServer, SimulatedServer
from tidesched_web.clusters.kubernetes.client import (
    APPLY_PATCH,
    MERGE_PATCH,
    ApiFailure,
    Json,
    KubernetesClient,
)
from tidesched_web.clusters.kubernetes.connection import Connection
from tidesched_web.clusters.kubernetes.outcomes import OutcomeKind
from tidesched_web.clusters.kubernetes.paths import POD


@pytest.fixture
def queue_name() -> str:
    return f"q-{uuid.uuid4().hex[:8]}"


def apply(client: KubernetesClient, name: str, spec: Json, manager: str, **query: str) -> Json:
    body = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}
    outcome = client.send(
        "PATCH", f"{QUEUES}/{name}", body, query={"fieldManager": manager, **query}, content_type=APPLY_PATCH
    )
    return {"kind": outcome.kind, "reason": outcome.reason, "message": outcome.message, "body": outcome.body}


def test_a_wrong_token_is_refused(api_server: ApiServer) -> None:
    stranger = KubernetesClient(Connection(api_server.url, ca_certificate=api_server.ca_certificate, token="wrong"))
    with pytest.raises(ApiFailure) as caught:
        stranger.get(POD.path())
    assert caught.value.code == 401
    assert caught.value.body["kind"] == "Status"


def test_a_connection_that_rests_between_two_sessions_is_not_closed(simulated_server: SimulatedServer) -> None:
    """Closed by the server after its usual five seconds, it would be closed under a request now and then."""
    at = urlsplit(simulated_server.url)
    kept = HTTPConnection(str(at.hostname), at.port)
    for rest in (0, 6):
        time.sleep(rest)
        kept.request("GET", POD.path(), headers={"Authorization": f"Bearer {simulated_server.token}"})
        answer = kept.getresponse()
        assert (answer.status, bool(answer.read())) == (200, True)
    kept.close()


def test_what_is_not_there_is_not_found(client: KubernetesClient, namespace: str) -> None:
    outcome = client.send("GET", POD.path(namespace, "nobody"))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.GONE, "NotFound")
    assert 'pods "nobody" not found' in outcome.message


def test_a_name_is_taken_once(client: KubernetesClient, namespace: str) -> None:
    assert client.send("POST", POD.path(namespace), pod("one")).done
    again = client.send("POST", POD.path(namespace), pod("one"))
    assert (again.kind, again.reason) == (OutcomeKind.CONFLICT, "AlreadyExists")


def test_nothing_is_created_in_a_namespace_that_is_not_there(client: KubernetesClient) -> None:
    outcome = client.send("POST", POD.path("no-such-namespace"), pod("one"))
    assert outcome.reason == "NotFound"


def test_a_stale_update_is_refused(client: KubernetesClient, namespace: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    lease = client.send("POST", path, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}}).body
    assert lease is not None
    first = client.send("PUT", f"{path}/l", {**lease, "spec": {"holderIdentity": "b"}})
    assert first.done
    second = client.send("PUT", f"{path}/l", {**lease, "spec": {"holderIdentity": "c"}})
    assert (second.kind, second.reason) == (OutcomeKind.CONFLICT, "Conflict")
    assert client.get(f"{path}/l")["spec"]["holderIdentity"] == "b"


def test_a_deletion_spares_another_object_of_the_same_name(client: KubernetesClient, namespace: str) -> None:
    assert client.send("POST", POD.path(namespace), pod("one")).done
    options = {"preconditions": {"uid": str(uuid.uuid4())}}
    outcome = client.send("DELETE", POD.path(namespace, "one"), options)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.GONE, "Replaced")
    assert client.send("GET", POD.path(namespace, "one")).done


def test_apply_keeps_what_others_own(client: KubernetesClient, queue_name: str) -> None:
    apply(client, queue_name, {"weight": 2, "reclaimable": True}, "tidesched")
    apply(client, queue_name, {"capability": {"cpu": "8"}}, "somebody")
    assert apply(client, queue_name, {"weight": 3}, "tidesched")["kind"] is OutcomeKind.DONE
    spec = client.get(f"{QUEUES}/{queue_name}")["spec"]
    spec.pop("dequeueStrategy", None)  # a default of Volcano's definition
    # weight is changed, reclaimable was given up and is gone, capability belongs to another manager
    assert spec == {"weight": 3, "capability": {"cpu": "8"}}


def test_apply_names_the_owner_of_a_field_and_force_takes_it(client: KubernetesClient, queue_name: str) -> None:
    apply(client, queue_name, {"weight": 2}, "tidesched")
    refused = apply(client, queue_name, {"weight": 5}, "somebody")
    assert (refused["kind"], refused["reason"]) == (OutcomeKind.CONFLICT, "Conflict")
    assert "conflict" in refused["message"]
    taken = apply(client, queue_name, {"weight": 5}, "somebody", force="true")
    assert taken["body"]["spec"]["weight"] == 5
    assert apply(client, queue_name, {"weight": 2}, "tidesched")["kind"] is OutcomeKind.CONFLICT


def test_applying_the_same_changes_nothing(client: KubernetesClient, queue_name: str) -> None:
    first = apply(client, queue_name, {"weight": 2}, "tidesched")["body"]
    second = apply(client, queue_name, {"weight": 2}, "tidesched")["body"]
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


def test_status_is_written_by_its_own_path_only(client: KubernetesClient, queue_name: str) -> None:
    apply(client, queue_name, {"weight": 2}, "tidesched")
    path = f"{QUEUES}/{queue_name}"
    client.send("PATCH", path, {"status": {"state": "Closed"}}, content_type=MERGE_PATCH)
    assert (client.get(path).get("status") or {}).get("state") != "Closed"
    patch = {"status": {"state": "Closing"}, "spec": {"weight": 9}}
    found = client.send("PATCH", f"{path}/status", patch, content_type=MERGE_PATCH).body
    assert found is not None
    assert found["status"]["state"] == "Closing"
    assert found["spec"]["weight"] == 2


def test_a_dry_run_leaves_nothing_behind(client: KubernetesClient, namespace: str, queue_name: str) -> None:
    assert apply(client, queue_name, {"weight": 2}, "tidesched", dryRun="All")["kind"] is OutcomeKind.DONE
    assert client.send("GET", f"{QUEUES}/{queue_name}").kind is OutcomeKind.GONE
    assert client.send("POST", POD.path(namespace), pod("one"), query={"dryRun": "All"}).done
    assert client.send("GET", POD.path(namespace, "one")).kind is OutcomeKind.GONE


def test_the_value_of_a_live_priority_class_stays(client: KubernetesClient) -> None:
    name = f"pc-{uuid.uuid4().hex[:8]}"
    body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 100}
    query = {"fieldManager": "tidesched", "force": "true"}
    path = f"{CLASSES}/{name}"
    assert client.send("PATCH", path, body, query=query, content_type=APPLY_PATCH).done
    refused = client.send("PATCH", path, {**body, "value": 200}, query=query, content_type=APPLY_PATCH)
    assert (refused.kind, refused.reason) == (OutcomeKind.REFUSED, "Invalid")
    described = {**body, "description": "now with a text"}
    assert client.send("PATCH", path, described, query=query, content_type=APPLY_PATCH).done
    client.send("DELETE", path)


def test_a_queue_with_an_impossible_weight_is_refused(client: KubernetesClient, queue_name: str) -> None:
    refused = apply(client, queue_name, {"weight": 70_000}, "tidesched")
    assert (refused["kind"], refused["reason"]) == (OutcomeKind.REFUSED, "Invalid")
    assert "spec.weight" in refused["message"]


def test_selectors_choose(client: KubernetesClient, namespace: str) -> None:
    for name, labels in (("a", {"app": "x"}), ("b", {"app": "y"}), ("c", {})):
        client.send("POST", POD.path(namespace), pod(name, labels=labels))

    def names(**query: str) -> list[str]:
        return [item["metadata"]["name"] for item in client.get(POD.path(namespace), query)["items"]]

    assert names(labelSelector="app=x") == ["a"]
    assert names(labelSelector="app in (x, y)") == ["a", "b"]
    assert names(labelSelector="!app") == ["c"]
    assert names(labelSelector="app,app!=x") == ["b"]
    assert names(fieldSelector="metadata.name=b") == ["b"]
    assert names(fieldSelector="spec.nodeName=") == ["a", "b", "c"]
    with pytest.raises(ApiFailure) as caught:
        names(fieldSelector="spec.nonsense=1")
    assert caught.value.code == 400


def test_a_list_comes_in_pages(client: KubernetesClient, namespace: str) -> None:
    made = [f"p-{index:02}" for index in range(7)]
    for name in made:
        client.send("POST", POD.path(namespace), pod(name))
    seen: list[str] = []
    query: dict[str, object] = {"limit": 3}
    versions = set()
    while True:
        page = client.get(POD.path(namespace), query)
        assert len(page["items"]) <= 3
        seen += [item["metadata"]["name"] for item in page["items"]]
        versions.add(page["metadata"]["resourceVersion"])
        if not page["metadata"].get("continue"):
            break
        query["continue"] = page["metadata"]["continue"]
    assert seen == made
    assert len(versions) == 1


def events(client: KubernetesClient, path: str, **query: object) -> Iterator[Json]:
    with client.stream(path, {"watch": "1", "timeoutSeconds": 1, **query}, read_timeout=60) as response:
        for line in b"".join(response.stream()).splitlines():
            yield orjson.loads(line)


def test_a_watch_goes_on_from_a_version(client: KubernetesClient, namespace: str) -> None:
    path = POD.path(namespace)
    version = client.get(path)["metadata"]["resourceVersion"]
    client.send("POST", path, pod("one", labels={"app": "x"}))
    client.send("PATCH", f"{path}/one", {"metadata": {"labels": {"more": "y"}}}, content_type=MERGE_PATCH)
    client.send("DELETE", f"{path}/one")
    seen = [event for event in events(client, path, resourceVersion=version) if event["type"] != "BOOKMARK"]
    # a deletion may show itself before it is done
    assert [type_ for type_, _ in groupby(event["type"] for event in seen)] == ["ADDED", "MODIFIED", "DELETED"]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in seen]
    assert versions == sorted(versions)
    assert versions[0] > int(version)
    later = [event["type"] for event in events(client, path, resourceVersion=str(versions[0]))]
    assert [type_ for type_, _ in groupby(later)][:2] == ["MODIFIED", "DELETED"]


def test_a_watch_without_a_version_begins_with_what_is_there(client: KubernetesClient, namespace: str) -> None:
    path = POD.path(namespace)
    client.send("POST", path, pod("one"))
    seen = list(events(client, path))
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in seen] == [("ADDED", "one")]


def test_a_selecting_watch_sees_objects_come_and_go(client: KubernetesClient, namespace: str) -> None:
    path = POD.path(namespace)
    version = client.get(path)["metadata"]["resourceVersion"]
    client.send("POST", path, pod("one", labels={"app": "x"}))
    client.send("PATCH", f"{path}/one", {"metadata": {"labels": {"app": "y"}}}, content_type=MERGE_PATCH)
    client.send("PATCH", f"{path}/one", {"metadata": {"labels": {"app": "x"}}}, content_type=MERGE_PATCH)
    seen = [event["type"] for event in events(client, path, resourceVersion=version, labelSelector="app=x")]
    assert [type_ for type_ in seen if type_ != "BOOKMARK"] == ["ADDED", "DELETED", "ADDED"]


def test_discovery_tells_what_is_served(client: KubernetesClient) -> None:
    assert client.serves("v1", "pods/eviction")
    assert client.serves("scheduling.volcano.sh/v1beta1", "queues/status")
    assert not client.serves("scheduling.volcano.sh/v1beta1", "podgroups/status")
    assert not client.serves("no.such.group/v1", "things")
