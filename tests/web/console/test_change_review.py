"""What stands on the page of a change that others, or its author, moved meanwhile; and whose approval counts."""

from __future__ import annotations

import datetime as dt
import html
import json
import re

import pytest
from django.utils import timezone

from tests.web.console.cast import H200
from tests.web.console.test_changes import BASE, LOWER, NOW, TOO_MUCH, act, drafted, lead, quota, text_of, world
from tests.web.console.test_pages import client_of
from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.models import PlatformRole, Tenant, User
from tidesched_web.accounts.selectors import access_of
from tidesched_web.changes import services
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.jobs.models import Job

__all__ = ["lead", "world"]
pytestmark = pytest.mark.django_db


def test_a_draft_on_a_base_that_moved_says_what_moved(world) -> None:
    client = client_of(world.admin)
    first, second = drafted(client, LOWER), drafted(client, {"queue/search-training": {"card_quota": {H200: 20}}})
    act(client, first, "apply", reason="First.", when="now")
    page = client.get(f"{BASE}changes/{second.pk}/").content.decode()
    assert "What was changed since this draft was made" in page
    by_whom = rf'data-label="Changed by"><span>admin ·\s+<a class="num"\s+href="{BASE}changes/{first.pk}/">'
    assert re.search(by_whom, page), "who changed it, and by which change"
    assert re.search(r'data-label="This change still sets"><strong>20 \(\+4\)</strong>', page), (
        "not +4 on what was known"
    )
    assert "Understood: still set to 20 (+4)" in page
    refused = client.post(f"{BASE}changes/{second.pk}/apply/", {**NOW, "reason": "Second."})
    assert refused.status_code == 409
    assert ">\nSecond.</textarea>" in refused.content.decode(), "what was typed is kept"
    assert quota("search-training") == 16
    act(client, second, "rebase")
    assert "What was changed since" not in client.get(f"{BASE}changes/{second.pk}/").content.decode()
    act(client, second, "apply", reason="Second.", when="now")
    assert quota("search-training") == 20


def test_what_a_draft_still_sets_is_said_for_each_figure_that_others_moved(world) -> None:
    client = client_of(world.admin)
    mine = drafted(client, {"queue/search-training": {"card_quota": {H200: 20}, "weight": 7}})
    same = drafted(client, {"queue/search-training": {"card_quota": {H200: 20}, "weight": 5}})
    gone = drafted(client, {"queue/search-training": None})
    act(client, same, "apply", reason="First.", when="now")
    page = client.get(f"{BASE}changes/{mine.pk}/").content.decode()
    still = re.findall(r'data-label="This change still sets"><strong>([^<]+)</strong>', page)
    assert sorted(still) == ["20, as it is now", "7 (+2)"]
    assert "Understood: still set each as the table says" in page
    page = client.get(f"{BASE}changes/{gone.pk}/").content.decode()
    assert set(re.findall(r'data-label="This change still sets"><strong>([^<]+)</strong>', page)) <= {"deleted"}


def test_who_moved_the_base_is_said_of_changes_alone_that_the_reader_sees(world, lead) -> None:
    admin, author = client_of(world.admin), client_of(lead)
    mine = drafted(author, {"queue/search-training": {"card_quota": {H200: 20}}})
    both = drafted(admin, {**LOWER, "queue/research-training": {"card_quota": {H200: 32}}})
    act(admin, both, "apply", reason="Both.", when="now")
    page = author.get(f"{BASE}changes/{mine.pk}/").content.decode()
    assert "What was changed since this draft was made" in page
    assert 'data-label="Changed by">–' in page
    assert f"changes/{both.pk}/" not in page


def test_what_was_edited_after_the_page_was_opened_is_shown_instead_of_approved(world) -> None:
    Tenant.objects.filter(slug="search").update(approval_required=True)
    second = User.objects.create(username="second", password="!", platform_role=PlatformRole.ADMIN)
    client, other = client_of(world.admin), client_of(second)
    change = drafted(client, LOWER)
    change = act(client, change, "apply", reason="Less is used.", when="now")
    opened = other.get(f"{BASE}changes/{change.pk}/").content.decode()
    assert 'name="revision" value="1"' in opened
    services.edit_draft(
        change=change, access=access_of(world.admin), edits={"queue/search-training": {"card_quota": {H200: 3}}}
    )
    act(client, change, "apply", reason="Less is used.", when="now")
    for verb in ("approve", "reject"):
        refused = other.post(f"{BASE}changes/{change.pk}/{verb}/", {"revision": 1, "reject-reason": "x"})
        text = refused.content.decode()
        assert refused.status_code == 412
        assert "was edited after you opened it" in text
        assert re.search(r'data-label="You saw">16</td>\s*<td class="num" data-label="It is now"><strong>3<', text)
    assert quota("search-training") == 24
    change.refresh_from_db()
    assert change.state == ChangeState.WAITING
    without = other.post(f"{BASE}changes/{change.pk}/approve/", follow=True).content.decode()
    assert "This page is out of date" in without
    assert act(other, change, "approve").state == ChangeState.APPLYING
    assert quota("search-training") == 3


