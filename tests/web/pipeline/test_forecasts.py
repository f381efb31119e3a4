"""What a change was expected to do, beside what real sessions did after it."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from tests import quota_writes
from tests.cluster.objects import CARD
from tests.waiting import until
from tests.web.pipeline.stage import NAMESPACE_NAME, Stage
from tests.web.pipeline.test_impact import EVERYTHING, asked, train
from tidesched_web.accounts.models import BusinessLine, PlatformRole, User
from tidesched_web.changes import services as changes
from tidesched_web.changes.forecast_selectors import forecast_of, record_of
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.changes.services import forecasting
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.kubernetes.paths import JOB
from tidesched_web.common.permissions import Access
from tidesched_web.scheduling import pictures
from tidesched_web.workloads.models import Gang

OTHER = "NVIDIA-L40S"


@pytest.fixture(autouse=True)
def _nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(forecasting, "LEAST", dt.timedelta(seconds=4))
    cache.clear()
    yield
    pictures.forget()


def carried(change: QuotaChange) -> QuotaChange:
    """The change once the cluster has it."""

    def arrived() -> bool:
        changes.sweep()
        return QuotaChange.objects.get(pk=change.pk).state == ChangeState.APPLIED

    until(arrived)
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

    stage.sessions_until(done)
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


def test_a_running_gang_that_was_expected_to_grow_is_followed_by_its_pods(stage: Stage) -> None:
    edits = {"queue/train": {"card_quota": {CARD: 4}}}
    carried(changes.carry_out(cluster=stage.cluster, edits=edits, access=EVERYTHING, reason="less"))
    stage.sessions_until(lambda: stage.session() and pictures.renew(stage.cluster.pk))
    train(stage, "one", least=4)
    stage.sessions_until(lambda: stage.running("one") == 4)
    change = draft(stage, 7)
    gains = change.plan["impact"]["gangs_run"]
    assert [(row["gang"], row["becomes"], row["pods"], row["pods_more"]) for row in gains] == [
        ("work/one", "larger", 7, 3)
    ]
    change = carried(changes.apply(change=change, access=EVERYTHING))
    rows = followed(stage, change)
    assert (rows["work/one"]["expects"], rows["work/one"]["outcome"]) == ("grow", "held")
    stage.sessions_until(lambda: stage.running("one") == 7)
    assert record_of(EVERYTHING, stage.cluster).kinds == {"grow": (1, 1)}


def expecting(change: QuotaChange, *gangs: str) -> QuotaChange:
    """The draft with an impact that says of these gangs that they would run at once."""
    row = {"queue": "train", "becomes": "running", "cards": {CARD: 8}, "priority": 0}
    says = change.plan["impact"] | {"gangs_run": [row | {"gang": f"work/{gang}"} for gang in gangs]}
    QuotaChange.objects.filter(pk=change.pk).update(plan=change.plan | {"impact": says})
    return QuotaChange.objects.get(pk=change.pk)


def fearing(change: QuotaChange, *, lose: str = "two", taken: str = "") -> QuotaChange:
    """The draft with an impact that says that one gang would not run, and another one be evicted."""
    row = {"queue": "train", "cards": {CARD: 8}, "priority": 0}
    says = change.plan["impact"] | {
        "gangs_run": [],
        "gangs_lose": [row | {"gang": f"work/{lose}", "was": "running"}],
        "reclaimed_next": [row | {"gang": f"work/{taken}"}] if taken else [],
    }
    QuotaChange.objects.filter(pk=change.pk).update(plan=change.plan | {"impact": says})
    return QuotaChange.objects.get(pk=change.pk)


def edited(stage: Stage, edits: dict[str, Any]) -> QuotaChange:
    return carried(changes.carry_out(cluster=stage.cluster, edits=edits, access=EVERYTHING, reason="another one"))


def pages(stage: Stage, change: QuotaChange) -> tuple[str, str]:
    """The page of the change, and the list of changes with the record of the cluster."""
    admin, _ = User.objects.get_or_create(username="reader", platform_role=PlatformRole.ADMIN)
    client = Client()
    client.force_login(admin)
    base = f"/clusters/{stage.cluster.slug}/changes/"
    shown = [client.get(address).content.decode() for address in (f"{base}{change.pk}/", base)]
    return " ".join(shown[0].split()), " ".join(shown[1].split())


def test_a_change_of_another_queue_and_card_hides_no_miss(stage: Stage) -> None:
    clusters.ensure_card_type(cluster=stage.cluster, name=OTHER, actor="test", resource="nvidia.com/gpu")
    stage.cluster.card_types.filter(name=OTHER).update(hardware=4)
    line = BusinessLine.objects.get(slug="research")
    quota_writes.create_queue(
        cluster=stage.cluster, name="apart", service_type="training", card_quota={OTHER: 4}, actor="test",
        business_line=line,
    )  # fmt: skip
    two_waits(stage)
    change = carried(changes.apply(change=expecting(draft(stage, 9), "two"), access=EVERYTHING))
    edited(stage, {"queue/apart": {"card_quota": {OTHER: 2}}})
    assert followed(stage, change)["work/two"]["outcome"] == "missed"
    page, listed = pages(stage, change)
    assert "0 of 1 came" in page
    assert "did not come" in page
    assert "What was expected of the last change came in 0 %" in listed


def test_a_change_of_the_same_card_leaves_out_what_came_and_what_did_not(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecasting, "LEAST", dt.timedelta(minutes=5))
    two_waits(stage)
    train(stage, "three")
    change = carried(changes.apply(change=expecting(draft(stage, 16), "two", "three"), access=EVERYTHING))
    stage.sessions_until(lambda: stage.running("two") == 8)
    later = edited(stage, {"queue/serve": {"card_quota": {CARD: 12}}})
    rows = followed(stage, change)
    assert {row["outcome"] for row in rows.values()} == {"overtaken"}
    assert [rows[f"work/{gang}"]["at"] is not None for gang in ("two", "three")] == [True, False]
    assert {row["why"]["numbers"]["change"] for row in rows.values()} == {later.pk}
    assert record_of(EVERYTHING, stage.cluster).expected == 0
    page, listed = pages(stage, change)
    assert page.count(f"change {later.pk} was written meanwhile") == 2
    assert "1 of 2 came" in page
    assert "What was expected of the last" not in listed


def test_what_comes_after_the_promised_moment_came_too_late(stage: Stage) -> None:
    two_waits(stage)
    change = carried(changes.apply(change=expecting(draft(stage, 9), "two"), access=EVERYTHING))
    done_at = change.applied_at
    assert done_at is not None
    stage.sessions_until(lambda: timezone.now() - done_at > forecasting.LEAST)
    for _ in range(forecasting.SESSIONS + 1):
        stage.session()
    assert stage.client.send("DELETE", JOB.path(NAMESPACE_NAME, "one")).done
    stage.sessions_until(lambda: stage.running("two") == 8)
    stage.session()
    row = followed(stage, change)["work/two"]
    assert (row["outcome"], row["at"] is not None) == ("missed", True)
    assert "came too late" in pages(stage, change)[0]
    assert record_of(EVERYTHING, stage.cluster).kinds == {"run": (1, 0)}


def test_what_did_not_come_is_said_with_the_reason(stage: Stage) -> None:
    two_waits(stage)
    change = draft(stage, 9)  # one card more helps no gang
    assert not any(change.plan["impact"]["counts"].values())
    change = carried(changes.apply(change=expecting(change, "two", "never-was"), access=EVERYTHING))
    rows = followed(stage, change)
    assert rows["work/two"]["outcome"] == "missed"
    assert rows["work/two"]["why"]["code"] == "WaitingForQuota"
    assert rows["work/never-was"]["outcome"] == "gone", "of a gang that is not there nothing can be said"
    assert record_of(EVERYTHING, stage.cluster).kinds == {"run": (1, 0)}
    shown = forecast_of(change, Access("stranger"))
    assert shown is not None
    assert (shown.rows, shown.hidden) == ([], 2)
    assert record_of(Access("stranger"), stage.cluster).expected == 0


def test_who_was_to_lose_its_place_is_followed_as_who_was_to_get_one(stage: Stage) -> None:
    two_waits(stage)
    change = carried(changes.apply(change=fearing(draft(stage, 9), taken="one"), access=EVERYTHING))
    changes.sweep()
    assert re.search(r"loses its place</td> <td[^>]*><span[^>]*>.*?not yet<", pages(stage, change)[0])
    rows = followed(stage, change)
    assert (rows["work/two"]["expects"], rows["work/two"]["outcome"]) == ("lose", "held")
    assert rows["work/two"]["session"] is not None
    assert rows["work/two"]["why"]["code"] == "WaitingForQuota"
    assert (rows["work/one"]["expects"], rows["work/one"]["outcome"]) == ("reclaimed", "missed")
    assert record_of(EVERYTHING, stage.cluster).kinds == {"lose": (1, 1), "reclaimed": (1, 0)}
    page, listed = pages(stage, change)
    assert "1 of 2 came" in page
    assert re.search(r"is reclaimed</td> <td[^>]*><span[^>]*>.*?kept its place<", page)
    assert "loses its place: 1 of 1 · is reclaimed: 0 of 1" in listed


def test_who_gets_the_place_that_it_was_to_lose_has_kept_it(stage: Stage) -> None:
    two_waits(stage)
    change = carried(changes.apply(change=fearing(draft(stage, 16)), access=EVERYTHING))
    row = followed(stage, change)["work/two"]
    assert (row["expects"], row["outcome"], row["session"] is not None) == ("lose", "missed", True)
    page = pages(stage, change)[0]
    assert "0 of 1 came" in page
    assert "kept its place" in page


def test_a_change_that_nobody_tried_out_has_nothing_to_follow(stage: Stage) -> None:
    edits = {"queue/train": {"card_quota": {CARD: 12}}}
    change = carried(changes.carry_out(cluster=stage.cluster, edits=edits, access=EVERYTHING, reason="more"))
    changes.sweep()
    assert forecast_of(change, EVERYTHING) is None
    assert record_of(EVERYTHING, stage.cluster).expected == 0
