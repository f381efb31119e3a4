"""An impact is kept with its plan; parts that its job finds later are shown, and kept once nothing is missing."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.web.changes.ground import H200, Ground
from tidesched_web.changes import services as changes
from tidesched_web.changes.models import QuotaChange
from tidesched_web.jobs.models import Job, JobKind, JobState

pytestmark = pytest.mark.django_db
FIRST = {"counts": {"gangs_run": 1}, "gangs_run": [], "flood": None, "pending": ["flood"]}


@pytest.fixture
def change(ground: Ground) -> QuotaChange:
    """A draft whose impact waits for its flood."""
    change = ground.draft({"queue/acme-online": {"card_quota": {H200: 4}}})
    job = Job.objects.create(
        kind=JobKind.IMPACT, cluster=ground.cluster, actor="root", state=JobState.RUNNING, result=FIRST
    )
    plan = dict(change.plan)
    QuotaChange.objects.update(plan=plan | {"impact": FIRST | {"job": job.pk}})
    change.refresh_from_db()
    return change


def shown(ground: Ground, change: QuotaChange) -> dict:
    return changes.shown_plan(change=change, access=ground.access("root"))["impact"]


def kept(change: QuotaChange) -> dict:
    change.refresh_from_db()
    return change.plan["impact"]


def test_what_is_found_later_is_shown_and_kept_with_the_decision(ground: Ground, change: QuotaChange) -> None:
    """A look writes nothing; who decides keeps what was known then."""
    assert shown(ground, change)["pending"] == ["flood"]
    Job.objects.update(state=JobState.DONE, result=FIRST | {"flood": {"cards": 3}, "pending": []})
    with CaptureQueriesContext(connection) as asked:
        assert (shown(ground, change)["flood"], shown(ground, change)["pending"]) == ({"cards": 3}, [])
    assert {query["sql"].split()[0] for query in asked} == {"SELECT"}
    assert kept(change)["pending"] == ["flood"]
    done = changes.apply(change=change, access=ground.access("root"))
    Job.objects.all().delete()
    assert kept(done)["pending"] == []
    assert shown(ground, done)["flood"] == {"cards": 3}, "it no longer hangs on the job"


def test_a_question_is_put_once_and_anybody_who_looks_finds_its_answer(ground: Ground) -> None:
    """By a POST; a GET of the plan makes no job."""
    change = ground.draft({"queue/acme-online": {"card_quota": {H200: 4}}})
    assert changes.shown_plan(change=change, access=ground.access("root"), impact=True)["impact"] is None
    assert not Job.objects.exists()
    changes.ask_impact(change=change, access=ground.access("root"))
    job = Job.objects.get()
    Job.objects.update(state=JobState.DONE, result=FIRST | {"pending": []})
    for who in ("root", "auditor"):
        found = changes.shown_plan(change=change, access=ground.access(who), impact=True)["impact"]
        assert (found["job"], found["counts"]) == (job.pk, {"gangs_run": 1})
    assert Job.objects.count() == 1


@pytest.mark.parametrize("how", ["failed", "forgotten"])
def test_nobody_waits_for_what_will_not_come(ground: Ground, change: QuotaChange, how: str) -> None:
    if how == "failed":
        Job.objects.update(state=JobState.FAILED)
    else:
        Job.objects.all().delete()
    impact = shown(ground, change)
    assert (impact["pending"], impact["flood_unavailable"]) == ([], "failed")
    assert impact["counts"] == {"gangs_run": 1}, "what there was stays"


def test_a_slower_look_takes_nothing_away(ground: Ground, change: QuotaChange) -> None:
    """The parts of one page ask at once: who read the change before the impact was there must not write it away."""
    early = QuotaChange.objects.get(pk=change.pk)
    early.plan = {**early.plan, "impact": None, "warnings": ["older"]}
    changes.plan(change=early, access=ground.access("root"))
    assert kept(change)["pending"] == ["flood"]
    done = changes.apply(change=change, access=ground.access("root"))
    assert kept(done)["counts"] == {"gangs_run": 1}, "what was known when it was decided"
