"""An impact is kept with its plan; parts that its job finds later are shown, and kept once nothing is missing."""

import pytest

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


def test_what_is_found_later_is_shown_and_kept(ground: Ground, change: QuotaChange) -> None:
    assert shown(ground, change)["pending"] == ["flood"]
    Job.objects.update(state=JobState.DONE, result=FIRST | {"flood": {"cards": 3}, "pending": []})
    assert (shown(ground, change)["flood"], shown(ground, change)["pending"]) == ({"cards": 3}, [])
    assert kept(change)["pending"] == []
    Job.objects.all().delete()
    assert shown(ground, change)["flood"] == {"cards": 3}, "it no longer hangs on the job"


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
