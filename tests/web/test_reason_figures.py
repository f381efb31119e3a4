"""The figures of waiting gangs: those of a cluster are of one session, and few statements write them."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from scheduler_core.model.reason import Holder, ReasonCode
from tidesched_web.accounts.models import PlatformRole, User
from tidesched_web.clusters import services as clusters
from tidesched_web.engine.model import GangOutcome, GangPhase, PodGroup, Reason, ReasonNumbers, Result, Snapshot
from tidesched_web.workloads import reason_figures
from tidesched_web.workloads.models import Gang, ReasonFigures
from tidesched_web.workloads.reason_figures import AsOf, as_of, newer_than_others, with_figures
from tidesched_web.workloads.services import GangRecorder

pytestmark = pytest.mark.django_db

H200 = "NVIDIA-H200"
NOON = dt.datetime(2026, 3, 4, 12, tzinfo=dt.UTC)


class Sessions:
    """Sessions of one cluster in which gangs wait for cards, one a second unless said."""

    def __init__(self) -> None:
        self.cluster = clusters.create(name="East", slug="east", api_url="https://10.0.0.1/", token="t", actor="root")
        self.recorder = GangRecorder(cluster_id=self.cluster.pk)
        self.wall, self.number, self.statements = timezone.now(), 0, 0

    def run(
        self, free: dict[str, float], *, after: float = 1.0, ready: int = 0, code: str = "WaitingForCards",
        made: str = "first",
    ) -> None:  # fmt: skip
        """One session: how many cards it finds free for each gang. ``ready``, ``code``: of the gang named first.

        ``made``: another word, and the controllers have made their PodGroups anew.
        """
        self.wall, self.number = self.wall + dt.timedelta(seconds=after), self.number + 1
        groups, outcomes, reasons = [], [], []
        for place, (name, cards) in enumerate(sorted(free.items())):
            group = PodGroup(
                namespace="work", name=name, uid=f"{made}-{name}", min_member=8, phase=GangPhase.PENDING,
                owner_kind="Job", owner_uid=f"job-{name}",
            )  # fmt: skip
            groups.append(group)
            outcomes.append(
                GangOutcome(
                    name=f"work/{name}", queue="train", service_type="training", phase=GangPhase.PENDING, min_member=8,
                    ready=0 if place else ready, bound=0,
                )
            )  # fmt: skip
            holder = Holder(gang="work/x", queue="train", amount=8, promised_since=NOON.timestamp())
            numbers = ReasonNumbers(resource=H200, requested=8, free=cards, short=8 - cards, holders=(holder,))
            said = ReasonCode(code if not place else "WaitingForCards")
            reasons.append(Reason(podgroup=f"work/{name}", code=said, numbers=numbers, message=f"{cards} free."))
        with transaction.atomic(), CaptureQueriesContext(connection) as queries:
            self.recorder.record(
                snapshot=Snapshot(pod_groups=tuple(groups)),
                result=Result(now=0.0, podgroups=tuple(outcomes), reasons=tuple(reasons)),
                sent=True, session_id=self.number, number=self.number, at=NOON + dt.timedelta(seconds=self.number),
                wall_at=self.wall, queue_ids={}, reclaim_of={},
            )  # fmt: skip
        self.statements = sum("workloads_" in query["sql"] for query in queries)

    def free(self) -> dict[str, float]:
        return {gang.name: gang.reason_numbers["free"] for gang in Gang.objects.order_by("name")}

    def of(self) -> dict[str, int]:
        """The number of the session that each gang's figures are said to be of."""
        found = {gang.name: as_of(gang) for gang in with_figures(Gang.objects.order_by("name"))}
        return {name: one.session for name, one in found.items() if one}


@pytest.fixture
def sessions() -> Sessions:
    return Sessions()


def test_a_gang_that_comes_later_does_not_contradict_those_that_wait(sessions: Sessions) -> None:
    sessions.run({"a": 5, "b": 5})
    sessions.run({"a": 1, "b": 1, "c": 1})
    assert sessions.free() == {"a": 1, "b": 1, "c": 1}
    assert sessions.of() == {"a": 2, "b": 2, "c": 2}
    (gang,) = with_figures(Gang.objects.filter(name="a"))
    assert as_of(gang) == AsOf(2, NOON + dt.timedelta(seconds=2)), "by the cluster's clock"
    assert gang.reason_message == "1 free."


def test_a_new_code_is_written_at_once_and_the_others_with_it(sessions: Sessions) -> None:
    sessions.run({"a": 5, "b": 5})
    sessions.run({"a": 4, "b": 4}, code="ReclaimForbidden")
    assert Gang.objects.get(name="a").reason_code == "ReclaimForbidden"
    assert sessions.free() == {"a": 4, "b": 4}


