"""A tide plan's edit is a change: drafted, reviewed at each step of the next day, applied, rolled back."""

from __future__ import annotations

import datetime as dt
import html
import json
import re

import pytest
from django.db.models import F

from tests.quota_writes import write_tide_plan
from tests.web.console import world as story
from tests.web.console.cast import L40S
from tests.web.console.test_changes import BASE, act, drafted
from tests.web.console.test_pages import client_of
from tests.web.console.test_tide_plans import LIST, NIGHT, applied, sent
from tests.web.console.world_jobs import IMPACT
from tidesched_web.accounts.models import PlatformRole, User
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.clusters.kubernetes import manifests
from tidesched_web.jobs.models import Job, JobKind, JobState
from tidesched_web.quota.models import TidePlan
from tidesched_web.scheduling.models import QueueUsage

pytestmark = pytest.mark.django_db
LENDER, TAKER = "search-suggest-inference", "maps-route-inference"
# Wednesday 20:15: the night is open since 18:00.
MORNING, EVENING = (dt.datetime(2026, 3, 5, hour, tzinfo=dt.UTC) for hour in (6, 18))
WEEK = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


@pytest.fixture
def world(world) -> story.World:
    write_tide_plan(cluster=world.cluster, name="nights", document={"enabled": True, "layers": [NIGHT]}, actor="tests")
    for queue, used in ((LENDER, 3), (TAKER, 12)):
        QueueUsage.objects.filter(queue__name=queue, card=L40S).update(allocated=1000 * used)
    return world


def edited(**more: object) -> dict[str, object]:
    """The night from 21:00 to 07:00, in which one queue gives up 6 instead of 4."""
    lines = {
        f"l7-x0-{name}": value for name, value in {"queue": LENDER, "card": L40S, "act": "take", "cards": "6"}.items()
    } | {f"l7-x1-{name}": value for name, value in {"queue": TAKER, "card": L40S, "act": "add", "cards": "6"}.items()}
    times = {"l7-name": "night", "l7-days": WEEK, "l7-start": "18:00", "l7-end": "07:00", "l7-line": ["0", "1"]}
    head = {"name": "nights", "position": "0", "time_zone": "UTC", "exceptions": "", "enabled": "on", "version": "1"}
    return sent(**{**head, **times, **lines, **more})


def draft_of(world: story.World, **more: object) -> QuotaChange:
    answer = client_of(world.admin).post(f"{LIST}nights/edit/", edited(**more))
    assert answer.status_code == 302, html.unescape(answer.content.decode())
    return QuotaChange.objects.get(pk=int(re.search(r"/changes/(\d+)/$", answer["Location"])[1]))


def steps_of(client, change: QuotaChange, query: str = ""):
    return client.post(f"{BASE}changes/{change.pk}/steps/?revision={change.revision}{query}")


def l40s_of(manifest: dict) -> int:
    return int(json.loads(manifest["metadata"]["annotations"][manifests.CARD_QUOTA])[L40S])


def test_an_edited_plan_is_a_draft_until_it_is_applied_and_rolls_back(world) -> None:
    client = client_of(world.admin)
    before = TidePlan.objects.values().get()
    change = draft_of(world)
    assert (change.state, TidePlan.objects.values().get()) == (ChangeState.DRAFT, before)
    assert draft_of(world) == change, "sent twice, it is one draft"
    act(client, change, "apply", reason="longer nights", when="now")
    plan = TidePlan.objects.get()
    assert plan.layers[0]["end"] == "07:00"
    assert plan.layers[0]["quota"][LENDER] == {L40S: {"add": -6}}
    QuotaChange.objects.update(state=ChangeState.APPLIED)
    back = client.post(f"{BASE}changes/{change.pk}/rollback/", {"revision": change.revision})
    act(client, QuotaChange.objects.get(pk=back["Location"].split("/")[-2]), "apply", reason="back", when="now")
    assert TidePlan.objects.values("layers", "enabled", "exceptions").get() == {
        name: before[name] for name in ("layers", "enabled", "exceptions")
    }


def test_a_new_plan_a_switch_and_a_deletion_are_drafts_too(world) -> None:
    client = client_of(world.admin)
    new = client.post("/clusters/demo/new/tide-plan/", sent())
    off = client.post(f"{LIST}nights/switch/")
    gone = client.post(f"{LIST}nights/delete/")
    assert client.post(f"{LIST}nights/switch/")["Location"] == off["Location"], "pressed twice, it is one draft"
    assert TidePlan.objects.get().enabled
    assert QuotaChange.objects.filter(state=ChangeState.DRAFT).count() == 3
    # The editor of a plan that is not there yet is where its draft is edited further.
    pages = [client.get(one["Location"]).content.decode() for one in (new, off, gone)]
    way = re.compile(r'<a class="btn" href="([^"]+)"><svg.*?</svg>(?:Go on editing|Go to the plan)</a>', re.DOTALL)
    ways = [way.search(page)[1].partition("?")[0] for page in pages]
    assert ways == ["/clusters/demo/new/tide-plan/", f"{LIST}nights/edit/", f"{LIST}nights/"]
    applied(client, new)
    assert TidePlan.objects.filter(name="days").exists()