def test_what_a_page_shows_of_an_earlier_revision_is_never_taken_for_the_one_of_now(world, lead) -> None:
    Tenant.objects.filter(slug="search").update(approval_required=True)
    author, other = client_of(lead), client_of(world.admin)
    change = act(author, drafted(author, LOWER), "apply", reason="Less is used.", when="now")
    page, parts, jobs = f"{BASE}changes/{change.pk}/", ("impact", "day", "server"), Job.objects.count()
    opened = other.get(page).content.decode()
    for part in parts:
        assert f'id="{part}-1"' in opened
        assert f'{page}{part}/?revision=1"' in opened
        if part != "server":  # which asks the cluster
            assert "earlier revision" not in other.get(f"{page}{part}/?revision=1").content.decode()
    services.edit_draft(
        change=change, access=access_of(lead), edits={"queue/search-training": {"card_quota": {H200: 3}}}
    )
    for part in parts:
        for send in (other.get,) if part == "server" else (other.get, other.post):
            shown = send(f"{page}{part}/?revision=1").content.decode()
            assert "worked out for an earlier revision" in shown
            assert "it is at revision 2" in shown
    assert Job.objects.count() == jobs, "nothing is asked about figures that are gone"
    opened = other.get(page).content.decode()
    assert [part for part in parts if f'id="{part}-1"' in opened or f'id="{part}-2"' not in opened] == []
    assert "revision 2" in other.get(f"{page}impact/?revision=2").content.decode()


def test_while_the_scheduler_is_asked_anew_its_answer_of_before_is_shown(world, lead) -> None:
    author, change = client_of(lead), drafted(client_of(lead), LOWER)
    page = f"{BASE}changes/{change.pk}/impact/?revision=1"
    Job.objects.filter(kind="impact").delete()
    first = text_of(author.post(page))
    assert "The answer of before" not in first
    assert "The first answer for a cluster takes longer" in first
    assert "Asked" in first
    answered = Job.objects.filter(kind="impact", subject=f"change:{change.pk}").latest("pk")
    other = Job.objects.create(
        kind="impact", owner=lead, actor="lead", state="done", subject=answered.subject, cluster=change.cluster,
        params={"objects": [], "policy": ""}, result={"counts": {}, "pending": [], "session": 40, "pods": 1},
    )  # fmt: skip
    Job.objects.filter(pk=answered.pk).update(
        state="done", finished_at=timezone.now(), result={"counts": {}, "pending": [], "session": 41, "pods": 12}
    )
    admin = client_of(world.admin)
    assert "The answer of before" not in text_of(admin.post(page)), "the newest one is about other figures"
    other.delete()
    asked = Job.objects.count()
    opened = admin.get(f"{BASE}changes/{change.pk}/")
    assert Job.objects.count() == asked, "it is shown before anything is asked"
    for shown in (text_of(opened), text_of(admin.post(page)), text_of(admin.get(page))):
        assert "The answer of before, tried on session 41 with 12 pods" in shown
        assert "The first answer for a cluster" not in shown


def answered(change: QuotaChange, *, lose: tuple[str, ...] = (), start: tuple[str, ...] = (), **more: int) -> Job:
    """An answer on the newest session that there is; ``more``: those of other tenants, by list."""
    lists = {"gangs_run": start, "gangs_lose": lose, "reclaimed_next": ()}
    rows = {name: [gang_row(gang) for gang in gangs] for name, gangs in lists.items()}
    counts = {name: len(gangs) + more.get(name, 0) for name, gangs in lists.items()}
    session = change.cluster.sessions.latest("number")
    told = {"session": session.number, "at": session.started_at.isoformat(), "pods": 12, "pending": []}
    objects = services.plan(change=change, access=access_of(change.author))["objects"]
    return Job.objects.create(
        kind="impact", owner=change.author, actor="x", state="done", cluster=change.cluster, finished_at=timezone.now(),
        subject=f"change:{change.pk}", params={"objects": objects, "policy": ""},
        result=told | rows | {"counts": counts},
    )  # fmt: skip


