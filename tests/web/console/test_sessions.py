"""A moment of the past: the session of it, and who waited then and why."""

from __future__ import annotations

import datetime as dt

import pytest

from tests.web.console.cast import H200
from tests.web.console.test_pages import client_of
from tidesched_web.scheduling.models import Session
from tidesched_web.workloads.models import Gang, GangEvent

pytestmark = pytest.mark.django_db
SESSIONS = "/clusters/demo/sessions/"


def told(gang: Gang, session: Session, kind: str, **detail: object) -> None:
    GangEvent.objects.create(
        gang=gang, kind=kind, at=session.now, wall_at=session.started_at, session_id=session.pk, detail=detail
    )


def test_a_session_says_which_gangs_waited_then_and_why(world) -> None:
    before, then, after = world.sessions[-9], world.sessions[-8], world.sessions[-3]
    gang = Gang.objects.filter(queue__tenant__slug="search", gone_at=None).first()
    assert gang is not None
    Gang.objects.filter(pk=gang.pk).update(submitted_at=before.now)
    GangEvent.objects.all().delete()
    told(gang, then, "reason", code="WaitingForCards", numbers={"resource": H200, "requested": 16.0, "free": 3.0})
    told(gang, after, "bound", ready=1, min_member=1)

    def page(session: Session, who: object) -> str:
        return client_of(who).get(f"{SESSIONS}{session.number}/").content.decode()

    for session in (then, world.sessions[-4]):
        text = page(session, world.member)
        assert f"/gangs/{gang.pk}/" in text
        assert "Waits for cards" in text
        assert ("16 × H200" in text) == (session is then), "no figures of another session"
    none = "No gang that you see waited in this session"
    assert none in page(before, world.member), "it had not begun to wait"
    assert none in page(after, world.member), "it is bound"
    assert none in page(then, world.stranger), "another tenant's"


def test_sessions_are_found_by_the_clusters_clock(world) -> None:
    wanted = world.sessions[-8]
    start, end = wanted.now - dt.timedelta(seconds=1), wanted.now + dt.timedelta(seconds=1)
    between = {"from": start.strftime("%Y-%m-%dT%H:%M:%S"), "to": end.strftime("%Y-%m-%dT%H:%M:%S")}
    client = client_of(world.admin)
    lines = client.get(SESSIONS, {**between, "format": "csv"}).getvalue().decode().splitlines()[1:]
    assert [line.partition(",")[0] for line in lines] == [str(wanted.number)]
    answer = client.get("/api/v1/sessions/", {"from": start.isoformat(), "to": end.isoformat()})
    assert [row["number"] for row in answer.json()["results"]] == [wanted.number]
