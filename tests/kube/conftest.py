"""One real API server for all tests here, and a proxy in front of it for those that spoil something."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.fixtures import new_namespace, writes  # noqa: F401 - a fixture
from tests.kube.fault_proxy import FaultProxy
from tests.kube.real_server import RealServer
from tests.kube.real_stage import RealStage
from tests.kube.shared import shared_server, stand_by
from tidesched_web.clusters.kubernetes.client import KubernetesClient

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever asks for the server is a test of `make proof-kubernetes`."""
    for item in items:
        if item.path.parent == _HERE and "server" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.kubernetes)


@pytest.fixture
def server() -> RealServer:
    return shared_server()


@pytest.fixture
def beside(server: RealServer) -> None:
    """Kubelets and controllers."""
    stand_by(server, grace=0.3)


@pytest.fixture
def proxy(server: RealServer) -> Iterator[FaultProxy]:
    made = FaultProxy(server)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def direct(server: RealServer) -> Iterator[KubernetesClient]:
    """What is asked here is not spoilt."""
    made = server.client()
    yield made
    made.close()


@pytest.fixture
def client(proxy: FaultProxy) -> Iterator[KubernetesClient]:
    """TideSched's way to the cluster, through the proxy."""
    made = proxy.client()
    yield made
    made.close()


@pytest.fixture
def namespace(direct: KubernetesClient) -> str:
    return new_namespace(direct)


@pytest.fixture
def stage(server: RealServer, proxy: FaultProxy, transactional_db: None) -> Iterator[RealStage]:
    """A cluster in mode schedule whose sessions go through the proxy."""
    made = RealStage(server, through=proxy)
    made.open()
    yield made
    proxy.heal()
    made.close()
