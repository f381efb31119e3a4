"""One API server with Volcano beside it for all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kube import binaries
from tests.kube.real_server import DEFINITIONS, RealServer
from tests.volcano import build
from tests.volcano.real_volcano import RealVolcano
from tests.web.test_drift import Scene, opened
from tidesched_web.quota.services import drift

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever is here is a test of `make proof-volcano`, where it may take its time."""
    for item in items:
        if item.path.parent == _HERE:
            item.add_marker(pytest.mark.volcano)


@pytest.fixture(scope="session")
def volcano(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealVolcano]:
    programs, kube = build.find(), binaries.find()
    if programs is None or kube is None:
        pytest.skip("no Volcano or no kube-apiserver here: `make proof-volcano` builds them")
    server = RealServer(tmp_path_factory.mktemp("volcano"), kube, definitions=[DEFINITIONS, programs.definitions])
    server.start()
    made = RealVolcano(server, programs)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        server.stop()


@pytest.fixture
def scene(volcano: RealVolcano, db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """A cluster in mode quota whose queues were pushed to it."""
    monkeypatch.setattr(drift, "wake_push", lambda: True)
    made = opened(volcano.server)
    yield made
    made.cache.stop()
    made.client.close()
