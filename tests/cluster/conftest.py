"""Servers for the contract tests. A real API server takes the place of the simulated one by overriding `api_server`."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.servers import ApiServer, SimulatedServer
from tidesched_web.clusters.kubernetes.client import KubernetesClient
from tidesched_web.clusters.kubernetes.writes import ClusterWrites


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """One server for all tests that ask nothing special; each works in a namespace of its own."""
    server = SimulatedServer(tmp_path_factory.mktemp("simcluster"))
    server.start()
    yield server
    if server.running:
        server.stop()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[SimulatedServer]:
    """A simulated cluster that the test may kill."""
    server = SimulatedServer(tmp_path)
    server.start()
    yield server
    if server.running:
        server.kill()


@pytest.fixture
def client(api_server: ApiServer) -> Iterator[KubernetesClient]:
    made = api_server.client()
    yield made
    made.close()


@pytest.fixture
def writes(client: KubernetesClient) -> ClusterWrites:
    return ClusterWrites(client, session="42", epoch=7)


@pytest.fixture
def namespace(client: KubernetesClient) -> str:
    name = f"test-{uuid.uuid4().hex[:8]}"
    assert client.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}}).done
    return name
