"""The official client understands what the server says: lists, watches, errors, dynamic discovery."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kubernetes import watch
from kubernetes.client import (
    ApiClient,
    ApiException,
    Configuration,
    CoreV1Api,
    PolicyV1Api,
    SchedulingV1Api,
    V1Binding,
    V1DeleteOptions,
    V1Eviction,
    V1ObjectMeta,
    V1ObjectReference,
    V1Preconditions,
)
from kubernetes.dynamic import DynamicClient

from tests.cluster.objects import node, pod
from tests.cluster.servers import ApiServer
from tidesched_web.clusters.kubernetes.client import KubernetesClient
from tidesched_web.clusters.kubernetes.paths import NODE, POD


@pytest.fixture
def official(api_server: ApiServer) -> Iterator[ApiClient]:
    configuration = Configuration(host=api_server.url)
    configuration.api_key = {"authorization": api_server.token}
    configuration.api_key_prefix = {"authorization": "Bearer"}
    configuration.proxy = None
    if api_server.ca_certificate:
        configuration.ca_cert_data = api_server.ca_certificate
    with ApiClient(configuration) as made:
        yield made


def test_it_lists_watches_binds_and_evicts(official: ApiClient, client: KubernetesClient, namespace: str) -> None:
    assert client.send("POST", NODE.path(), node(f"n-{namespace}")).done
    assert client.send("POST", POD.path(namespace), pod("one")).done
    core = CoreV1Api(official)
    assert f"n-{namespace}" in {item.metadata.name for item in core.list_node().items}
    listed = core.list_namespaced_pod(namespace, limit=10)
    uid = listed.items[0].metadata.uid
    binding = V1Binding(
        metadata=V1ObjectMeta(name="one", uid=uid), target=V1ObjectReference(kind="Node", name=f"n-{namespace}")
    )
    core.create_namespaced_pod_binding("one", namespace, binding, _preload_content=False)
    seen = []
    stream = watch.Watch().stream(
        core.list_namespaced_pod, namespace, resource_version=listed.metadata.resource_version, timeout_seconds=2
    )
    for event in stream:
        seen.append((event["type"], event["object"].spec.node_name))
    assert seen == [("MODIFIED", f"n-{namespace}")]
    eviction = V1Eviction(
        metadata=V1ObjectMeta(name="one"), delete_options=V1DeleteOptions(preconditions=V1Preconditions(uid="another"))
    )
    with pytest.raises(ApiException) as caught:
        core.create_namespaced_pod_eviction("one", namespace, eviction)
    assert caught.value.status == 409


def test_it_finds_the_kinds_by_discovery(official: ApiClient, tmp_path: object) -> None:
    dynamic = DynamicClient(official)
    queues = dynamic.resources.get(api_version="scheduling.volcano.sh/v1beta1", kind="Queue")
    assert (queues.name, queues.namespaced) == ("queues", False)
    assert isinstance(queues.get().items, list)
    assert dynamic.resources.get(api_version="batch.volcano.sh/v1alpha1", kind="Job").namespaced


def test_typed_answers_parse(official: ApiClient, client: KubernetesClient, namespace: str) -> None:
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}}}
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    assert client.send("POST", path, budget).done
    (found,) = PolicyV1Api(official).list_namespaced_pod_disruption_budget(namespace).items
    assert found.spec.min_available == "50%"
    assert isinstance(SchedulingV1Api(official).list_priority_class().items, list)
