"""What the contract suite and the suites against a real server have in common; each has a ``client`` of its own."""

from __future__ import annotations

import uuid

import pytest

from tidesched_web.clusters.kubernetes.client import KubernetesClient
from tidesched_web.clusters.kubernetes.writes import ClusterWrites


@pytest.fixture
def writes(client: KubernetesClient) -> ClusterWrites:
    return ClusterWrites(client, session="42", epoch=7)


def new_namespace(client: KubernetesClient) -> str:
    """A namespace that no other test uses."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    assert client.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}}).done
    return name