def gang_row(gang: str) -> dict:
    return {
        "gang": gang, "queue": "search-training", "cards": {H200: 8}, "priority": 1, "becomes": "running",
        "was": "running",
    }  # fmt: skip


def newer_session(change: QuotaChange) -> None:
    newest = change.cluster.sessions.latest("number")
    newest.pk, newest.number, newest.started_at = None, newest.number + 1, timezone.now()
    newest.save(force_insert=True)


def test_what_was_decided_by_an_answer_that_has_changed_is_asked_once_more(world) -> None:
    client = client_of(world.admin)
    change = drafted(client, LOWER)
    page = f"{BASE}changes/{change.pk}/"
    seen = answered(change, start=("search/a", "search/b"))
    shown = client.get(f"{page}impact/?revision=1").content.decode()
    assert f'name="seen_impact" value="{seen.pk}" form="apply-{change.pk}"' in shown
    assert "No gang would lose its place" in shown
    now = answered(change, start=("search/b",), lose=("search/c",))
    refused = client.post(f"{page}apply/", {**NOW, "reason": "Less is used.", "seen_impact": seen.pk})
    said = text_of(refused)
    assert refused.status_code == 412
    assert "(Would run at once: 2 → 1, −search/a · Would lose their place: 0 → 1, +search/c)" in said
    assert "Nothing was done, and what you typed is kept." in said
    assert "1 gang would lose its place" in said, "the new answer"
    assert f'name="seen_impact" value="{now.pk}" form="apply-{change.pk}"' in refused.content.decode()
    assert (change.state, quota("search-training")) == (ChangeState.DRAFT, 24)
    assert f'name="asked_again" value="1" form="apply-{change.pk}"' in refused.content.decode()
    answered(change, lose=("search/d",))
    once_more = {"reason": "Less is used.", "when": "now", "seen_impact": now.pk, "asked_again": "1"}
    act(client, change, "apply", **once_more)
    assert quota("search-training") == 16


def test_an_approval_is_bound_to_the_answer_that_was_read_as_far_as_its_giver_sees_it(world, lead) -> None:
    Tenant.objects.filter(slug="search").update(approval_required=True)
    change = act(client_of(lead), drafted(client_of(lead), LOWER), "apply", reason="Less is used.", when="now")
    admin, page = client_of(world.admin), f"{BASE}changes/{change.pk}/"
    other = answered(drafted(client_of(lead), TOO_MUCH | LOWER), lose=("search/c",))
    seen, _now = answered(change), answered(change, gangs_lose=1)
    refused = admin.post(f"{page}approve/", {"revision": change.revision, "seen_impact": seen.pk})
    assert refused.status_code == 412
    assert "(Would lose their place: 0 → 1)" in text_of(refused)
    assert act(admin, change, "approve", seen_impact=other.pk).state == ChangeState.APPLYING, "of another change"


def test_an_answer_that_was_known_once_or_says_the_same_refuses_nothing(world) -> None:
    client = client_of(world.admin)
    change = drafted(client, LOWER)
    seen, same = answered(change, lose=("search/c",)), answered(change, lose=("search/c",))
    same.result |= {"session": seen.result["session"] + 1}
    same.save()
    newer_session(change)
    asked = Job.objects.count()
    act(client, change, "apply", reason="Less is used.", when="now", seen_impact=seen.pk)
    assert Job.objects.count() == asked + 1, "it is asked again, and nobody answers"
    assert quota("search-training") == 16


def test_an_open_page_asks_again_once_its_answer_is_old_and_a_session_has_run(world) -> None:
    client = client_of(world.admin)
    change = drafted(client, LOWER)
    seen = answered(change, lose=("search/c",))
    again = f"{BASE}changes/{change.pk}/impact/?job={seen.pk}&revision=1"
    shown = client.get(again).content.decode()
    trigger = rf'hx-post="{re.escape(html.escape(again))}"[^>]*hx-trigger="refetch from:document'
    assert re.search(trigger, shown)
    assert re.search(r"tried on session \d+ with 12 pods\s*· <time [^>]*data-ago", shown)
    assert 'data-live="changes sessions' in client.get(f"{BASE}changes/{change.pk}/").content.decode()
    asked = Job.objects.count()
    Job.objects.filter(pk=seen.pk).update(finished_at=timezone.now() - dt.timedelta(minutes=2))
    assert client.post(again).status_code == 204, "no session has run since"
    newer_session(change)
    Job.objects.filter(pk=seen.pk).update(finished_at=timezone.now())
    assert client.post(again).status_code == 204, "it is new"
    assert Job.objects.count() == asked
    Job.objects.filter(pk=seen.pk).update(finished_at=timezone.now() - dt.timedelta(minutes=2))
    renewed = client.post(again)
    assert Job.objects.count() == asked + 1
    assert "The answer of before, tried on session" in text_of(renewed)


