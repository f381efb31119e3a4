"""What a session leaves in memory: nothing that has to wait for Python's collector of garbage."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from collections.abc import Iterator

import pytest
from django.db import models

from tests.web.pipeline.stage import Stage
from tidesched_web.clusters.kubernetes import collector
from tidesched_web.engine import inputs
from tidesched_web.engine.model import Pod, Snapshot
from tidesched_web.scheduling.models import Session

SESSIONS = 12


@pytest.fixture
def no_collector() -> Iterator[None]:
    """No collection runs meanwhile: what a session leaves must go with it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def _rows_alive() -> Counter[str]:
    return Counter(type(one).__name__ for one in gc.get_objects() if issubclass(type(one), models.Model))


def test_the_rows_of_a_session_go_with_it(stage: Stage, no_collector: None) -> None:
    stage.train("a", pods=4)
    stage.serve("b", replicas=3)
    stage.sessions_until(lambda: stage.bound("b") == 3)
    before = _rows_alive()
    for _ in range(SESSIONS):
        stage.session()
    grown = {name: n - before[name] for name, n in _rows_alive().items() if n - before[name] >= SESSIONS // 2}
    assert grown == {}, "rows that stay in memory"


def test_a_session_that_fails_leaves_no_row_either(
    stage: Stage, no_collector: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidesched_web.engine import bridge
    from tidesched_web.engine.model import BrokenInvariant

    def broken(*_: object, **__: object) -> None:
        raise BrokenInvariant("for this test", {})

    stage.session()
    monkeypatch.setattr(bridge, "decide", broken)
    before = _rows_alive()["SessionInput"]
    for _ in range(SESSIONS):
        with pytest.raises(BrokenInvariant):
            stage.session()
    assert Session.objects.filter(state="failed").count() == SESSIONS
    assert _rows_alive()["SessionInput"] - before <= 1


def test_a_stored_input_is_as_large_in_memory_as_it_is_long() -> None:
    pods = tuple(Pod(namespace="work", name=f"pod-{number:05}") for number in range(3_000))
    snapshot = Snapshot(pods=pods)
    base = Snapshot(pods=pods[:100])
    for encode in (lambda: inputs.encode_full(snapshot), lambda: inputs.encode_difference(snapshot, base)):
        kept = []
        encode()
        tracemalloc.start()
        try:
            kept += [encode() for _ in range(20)]
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert held < 2 * sum(map(len, kept)) + 20_000


def test_garbage_is_collected_in_quiet_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = collector.QuietCollector()
    assert not quiet.quiet(1.0)  # it was just begun
    monkeypatch.setattr(collector, "EVERY_SECONDS", 0.0)
    circle: list[object] = []
    circle.append(circle)
    del circle
    assert quiet.quiet(1.0)
    assert quiet.found >= 1
    assert quiet.seconds > 0


def test_a_dear_collection_waits_for_a_long_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(collector.time, "monotonic", lambda: now[0])
    quiet = collector.QuietCollector()
    quiet.seconds = 2.0  # what the last one took
    now[0] += collector.EVERY_SECONDS
    assert not quiet.quiet(5.0)  # that would be more than its share of the time
    now[0] += 2.0 / collector.SHARE
    assert not quiet.quiet(1.0)  # shorter than it takes
    assert quiet.quiet(5.0)
    quiet.seconds = 2.0
    now[0] += collector.PATIENCE * 2.0 / collector.SHARE
    assert quiet.quiet(0.1)  # one that is never quiet long enough is asked all the same
