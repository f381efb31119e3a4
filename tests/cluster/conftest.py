"""Servers for the contract tests: each test runs against the simulated API server and against a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.fixtures import new_namespace, writes  # noqa: F401 - a fixture
from tests.cluster.servers import ApiServer, SimulatedServer
from tests.kube.real_server import RealServer
from tests.kube.shared import shared_server, stand_by
from tidesched_web.clusters.kubernetes.client import KubernetesClient

# Without kubelets what was evicted is seen leaving, and queues are closed by who wants them closed.
_CONTROLLERS = frozenset({"jobs", "replicas", "budgets", "garbage"})


@pytest.fixture(scope="session", params=["simulated", pytest.param("kubernetes", marks=pytest.mark.kubernetes)])
def api_server(request: pytest.FixtureRequest) -> ApiServer:
    """One server for all tests that ask nothing special; each works in a namespace of its own."""
    if request.param == "kubernetes":
        return shared_server()
    simulated: ApiServer = request.getfixturevalue("simulated_server")
    return simulated


@pytest.fixture(scope="session")
def simulated_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedServer]:
    server = SimulatedServer(tmp_path_factory.mktemp("simcluster"))
    server.start()
    yield server
    if server.running:
        server.stop()


@pytest.fixture
def simulated(simulated_server: SimulatedServer) -> Iterator[KubernetesClient]:
    """For what only the simulated cluster does."""
    made = simulated_server.client()
    yield made
    made.close()


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
    if isinstance(api_server, RealServer):
        stand_by(api_server, who=_CONTROLLERS)
    made = api_server.client()
    yield made
    made.close()


@pytest.fixture
def namespace(client: KubernetesClient) -> str:
    return new_namespace(client)
