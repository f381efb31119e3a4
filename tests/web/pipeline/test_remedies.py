"""What would help a waiting gang, on real servers: worked out beside the sessions, and true once it is done."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.cache import cache
from django.db import connection
from django.utils import timezone

from tests.cluster.objects import CARD
from tests.waiting import until
from tests.web.pipeline.stage import NAMESPACE_NAME, Stage
from tests.web.pipeline.test_impact import one_waits_for_quota, quota, train
from tests.web.pipeline.test_recording import page_of
from tidesched_web.clusters.kubernetes.paths import JOB
from tidesched_web.engine import remedies as engine
from tidesched_web.jobs import services as jobs
from tidesched_web.jobs.models import JobKind
from tidesched_web.scheduling import pictures, remedies
from tidesched_web.scheduling.remedy_asking import MOST_ASKED, ask, take
from tidesched_web.waking import WHAT_IF_QUEUE
from tidesched_web.workloads.models import Gang, GangRemedy
from tidesched_web.workloads.remedies import remedy_of
from tidesched_web.workloads.remedy_selectors import due_gangs, with_remedies


@pytest.fixture(autouse=True)
def _nothing_loaded() -> Iterator[None]:
    cache.clear()
    remedies.forget()
    yield
    pictures.forget()


def gang_named(name: str) -> Gang:
    return with_remedies(Gang.objects.all()).get(name=name, gone_at=None)


def test_more_quota_that_would_help_admits_the_gang(stage: Stage) -> None:
    one_waits_for_quota(stage)
    assert remedies.round_of_all() == 1
    found = remedy_of(gang_named("two"), timezone.now())
    assert found is not None
    assert found.remedy == {"change": "quota", "queue": "train", "card": CARD, "by": 8.0, "verified": True}
    assert found.number == stage.cluster.sessions.latest("id").number
    quota(stage, train=8 + int(found.remedy["by"]))
    stage.sessions_until(lambda: stage.running("two") == 8)
    stage.session()
    assert remedy_of(gang_named("two"), timezone.now()) is None, "it does not wait any more"
    remedies.round_of(stage.cluster.pk)
    assert not GangRemedy.objects.exists()


def test_a_gang_whose_end_would_help_ends_and_it_does(stage: Stage) -> None:
    stage.sessions_until(lambda: stage.session() and pictures.renew(stage.cluster.pk))
    for name in ("one", "two"):
        train(stage, name)
    stage.sessions_until(lambda: stage.running("one") == stage.running("two") == 8)
    train(stage, "three")
    stage.sessions_until(lambda: Gang.objects.filter(name="three", needs=True).exists())
    assert remedies.round_of(stage.cluster.pk) == 1
    found = remedy_of(gang_named("three"), timezone.now())
    assert found is not None
    assert found.remedy is not None
    assert found.remedy["change"] == "gang_ends", "no quota helps where no card is free"
    _, _, ends = found.remedy["gang"].partition("/")
    assert stage.client.send("DELETE", JOB.path(NAMESPACE_NAME, ends)).done
    stage.sessions_until(lambda: stage.running("three") == 8)


def test_a_gang_that_no_single_change_helps_says_what_is_missing(stage: Stage) -> None:
    stage.sessions_until(lambda: stage.session() and pictures.renew(stage.cluster.pk))
    stage.train("huge", pods=40)
    stage.sessions_until(lambda: Gang.objects.filter(name="huge", needs=True).exists())
    assert remedies.round_of(stage.cluster.pk) == 1
    found = remedy_of(gang_named("huge"), timezone.now())
    assert found is not None
    assert found.remedy is None
    assert gang_named("huge").reason_numbers["short"] == 24


def test_an_answer_to_other_figures_is_not_shown(stage: Stage) -> None:
    one_waits_for_quota(stage)
    remedies.round_of(stage.cluster.pk)
    quota(stage, train=12)
    stage.sessions_until(lambda: gang_named("two").reason_numbers.get("limit") == 12)
    assert remedy_of(gang_named("two"), timezone.now()) is None
    remedies.round_of(stage.cluster.pk)
    found = remedy_of(gang_named("two"), timezone.now())
    assert found is not None
    assert found.remedy is not None
    assert found.remedy["by"] == 4


def test_a_gang_that_goes_while_the_round_is_read_ends_no_round(stage: Stage) -> None:
    one_waits_for_quota(stage)
    asked = []

    def goes_after_the_first(execute, sql, params, many, context):
        found = execute(sql, params, many, context)
        asked.append(sql)
        if len(asked) == 1:
            Gang.objects.filter(name="two").update(gone_at=timezone.now())
        return found

    with connection.execute_wrapper(goes_after_the_first):
        assert [gang.name for gang in due_gangs(stage.cluster.pk, timezone.now())] == ["two"]
    assert len(asked) > 2


def test_a_round_is_bounded_and_gives_way_to_a_question(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    one_waits_for_quota(stage)
    for name in ("three", "four", "five"):
        train(stage, name)
    stage.sessions_until(lambda: Gang.objects.filter(needs=True).count() == 4)
    asked = jobs.enqueue(
        kind=JobKind.IMPACT, owner=None, actor="test", params={}, cluster=stage.cluster, worker=WHAT_IF_QUEUE
    )
    assert remedies.round_of(stage.cluster.pk) == 0, "a person waits"
    assert remedies.round_of(stage.cluster.pk) == 0
    assert remedies.round_of(stage.cluster.pk, seconds=60.0) == 4, "questions without end must not keep gangs waiting"
    GangRemedy.objects.all().delete()
    assert remedies.round_of(stage.cluster.pk) == 0, "the next ones give way again"
    asked.delete()
    calls = []
    real = engine.remedy
    monkeypatch.setattr(engine, "remedy", lambda *args, **more: (calls.append(1), real(*args, **more))[1])
    assert remedies.round_of(stage.cluster.pk, seconds=0.0) == 0
    assert remedies.round_of(stage.cluster.pk, seconds=60.0) == 4
    assert remedies.round_of(stage.cluster.pk, seconds=60.0) == 0, "nothing is due until the answers are a minute old"
    assert len(calls) == 4


def test_a_gang_whose_page_is_opened_is_looked_at_at_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remedies, "EVERY_SECONDS", 600.0)
    one_waits_for_quota(stage)
    for name in ("three", "four", "five"):
        train(stage, name)
    stage.sessions_until(lambda: Gang.objects.filter(needs=True).count() == 4)
    remedies.round_of_all()
    GangRemedy.objects.all().delete()
    assert remedies.round_of_all() == 0, "the pause after a round"
    gang = gang_named("three")
    assert "What would help is being worked out." in page_of(gang)
    assert due_gangs(stage.cluster.pk, timezone.now(), first=[gang.pk])[0].pk == gang.pk
    until(remedies.round_of_all)
    assert remedy_of(gang_named("three"), timezone.now()) is not None
    assert "What would help is being worked out." not in page_of(gang)
    for other in range(3 * MOST_ASKED):
        ask(stage.cluster.pk, 10_000 + other)
    assert len(take(stage.cluster.pk)) == MOST_ASKED


def test_the_end_of_a_service_is_no_remedy(stage: Stage) -> None:
    stage.sessions_until(lambda: stage.session() and pictures.renew(stage.cluster.pk))
    stage.serve("web", replicas=16)
    stage.sessions_until(lambda: stage.running("web") == 16)
    train(stage, "one")
    stage.sessions_until(lambda: Gang.objects.filter(name="one", reason_code="WaitingForCards").exists())
    remedies.round_of(stage.cluster.pk)
    found = remedy_of(gang_named("one"), timezone.now())
    assert found is not None
    assert (found.basis["code"], found.remedy) == ("WaitingForCards", None), "a service never ends"
    assert found.held_by_services == 16
    assert "Inference holds 16" in page_of(gang_named("one"))
