"""What a change was expected to do, beside what real sessions did after it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache

from tests.cluster.objects import CARD
from tests.cluster.servers import eventually
from tests.web.pipeline.stage import Stage
from tests.web.pipeline.test_impact import EVERYTHING, asked, train
from tidesched_web.changes import services as changes
from tidesched_web.changes.forecast_selectors import forecast_of, record_of
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.changes.services import forecasting
from tidesched_web.common.permissions import Access
from tidesched_web.scheduling import pictures
from tidesched_web.workloads.models import Gang


@pytest.fixture(autouse=True)
def _nothing_loaded() -> Iterator[None]:
    cache.clear()
    yield
    pictures.forget()


def carried(change: QuotaChange) -> QuotaChange:
    """The change once the cluster has it."""

    def arrived() -> bool:
        changes.sweep()
        return QuotaChange.objects.get(pk=change.pk).state == ChangeState.APPLIED

    eventually(arrived, 30)
    return QuotaChange.objects.get(pk=change.pk)


def draft(stage: Stage, cards: int) -> QuotaChange:
    """A draft with the impact that its reviewer has seen."""
    edits = {"queue/train": {"card_quota": {CARD: cards}}}
    made = changes.draft(cluster=stage.cluster, edits=edits, access=EVERYTHING, reason="more")
    stage.session()
    impact = asked(stage, made.plan["objects"])
    QuotaChange.objects.filter(pk=made.pk).update(plan=made.plan | {"impact": impact})
    return QuotaChange.objects.get(pk=made.pk)


def two_waits(stage: Stage) -> None:
    edits = {"queue/train": {"card_quota": {CARD: 8}}}
    carried(changes.carry_out(cluster=stage.cluster, edits=edits, access=EVERYTHING, reason="less"))
    stage.sessions_until(lambda: stage.session() and pictures.renew(stage.cluster.pk))
    train(stage, "one")
    stage.sessions_until(lambda: stage.running("one") == 8)
    train(stage, "two")
    stage.sessions_until(lambda: Gang.objects.filter(name="two", needs=True).exists())


def followed(stage: Stage, change: QuotaChange) -> dict[str, Any]:
    """The rows by gang once nothing is open, with sessions in between."""

    def done() -> bool:
        changes.sweep()
        shown = forecast_of(change, EVERYTHING)
        return shown is not None and shown.forecast.state == "done"

    stage.sessions_until(done, 60)
    shown = forecast_of(change, EVERYTHING)
    assert shown is not None
    return {row["gang"]: row for row in shown.rows}


def test_a_gang_that_was_expected_to_run_at_once_does(stage: Stage) -> None:
    two_waits(stage)
    change = draft(stage, 16)
    assert [row["gang"] for row in change.plan["impact"]["gangs_run"]] == ["work/two"]
    change = carried(changes.apply(change=change, access=EVERYTHING))
    rows = followed(stage, change)
    assert (rows["work/two"]["expects"], rows["work/two"]["outcome"]) == ("run", "held")
    assert rows["work/two"]["session"] is not None
    record = record_of(EVERYTHING, stage.cluster)
    assert (record.changes, record.kinds) == (1, {"run": (1, 1)})


def test_what_did_not_come_is_said_with_the_reason(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecasting, "LEAST", dt.timedelta(0))
    monkeypatch.setattr(forecasting, "SESSIONS", 4)
    two_waits(stage)
    change = draft(stage, 9)  # one card more helps nobody
    assert not any(change.plan["impact"]["counts"].values())
    row = {"gang": "work/two", "queue": "train", "becomes": "running", "cards": {CARD: 8}, "priority": 0}
    untrue = change.plan["impact"] | {"gangs_run": [row, row | {"gang": "work/never-was"}]}
    QuotaChange.objects.filter(pk=change.pk).update(plan=change.plan | {"impact": untrue})
    change = carried(changes.apply(change=QuotaChange.objects.get(pk=change.pk), access=EVERYTHING))
    rows = followed(stage, change)
    assert rows["work/two"]["outcome"] == "missed"
    assert rows["work/two"]["why"]["code"] == "WaitingForQuota"
    assert rows["work/never-was"]["outcome"] == "gone", "of a gang that is not there nothing can be said"
    assert record_of(EVERYTHING, stage.cluster).kinds == {"run": (1, 0)}
    shown = forecast_of(change, Access("stranger"))
    assert shown is not None
    assert (shown.rows, shown.hidden) == ([], 2)
    assert record_of(Access("stranger"), stage.cluster).expected == 0


def test_a_change_that_nobody_tried_out_has_nothing_to_follow(stage: Stage) -> None:
    edits = {"queue/train": {"card_quota": {CARD: 12}}}
    change = carried(changes.carry_out(cluster=stage.cluster, edits=edits, access=EVERYTHING, reason="more"))
    changes.sweep()
    assert forecast_of(change, EVERYTHING) is None
    assert record_of(EVERYTHING, stage.cluster).expected == 0
