"""What is kept of gangs that left: little of each, for an hour; and which PodGroup goes on from it."""

from __future__ import annotations

import datetime as dt

import pytest

from scheduler_core import run_session
from tests import builders as b
from tidesched_web.engine.model import PodGroup
from tidesched_web.workloads.gang_rows import look, moment, uid_of
from tidesched_web.workloads.timeline import LASTS, MOST, LeftGang, LeftGangs

WALL = dt.datetime(2026, 11, 23, 3, 14, tzinfo=dt.UTC)
RAN = moment(500.0)


def left(owner: str = "uid-1", *, wall_at: dt.datetime = WALL) -> LeftGang:
    """Evicted at 900, it left at 1000 of the cluster's clock."""
    return LeftGang(owner, moment(1000.0), wall_at, RAN, moment(900.0), 7, moment(960.0))


def group(owner: str = "uid-1", *, submitted: float | None = None) -> PodGroup:
    return PodGroup(
        namespace="work", name="g", uid="new", created=1010.0, submitted=submitted, owner_kind="Job", owner_uid=owner
    )


def taken(new: PodGroup, kept: LeftGang, *, running_at: dt.datetime | None = None) -> LeftGang | None:
    gangs = LeftGangs()
    gangs.note("work/g", kept)
    found = gangs.take(new, running_at=running_at)
    assert gangs.take(new, running_at=running_at) is None, "whichever it was, nothing is kept under the name any more"
    return found


@pytest.mark.parametrize("submitted", [None, 10.0, 1005.0])
def test_the_owner_decides_where_both_name_one(submitted: float | None) -> None:
    assert taken(group(submitted=submitted), left()) == left()
    assert taken(group("uid-2", submitted=submitted), left()) is None


@pytest.mark.parametrize(("submitted", "same"), [(None, False), (10.0, True), (1000.0, True), (1005.0, False)])
def test_without_owners_the_time_of_its_submission_decides(submitted: float | None, same: bool) -> None:
    for new, kept in ((group("", submitted=submitted), left()), (group(submitted=submitted), left(""))):
        assert (taken(new, kept) is not None) is same


def test_pods_that_ran_on_without_their_pod_group_restarted_nothing() -> None:
    assert taken(group(), left(), running_at=RAN) is None
    assert taken(group(), left(), running_at=moment(1020.0)) == left()


def test_what_is_kept_is_bounded_in_number_and_in_time() -> None:
    gangs = LeftGangs()
    for number in range(MOST + 500):
        gangs.note(f"work/g-{number}", left(wall_at=WALL + dt.timedelta(seconds=number)))
    assert len(gangs) == MOST
    gangs.forget_old(WALL + LASTS + dt.timedelta(seconds=1000))
    assert len(gangs) == MOST - 501
    gangs.forget_old(WALL + 2 * LASTS)
    assert len(gangs) == 0


@pytest.mark.parametrize(("phase", "pods", "state"), [
    ("Running", 0, "reclaimed"), ("Pending", 0, "reclaimed"), ("Inqueue", 0, "reclaimed"), ("Inqueue", 2, "admitted"),
])  # fmt: skip
def test_a_gang_that_was_evicted_is_reclaimed_until_it_has_pods_again(phase: str, pods: int, state: str) -> None:
    members = [b.pod(f"g-w-{number}", "g", card="A100", count=1) for number in range(pods)]
    quota = b.queue("train", {"A100": 8}, **b.TRAINING)
    snapshot = b.snapshot(quota, b.node("n", "A100", 1), b.pod_group("g", "train", 2, phase=phase), members)
    result, _ = run_session(snapshot, b.founding_policy(), now=b.now(100))
    (group,) = snapshot.pod_groups
    (seen,) = look(snapshot, result, sent=True, states={uid_of(group): "reclaimed"}).values()
    assert seen.values.state == state
