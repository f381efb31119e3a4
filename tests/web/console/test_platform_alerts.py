"""Alerts of the platform itself, of no cluster: who sees them, what the bell counts, and how they end."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from django.utils import timezone

from tests.web.console.cast import people
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.models import User
from tidesched_web.scheduling.models import Alert

pytestmark = pytest.mark.django_db
SAID = "Chain platform of the audit log does not hold or cannot be verified."


def broken(**more: object) -> Alert:
    values = {"key": "audit_chain:platform", "code": "audit_broken", "severity": "critical", "message": "entry 31"}
    return Alert.objects.create(**values | more, numbers={"chain": "platform"}, raised_at=timezone.now())


def bell(user: User) -> int:
    page = client_of(user).get("/alerts/").content.decode()
    shown = re.search(r'id="bell-count">\s*<span class="(?:count-badge|visually-hidden)">(\d+)<', page)
    assert shown is not None
    return int(shown[1])


def listed(user: User, address: str = "/alerts/") -> list[str]:
    """The open alerts as they are shown, one text each."""
    page = client_of(user).get(address).content.decode().partition('aria-labelledby="open-title"')[2]
    rows = page.partition('class="list-rows"')[2].partition("</ul>")[0].split("<li>")[1:]
    return [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in rows]


def test_those_who_see_everything_see_and_count_it_and_others_do_not(world) -> None:
    counted = {user: bell(user) for user in (world.admin, world.auditor, world.member, world.newcomer)}
    assert counted[world.admin] == counted[world.member] == 1, "that of the cluster"
    broken()
    for user in (world.admin, world.auditor):
        assert bell(user) == counted[user] + 1
        (row,) = [text for text in listed(user) if SAID in text]
        assert "Platform" in row
        assert "Open the verification" in row
        assert ("Acknowledge" in row) == (user == world.admin), "an auditor changes nothing"
        assert ("It ends by itself with its condition." in row) == (user == world.admin)
    for user in (world.member, world.newcomer, world.stranger):
        assert bell(user) == counted.get(user, counted[world.member])
        assert not any(SAID in text for text in listed(user))
    assert not any(SAID in text for text in listed(world.admin, "/clusters/demo/alerts/")), "it is of no cluster"


def test_alerts_that_read_alike_are_one_line_for_who_cannot_act_on_them(world) -> None:
    for number in range(3):
        Alert.objects.create(
            cluster=world.cluster, key=f"promise:{number}", code="promise_unused", severity="warning",
            numbers={"queue": f"search-{number}", "promised": 4, "card": "NVIDIA-H200", "waiting": 2}, message="",
            raised_at=timezone.now() - dt.timedelta(hours=number),
        )  # fmt: skip
    said = "Quota is promised to gangs that do not run, while others wait for it."
    for address in ("/alerts/", "/clusters/demo/alerts/"):
        (row,) = [text for text in listed(world.member, address) if said in text]
        assert "3 alike" in row
        assert "the oldest 2 h ago" in row
    assert len([text for text in listed(world.auditor) if "are promised to gangs" in text]) == 3, "each names its queue"
    Alert.objects.filter(code="promise_unused").update(resolved_at=timezone.now(), resolved_by="")
    past = client_of(world.member).get("/alerts/").content.decode().partition('id="past-title"')[2]
    assert past.count(said) == 1
    assert "3 alike" in past


def test_the_bell_counts_it_where_there_is_no_cluster_yet(db) -> None:
    admin, auditor, member, *_others = people()
    broken()
    assert [bell(user) for user in (admin, auditor, member)] == [1, 1, 0]
    assert [len(listed(user)) for user in (admin, auditor, member)] == [1, 1, 0]


def test_one_who_looks_after_it_takes_it_off_the_bell_until_its_condition_ends(world) -> None:
    alert, before = broken(), bell(world.admin)
    path = f"/alerts/{alert.pk}/acknowledge/"
    for user, status in ((world.member, 404), (world.auditor, 403)):
        assert client_of(user).post(path).status_code == status
    assert client_of(world.admin).post(f"/clusters/demo/alerts/{alert.pk}/acknowledge/").status_code == 404
    alert.refresh_from_db()
    assert alert.acknowledged_at is None
    answer = client_of(world.admin).post(path, {"note": "The disk is being looked at."})
    assert (answer.status_code, answer["Location"]) == (302, "/alerts/")
    alert.refresh_from_db()
    assert (alert.acknowledged_by, alert.note) == ("admin", "The disk is being looked at.")
    assert bell(world.admin) == before - 1
    (row,) = [text for text in listed(world.admin) if SAID in text]
    assert "admin looks after it" in row
    assert "The disk is being looked at." in row
    assert client_of(world.admin).post(f"/alerts/{alert.pk}/resolve/").status_code == 302
    assert not any(SAID in text for text in listed(world.admin))
    assert SAID in client_of(world.admin).get("/alerts/").content.decode().partition('id="past-title"')[2]