def test_who_approves_reads_the_newest_answer_not_the_one_of_the_request(world, lead) -> None:
    Tenant.objects.filter(slug="search").update(approval_required=True)
    author = client_of(lead)
    change = drafted(author, LOWER)
    answered(change)
    change = act(author, change, "apply", reason="Less is used.", when="now")
    assert change.plan["impact"]["counts"]["gangs_lose"] == 0
    answered(change, lose=("search/c",))
    page = client_of(world.admin).get(f"{BASE}changes/{change.pk}/impact/?revision={change.revision}")
    assert "1 gang would lose its place" in text_of(page)
    change = act(client_of(world.admin), change, "approve")
    assert change.plan["impact"]["counts"]["gangs_lose"] == 1, "what was known when it was decided"


def test_a_day_that_was_tried_with_other_figures_says_so(world) -> None:
    client = client_of(world.admin)
    change = drafted(client, LOWER)
    objects = services.plan(change=change, access=access_of(world.admin))["objects"]
    job = Job.objects.create(
        kind="impact_day", owner=world.admin, actor="admin", state="done", subject=f"change:{change.pk}",
        cluster=change.cluster, params={"objects": objects, "policy": ""}, result={"counts": {}, "pending": []},
    )  # fmt: skip
    url, words = f"{BASE}changes/{change.pk}/day/", "tried with other figures"
    assert words not in client.get(url).content.decode()
    Job.objects.filter(pk=job.pk).update(params={"objects": [], "policy": ""})
    assert words in client.get(url).content.decode()


def test_one_who_may_approve_is_told_that_another_hour_is_an_approval_and_the_author_that_it_takes_one(
    world, lead
) -> None:
    Tenant.objects.filter(slug="search").update(approval_required=True)
    author, other, sunday = (
        client_of(lead),
        client_of(world.admin),
        {"when": "at", "at_0": "2999-11-29", "at_1": "02:00"},
    )
    change = act(author, drafted(author, LOWER), "apply", reason="Less is used.", **sunday)
    assert act(other, change, "approve").state == ChangeState.APPROVED
    page = f"{BASE}changes/{change.pk}/"
    assert "sent with others, it waits for a new approval" in author.get(page).content.decode()
    assert "it is approved by you for that" in other.get(page).content.decode()
    assert act(other, change, "apply", reason="Less is used.", when="now").state == ChangeState.APPLYING
    assert quota("search-training") == 16


def test_who_was_made_by_the_author_is_told_why_their_approval_does_not_count(world) -> None:
    Tenant.objects.filter(slug="search").update(approval_required=True)
    puppet = accounts.create_user(
        username="puppet", password=None, platform_role=PlatformRole.ADMIN, actor="admin", by=world.admin.pk
    )
    change = act(client_of(world.admin), drafted(client_of(world.admin), LOWER), "apply", reason="x", when="now")
    page = client_of(puppet).get(f"{BASE}changes/{change.pk}/").content.decode()
    assert "Your approval does not count here" in page
    assert f"changes/{change.pk}/approve/" not in page
    act(client_of(puppet), change, "approve")
    change.refresh_from_db()
    assert (change.state, quota("search-training")) == (ChangeState.WAITING, 24)


def test_who_moved_a_figure_is_said_of_what_was_written_while_the_grid_was_open(world) -> None:
    client = client_of(world.admin)
    first = drafted(client, LOWER)
    act(client, first, "apply", reason="First.", when="now")
    seen = json.dumps({"queue/search-training": {"card_quota": {H200: 24}}})
    second = drafted(client, {"queue/search-training": {"card_quota": {H200: 20}}}, known=seen)
    page = client.get(f"{BASE}changes/{second.pk}/").content.decode()
    by_whom = rf'data-label="Changed by"><span>admin ·\s+<a class="num"\s+href="{BASE}changes/{first.pk}/">'
    assert re.search(by_whom, page), "written before the draft was made, after its author looked"
