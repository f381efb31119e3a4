"""A fresh simulated cluster for each test of the pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.servers import SimulatedServer
from tests.web.pipeline.stage import Stage


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SimulatedServer]:
    made = SimulatedServer(tmp_path, rate=60.0)
    made.start()
    yield made
    if made.running:
        made.kill()


@pytest.fixture
def stage(server: SimulatedServer, transactional_db: None) -> Iterator[Stage]:
    made = Stage(server)
    made.open()
    yield made
    made.close()