def test_saved_as_it_is_a_plan_makes_no_draft(world) -> None:
    same = edited(**{"l7-end": "06:00", "l7-x0-cards": "4"})
    done = client_of(world.admin).post(f"{LIST}nights/edit/", same, follow=True)
    assert "Nothing was changed" in done.content.decode()
    assert not QuotaChange.objects.filter(state=ChangeState.DRAFT).exists()


def test_a_draft_is_edited_further_where_it_was_made(world) -> None:
    client = client_of(world.admin)
    change = draft_of(world)
    editor = f"{LIST}nights/edit/?change={change.pk}"
    assert 'value="07:00"' in client.get(editor).content.decode()
    assert client.post(editor, edited(revision="1", **{"l7-end": "08:00"})).status_code == 302
    change.refresh_from_db()
    assert change.revision == 2
    assert change.edits["tide-plan/nights"]["layers"][0]["end"] == "08:00"
    assert client.post(editor, edited(revision="1", **{"l7-end": "09:00"})).status_code == 400, "edited meanwhile"
    change.refresh_from_db()
    assert change.revision == 2
    wrong = client.post(editor, edited(revision="2", **{"l7-x1-cards": "500"}))
    assert wrong.status_code == 400
    assert TidePlan.objects.get().layers[0]["end"] == "06:00"
    other = drafted(client, {"queue/search-training": {"weight": 7}})
    for answer in (client.get, client.post):
        assert answer(f"{LIST}nights/edit/?change={other.pk}").status_code == 404
    assert client.get(f"{LIST}nights/edit/?change=none").status_code == 404


def test_its_page_shows_each_step_of_the_next_day_without_the_change_and_with_it(world) -> None:
    change = draft_of(world)
    client = client_of(world.admin)
    assert 'id="steps-1"' in client.get(f"{BASE}changes/{change.pk}/").content.decode()
    page = steps_of(client, change)
    shown = {
        step["ahead"].at: {one["queue"]: (one["now"], one["then"]) for one in step["figures"]}
        for step in page.context["steps"]
    }
    assert shown == {
        MORNING: {LENDER: (10, 4), TAKER: (14, 20)},
        EVENING: {LENDER: (6, 4)},
    }
    said = " ".join(page.content.decode().split())
    assert ">2026-03-05 06:00:00 UTC<" in said
    assert "What would happen at each step of the next day?" in said
    weekend = draft_of(world, **{"l7-days": ["wed", "sat"], "l7-end": "06:00", "l7-x0-cards": "4"})
    (first,) = steps_of(client, weekend).context["steps"]
    assert first["ahead"].at == EVENING, "the nights of Thursday are gone"


def test_the_scheduler_is_asked_about_each_step_with_the_quotas_of_the_step(world) -> None:
    client = client_of(world.admin)
    change = draft_of(world)
    steps_of_it = Job.objects.filter(kind=JobKind.IMPACT, subject__startswith=f"change:{change.pk}.1@").order_by("pk")
    since, moments = "", []
    for number in (1, 2):
        page = steps_of(client, change, since).content.decode()
        job = steps_of_it.latest("pk")
        assert steps_of_it.count() == number, "one question after the other"
        assert "The scheduler is being asked." in page
        since = re.search(r"&amp;since=\d+", page)[0].replace("&amp;", "&")
        steps_of(client, change, since)
        QueueUsage.objects.filter(queue__name=TAKER, card=L40S).update(allocated=1000 * (12 + number))
        steps_of(client, change, since)
        assert steps_of_it.count() == number, "no second question, also where use moves meanwhile"
        moments.append(job.subject.partition("@")[2])
        Job.objects.filter(pk=job.pk).update(state=JobState.DONE, result=IMPACT)
    assert moments == ["20260305T060000Z", "20260305T180000Z"]
    asked = {one["name"]: (l40s_of(one["before"]), l40s_of(one["after"])) for one in job.params["objects"]}
    assert asked[LENDER][1] == 4
    answered = steps_of(client, change, since).content.decode()
    assert "hx-post" not in answered
    assert answered.count("<summary>") >= 2
    again = steps_of(client, change).content.decode()
    assert (steps_of_it.count(), "hx-post" in again) == (2, False), "answered a moment ago"
    QuotaChange.objects.filter(pk=change.pk).update(revision=F("revision") + 1)
    assert "earlier revision" in steps_of(client, change).content.decode()


def test_where_approval_is_due_the_plan_stays_until_a_second_person_agrees(world) -> None:
    second = client_of(User.objects.create(username="second", password="!", platform_role=PlatformRole.ADMIN))
    client = client_of(world.admin)
    act(client, drafted(client, {"rules/cluster": {"approval_required": True}}), "apply", reason="x", when="now")
    change = act(client, draft_of(world), "apply", reason="longer", when="now")
    assert change.state == ChangeState.WAITING
    assert TidePlan.objects.get().layers[0]["end"] == "06:00"
    page = second.get(f"{BASE}changes/{change.pk}/").content.decode()
    assert "What would happen at each step of the next day?" in page
    act(second, change, "approve")
    assert TidePlan.objects.get().layers[0]["end"] == "07:00"
