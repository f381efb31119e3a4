"""One real API server for all suites of a process."""

from __future__ import annotations

import atexit
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.kube.binaries import Binaries, find
from tests.kube.real_server import DEFINITIONS, RealServer
from tests.kube.standins.runner import EVERYBODY, StandIns

_started: list[RealServer] = []
_beside: list[tuple[tuple[object, ...], StandIns]] = []


def find_or_skip() -> Binaries:
    """Where there are no binaries the test is skipped; with ``CI=true`` it fails."""
    missing = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
    return find() or missing("no kube-apiserver here: `make proof-kubernetes` builds it")


def shared_server() -> RealServer:
    """Started when first asked for; ends with the process."""
    if not _started:
        binaries = find_or_skip()
        folder = at_the_end().enter_context(tempfile.TemporaryDirectory(prefix="tidesched-kube-"))
        server = RealServer(Path(folder), binaries, definitions=[DEFINITIONS, *upstream_definitions()])
        at_the_end().callback(server.stop)
        server.start()
        _started.append(server)
        at_the_end().callback(stand_aside)
    return _started[0]


def stand_by(server: RealServer, *, grace: float = 0.3, start: float = 0.05, who: frozenset[str] = EVERYBODY) -> None:
    """Let these stand-ins be there with these times, and no others."""
    asked = (server, grace, start, who)
    if _beside and _beside[0][0] == asked:
        return
    stand_aside()
    _beside.append((asked, StandIns(server, who=who, start=start, grace=grace).__enter__()))


def stand_aside() -> None:
    """No stand-ins any more."""
    while _beside:
        _beside.pop()[1].__exit__()


def upstream_definitions() -> list[Path]:
    """A folder with Volcano's own CRDs, where ``TIDESCHED_VOLCANO_CRDS`` names one: they replace the project's."""
    given = os.environ.get("TIDESCHED_VOLCANO_CRDS")
    return [Path(given)] if given else []


def at_the_end() -> ExitStack:
    """What has to be closed when the process ends, the newest first."""
    if not _stack:
        _stack.append(ExitStack())
        atexit.register(_stack[0].close)
    return _stack[0]


_stack: list[ExitStack] = []