def test_figures_that_move_alone_are_written_now_and_then_all_at_once(sessions: Sessions) -> None:
    sessions.run({"a": 5, "b": 5})
    for free in (4, 3, 2):
        sessions.run({"a": free, "b": free})
        assert sessions.statements == 0
    assert (sessions.free(), sessions.of()) == ({"a": 5, "b": 5}, {"a": 1, "b": 1})
    sessions.run({"a": 2, "b": 1}, after=reason_figures.EVERY.total_seconds())
    assert (sessions.free(), sessions.of()) == ({"a": 2, "b": 1}, {"a": 5, "b": 5})


def test_figures_of_many_gangs_take_as_many_statements_as_those_of_few(sessions: Sessions) -> None:
    taken = []
    for count in (2, 40):
        names = [f"gang-{number:02d}" for number in range(count)]
        sessions.run(dict.fromkeys(names, 5.0), after=60)
        sessions.run(dict.fromkeys(names, 3.0), after=60)
        assert set(sessions.free().values()) == {3.0}
        taken.append(sessions.statements)
    assert taken == [2, 2], "the figures, and of which session they are"


def test_where_too_many_moved_the_changed_row_says_that_it_is_newer(sessions: Sessions, monkeypatch) -> None:
    monkeypatch.setattr(reason_figures, "MOST_BETWEEN", 2)
    names = ("a", "b", "c", "d")
    sessions.run(dict.fromkeys(names, 5.0))
    sessions.run(dict.fromkeys(names, 1.0), ready=3)
    assert sessions.free() == {"a": 1, "b": 5, "c": 5, "d": 5}, "no more than so many are written beside it"
    assert sessions.of() == {"a": 2, "b": 1, "c": 1, "d": 1}
    rows = {gang.name: newer_than_others(gang) for gang in with_figures(Gang.objects.all())}
    assert [name for name, newer in rows.items() if newer] == ["a"]
    sessions.run(dict.fromkeys(names, 1.0), ready=3, after=5)
    assert sessions.of() == dict.fromkeys(names, 3)
    assert not any(newer_than_others(gang) for gang in with_figures(Gang.objects.all()))


def test_the_session_is_said_anew_although_no_figure_moves(sessions: Sessions) -> None:
    sessions.run({"a": 5})
    sessions.run({"a": 5}, after=30)
    assert sessions.statements == 0
    sessions.run({"a": 5}, after=31)
    assert sessions.of() == {"a": 3}
    assert Gang.objects.get().figures_number == 1, "its row was not written"


def test_who_takes_over_begins_with_figures_of_one_session(sessions: Sessions) -> None:
    sessions.run({"a": 5, "b": 5})
    sessions.recorder = GangRecorder(cluster_id=sessions.cluster.pk)
    sessions.recorder.load()
    sessions.run({"a": 1, "b": 2})
    assert (sessions.free(), sessions.of()) == ({"a": 1, "b": 2}, {"a": 2, "b": 2})
    assert ReasonFigures.objects.get().number == 2


def test_the_end_of_a_cool_down_is_kept_when_it_is_over(sessions: Sessions) -> None:
    sessions.run({"a": 5})
    until = NOON + dt.timedelta(minutes=1)
    Gang.objects.update(spared_until=until)
    sessions.recorder.load()
    sessions.run({"a": 5})
    sessions.run({"a": 4}, ready=1)
    assert Gang.objects.get().spared_until == until


def test_the_end_of_a_cool_down_outlasts_the_pod_group(sessions: Sessions) -> None:
    """A controller deletes the PodGroup of what was evicted, and may make it anew when the cool-down is over."""
    sessions.run({"a": 5})
    until = NOON + dt.timedelta(minutes=1)
    Gang.objects.update(spared_until=until, started_at=NOON)
    sessions.recorder.load()
    sessions.run({})
    assert Gang.objects.get().gone_at is not None
    assert Gang.objects.get().spared_until == until
    sessions.run({"a": 5}, made="again")
    assert [gang.spared_until for gang in Gang.objects.order_by("pk")] == [until, until]


def test_since_when_a_holder_is_only_promised_is_a_time(sessions: Sessions) -> None:
    sessions.run({"a": 5})
    client = Client()
    client.force_login(User.objects.create(username="reader", platform_role=PlatformRole.ADMIN))
    (row,) = client.get("/api/v1/gangs/").json()["results"]
    assert row["reason"]["numbers"]["holders"][0]["promised_since"] == "2026-03-04T12:00:00Z"
    page = client.get(f"/clusters/east/gangs/{Gang.objects.get().pk}/").content.decode()
    assert "promised, does not run" in page.partition('id="holders"')[2]
