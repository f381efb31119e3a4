"""From the editor's edits to a change that is applied, approved, refused and rolled back; and who may do what."""

from __future__ import annotations

import datetime as dt
import html
import json
import re

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.web.console import world as story
from tests.web.console.cast import H200
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.models import Membership, PlatformRole, Tenant, TenantRole, User
from tidesched_web.accounts.selectors import access_of
from tidesched_web.audit.models import AuditEntry
from tidesched_web.changes import services
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.quota.models import CardQuota

pytestmark = pytest.mark.django_db
BASE = "/clusters/demo/"
EDIT = f"{BASE}quota/edit/"
NOW = {"reason": "x", "when": "now", "revision": 1}
LOWER = {"queue/search-training": {"card_quota": {H200: 16}}}
TOO_MUCH = {"queue/search-rank-inference": {"card_quota": {H200: 24}}}


@pytest.fixture
def world(world) -> story.World:
    User.objects.filter(pk=world.stranger.pk).update(username="stranger")
    return world


@pytest.fixture
def lead(world) -> User:
    """The tenant admin of Search."""
    user = User.objects.create(username="lead", password="!")
    Membership.objects.create(user=user, tenant=Tenant.objects.get(slug="search"), role=TenantRole.ADMIN)
    return user


def text_of(answer: HttpResponse) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())


def drafted(client: Client, edits: dict, **more: str) -> QuotaChange:
    answer = client.post(f"{EDIT}review/", {"edits": json.dumps(edits), **more})
    assert answer.status_code == 302, answer.content
    return QuotaChange.objects.get(pk=int(re.search(r"changes/(\d+)/", answer["Location"])[1]))


def act(client: Client, change: QuotaChange, verb: str, **body: str) -> QuotaChange:
    change.refresh_from_db()
    answer = client.post(f"{BASE}changes/{change.pk}/{verb}/", {"revision": change.revision, **body})
    assert answer.status_code == 302, answer.content.decode()
    change.refresh_from_db()
    return change


def quota(queue: str) -> int | None:
    return CardQuota.objects.filter(queue__name=queue, card_type__name=H200).values_list("cards", flat=True).first()


def test_what_is_not_ones_own_cannot_be_edited_seen_or_decided(world, lead) -> None:
    theirs = drafted(client_of(world.admin), {"queue/research-training": {"card_quota": {H200: 32}}})
    for who in (lead, world.member):
        client = client_of(who)
        assert client.get(f"{BASE}changes/{theirs.pk}/").status_code == 404
        assert client.post(f"{BASE}changes/{theirs.pk}/apply/", NOW).status_code == 404
        assert str(theirs.pk) not in re.findall(r"Change (\d+)", client.get(f"{BASE}changes/").content.decode())
    mine = drafted(client_of(lead), LOWER)
    for who in (world.auditor, world.member):
        client = client_of(who)
        assert client.post(f"{BASE}changes/{mine.pk}/apply/", NOW).status_code == 403
        assert client.post(f"{BASE}changes/{mine.pk}/day/").status_code == 403
        assert client.post(f"{EDIT}review/", {"edits": json.dumps(LOWER)}).status_code == 403
        assert client.post(f"{EDIT}check/", json.dumps(LOWER), content_type="application/json").status_code == 403
    mine.refresh_from_db()
    assert mine.state == ChangeState.DRAFT
    refused = client_of(lead).post(
        f"{EDIT}review/", {"edits": json.dumps({"queue/research-training": {"weight": 1}})}, follow=True
    )
    assert "You see no object" in refused.content.decode()
    rows = client_of(lead).get(f"{EDIT}data/").json()["rows"]
    assert {row["name"] for row in rows if row["kind"] == "queue"} == {
        "search-rank-inference", "search-suggest-inference", "search-training",
    }  # fmt: skip
    assert {(row["may"], row["asks"]) for row in rows if row["kind"] == "tenant"} == {(1, True)}, "it can be asked for"
    assert {row["may"] for row in rows if row["kind"] == "queue"} == {1}


def test_rows_say_what_is_there_what_is_in_use_and_who_may_edit(world) -> None:
    client = client_of(world.admin)
    client.get("/clusters/")
    with CaptureQueriesContext(connection) as queries:
        data = client.get(f"{EDIT}data/").json()
    assert len(queries) <= 20
    place = next(index for index, column in enumerate(data["columns"]) if column["key"] == f"card:{H200}")
    rows = {(row["key"], row["service"]): row for row in data["rows"]}
    queue = rows["queue/search-rank-inference", "inference"]
    assert (queue["values"][str(place)], queue["use"][str(place)], queue["may"]) == (16, 12, 2)
    tenant = rows["tenant/search", "inference"]
    assert (tenant["values"][str(place)], tenant["use"][str(place)], tenant["path"]) == (20, 12, ["quota", "inference"])
    root = rows["inference", "inference"]
    assert root["limits"][str(place)] == 48
    for index, row in enumerate(data["rows"]):
        assert row["parent"] < index, "a parent comes before its children"


def test_typing_is_checked_by_the_rules(world) -> None:
    client = client_of(world.admin)
    answer = client.post(f"{EDIT}check/", json.dumps(TOO_MUCH), content_type="application/json").json()
    assert answer["errors"][0]["object"] == "queue/search-rank-inference"
    assert (answer["errors"][0]["requested"], answer["errors"][0]["limit"]) == (24, 16)
    assert QuotaChange.objects.count() == 0
    fine = client.post(f"{EDIT}check/", json.dumps(LOWER), content_type="application/json").json()
    assert fine["errors"] == []
    nothing = client.post(f"{EDIT}check/", "[", content_type="application/json").json()
    assert nothing["errors"][0]["detail"] == "Nothing has been edited."


def test_a_change_is_reviewed_applied_and_rolled_back(world) -> None:
    client = client_of(world.admin)
    change = drafted(client, LOWER)
    page = client.get(f"{BASE}changes/{change.pk}/").content.decode()
    kept = re.findall(r'id="([^"]+)"[^>]*hx-preserve', page)
    assert len(kept) > 3
    assert [name for name in kept if not re.fullmatch(r"[\w-]+", name)] == [], "htmx looks for it by a selector"
    assert "−8" in page
    assert "NVIDIA-H200: 24" in page
    assert "NVIDIA-H200: 16" in page
    assert quota("search-training") == 24, "nothing is sent before it is applied"
    silent = client.post(f"{BASE}changes/{change.pk}/apply/", {"reason": " ", "when": "now", "revision": 1})
    assert silent.status_code == 400
    assert "Say why" in silent.content.decode()
    past = client.post(
        f"{BASE}changes/{change.pk}/apply/",
        {**NOW, "when": "at", "at_0": "2020-01-01", "at_1": "10:00"},
    )
    assert re.search(
        r"Choose a time that lies ahead: it is 20\d\d-\d\d-\d\d \d\d:\d\d UTC now\.", past.content.decode()
    )
    assert f'name="at_0" value="{timezone.localdate()}"' in page, "a time without a day is meant today"
    change = act(client, change, "apply", reason="Less is used.", when="now")
    assert change.state == ChangeState.APPLYING
    assert quota("search-training") == 16
    assert AuditEntry.objects.filter(reason="Less is used.").exists()
    page = client.get(f"{BASE}changes/{change.pk}/").content.decode()
    assert "Queue search-training" in page
    assert "Queued" in page
    answer = client.post(f"{BASE}changes/{change.pk}/rollback/", {"revision": 1})
    back = QuotaChange.objects.get(rolls_back=change)
    assert answer["Location"].endswith(f"/changes/{back.pk}/")
    assert "+8" in client.get(answer["Location"]).content.decode()
    act(client, back, "apply", reason="It was too little.", when="now")
    assert quota("search-training") == 24


def test_errors_stop_a_change_at_its_review(world) -> None:
    client = client_of(world.admin)
    change = drafted(client, TOO_MUCH)
    page = client.get(f"{BASE}changes/{change.pk}/").content.decode()
    assert "What does not fit" in page
    assert "Mend what does not fit first." in page
    assert "What would be written is known once no limit is exceeded." in page
    assert "No object of the cluster differs" not in page, "two queues would be written"
    refused = client.post(f"{BASE}changes/{change.pk}/apply/", NOW, follow=True)
    assert re.search(r'class="banner tone-failed"\s+role="alert"', refused.content.decode())
    assert quota("search-rank-inference") == 16
    # The same draft is gone on with in the grid.
    data = client.get(f"{EDIT}data/?change={change.pk}").json()
    assert data["edits"] == TOO_MUCH
    again = drafted(client, LOWER, change=str(change.pk))
    assert (again.pk, again.edits) == (change.pk, LOWER)


def test_a_second_person_approves_where_the_tenant_demands_it(world) -> None:
    Tenant.objects.filter(slug="search").update(approval_required=True)
    second = User.objects.create(username="second", password="!", platform_role=PlatformRole.ADMIN)
    client, other = client_of(world.admin), client_of(second)
    change = drafted(client, LOWER)
    page = client.get(f"{BASE}changes/{change.pk}/").content.decode()
    assert "Request approval" in page
    assert "A second person has to approve this (tenant Search)." in page
    change = act(client, change, "apply", reason="Less is used.", when="now")
    assert change.state == ChangeState.WAITING
    assert "It waits for the approval of one of: second." in client.get(f"{BASE}changes/{change.pk}/").content.decode()
    act(client, change, "approve")
    assert change.state == ChangeState.WAITING, "an author does not approve their own"
    assert "asks you for approval" in other.get(f"{BASE}changes/{change.pk}/").content.decode()
    # Its author goes on with it, which takes it back; no other person does.
    link = f"{EDIT}?change={change.pk}"
    assert link in client.get(f"{BASE}changes/{change.pk}/").content.decode()
    assert "Waiting for approval. Once you review" in client.get(link).content.decode()
    assert client.get(f"{EDIT}data/?change={change.pk}").json()["edits"] == LOWER
    assert (other.get(link).status_code, other.get(f"{EDIT}data/?change={change.pk}").status_code) == (404, 404)
    change = drafted(client, LOWER, change=str(change.pk))
    assert (change.state, change.submitted_at) == (ChangeState.DRAFT, None)
    change = act(client, change, "apply", reason="Less is used.", when="now")
    assert act(other, change, "approve", **{"approve-reason": "Seen on Monday."}).state == ChangeState.APPLYING
    assert quota("search-training") == 16
    assert ": Seen on Monday." in client.get(f"{BASE}changes/{change.pk}/").content.decode()
    entry = AuditEntry.objects.get(action="quota_change.approve", object_id=change.pk)
    assert (change.approved_reason, entry.reason) == ("Seen on Monday.", "Seen on Monday.")
    refused = drafted(client, {"queue/search-training": {"card_quota": {H200: 8}}})
    act(client, refused, "apply", reason="Even less.", when="now")
    assert other.post(f"{BASE}changes/{refused.pk}/reject/", {"reject-reason": "", "revision": 1}).status_code == 400
    assert act(other, refused, "reject", **{"reject-reason": "Too little."}).state == ChangeState.REJECTED
    assert "Rejected by second: Too little." in text_of(client.get(f"{BASE}changes/{refused.pk}/"))
    assert "rejected by second: Too little." in text_of(client.get(f"{BASE}changes/"))


def test_an_approval_on_the_page_is_bound_to_the_hour_that_was_shown(world, lead) -> None:
    Tenant.objects.filter(slug="search").update(approval_required=True)
    author, admin = client_of(lead), client_of(world.admin)
    change = drafted(author, LOWER)
    act(author, change, "apply", reason="On Sunday.", when="at", at_0="2031-05-04", at_1="02:00")
    assert change.state == ChangeState.WAITING
    shown = change.revision
    services.edit_draft(change=change, access=access_of(lead), apply_at=None)
    act(author, change, "apply", reason="On Sunday.", when="now")
    assert change.state == ChangeState.WAITING
    refused = admin.post(f"{BASE}changes/{change.pk}/approve/", {"revision": shown})
    assert refused.status_code == 412
    assert "to be applied at" in refused.content.decode()
    assert quota("search-training") == 24


def test_what_was_sent_at_once_is_sent_at_once_again_after_another_look(world, lead) -> None:
    Tenant.objects.filter(slug="search").update(approval_required=True)
    author = client_of(lead)
    change = act(author, drafted(author, LOWER), "apply", reason="Less is used.", when="now")
    assert change.state == ChangeState.WAITING
    act(author, change, "rebase")
    page = author.get(f"{BASE}changes/{change.pk}/").content.decode()
    chosen = re.findall(r'<input[^>]*name="when"[^>]*value="(\w+)"[^>]*checked', page)
    assert chosen == ["now"], "the hour of the first time is over"
    assert act(author, change, "apply", reason="Less is used.", when=chosen[0]).state == ChangeState.WAITING


def test_at_once_takes_the_place_of_an_hour_that_was_set_before(world) -> None:
    client = client_of(world.admin)
    change, sunday = drafted(client, LOWER), {"when": "at", "at_0": "2999-11-29", "at_1": "02:00"}
    assert act(client, change, "apply", reason="Less is used.", **sunday).state == ChangeState.APPROVED
    address = f"{BASE}changes/{change.pk}/"
    for page in (text_of(client.get(address)), text_of(client.get(f"{BASE}changes/"))):
        assert "Scheduled" in page
        assert "Approved" not in page.rpartition("Scheduled")[2], "no person approved it"
    assert "To be applied 2999-11-29" in text_of(client.get(address))
    for state, shown in (("scheduled", [str(change.pk)]), ("approved", [])):
        listed = client.get(f"{BASE}changes/?state={state}").content.decode()
        assert re.findall(r"Change (\d+)</a>", listed) == shown, state
    choices = re.findall(r'<option value="(scheduled|approved)"[^>]*>([^<]+)<', listed)
    assert choices == [("scheduled", "Scheduled"), ("approved", "Approved")], "the words of the rows"
    given_up = act(client, drafted(client, TOO_MUCH | LOWER), "cancel")
    QuotaChange.objects.filter(pk=given_up.pk).update(apply_at=change.apply_at)
    page = text_of(client.get(f"{BASE}changes/{given_up.pk}/"))
    assert "Cancelled by admin" in page
    assert "Was to be applied 2999-11-29" in page
    assert "To be applied" not in page
    QuotaChange.objects.filter(pk=given_up.pk).update(apply_at=given_up.created_at)
    assert "to be applied" not in text_of(client.get(f"{BASE}changes/{given_up.pk}/")).lower(), "at once has no hour"
    assert act(client, change, "apply", reason="Less is used.", when="now").state == ChangeState.APPLYING


def test_the_time_of_a_scheduled_change_is_taken_back_without_cancelling_it(world, lead) -> None:
    client, sunday = client_of(lead), {"when": "at", "at_0": "2999-11-29", "at_1": "02:00"}
    change = act(client, drafted(client, LOWER), "apply", reason="Less is used.", **sunday)
    address = f"{BASE}changes/{change.pk}/"
    assert "Take the time back" in text_of(client.get(address))
    assert "Take the time back" not in text_of(client_of(world.admin).get(address)), "it is its author's to edit"
    refused = client_of(world.admin).post(f"{address}unschedule/", {"revision": 1}, follow=True)
    assert "Only its author may edit a draft" in text_of(refused)
    assert client.post(f"{address}unschedule/", {"revision": 9}).status_code == 412
    change = act(client, change, "unschedule")
    assert (change.state, change.apply_at, change.edits) == (ChangeState.DRAFT, None, LOWER)
    page = text_of(client.get(address))
    assert "Its time is taken back" in page
    assert "Take the time back" not in page
    assert act(client, change, "apply", reason="Less is used.", when="now").state == ChangeState.APPLYING


def test_a_change_that_waits_without_an_hour_speaks_of_none(world, lead) -> None:
    """The links to the parts of what differs took the place of its hour: "It is applied at" a time that was over."""
    Tenant.objects.filter(slug="search").update(approval_required=True)
    author = client_of(lead)
    change = act(author, drafted(author, LOWER), "apply", reason="Less is used.", when="now")
    address = f"{BASE}changes/{change.pk}/"
    assert "as soon as you approve" in text_of(client_of(world.admin).get(address))
    for client in (author, client_of(world.admin)):
        page = text_of(client.get(address))
        assert "To be applied as soon as it is approved" in page
        for hour in ("It is applied at", "Take the time back", "Its hour is called off"):
            assert hour not in page


@pytest.mark.parametrize("state", ["draft", "waiting", "approved"])
def test_no_state_speaks_of_an_hour_that_is_over(world, lead, state: str) -> None:
    Tenant.objects.filter(slug="search").update(approval_required=True)
    change = drafted(client_of(lead), LOWER)
    over = {"state": state, "apply_at": timezone.now() - dt.timedelta(hours=1), "reason": "x"}
    QuotaChange.objects.filter(pk=change.pk).update(**over, submitted_at=change.created_at)
    for user in (lead, world.admin):
        page = text_of(client_of(user).get(f"{BASE}changes/{change.pk}/"))
        assert ("To be applied as soon as it is approved" in page) == (state == "waiting")
        for hour in (
            "It is applied at",
            "Take the time back",
            "Its hour is called off",
            "for this hour",
            "another hour",
        ):
            assert hour not in page


def test_cancelling_asks_first_and_takes_a_reason(world, lead) -> None:
    author, address = client_of(lead), f"{BASE}changes/"
    change = drafted(author, LOWER)
    page = author.get(f"{address}{change.pk}/").content.decode()
    form = page.partition(f'id="cancel-{change.pk}"')[0].rpartition("<details")[2]
    assert "Cancel this change</summary>" in form, "the button of the form is seen once that is opened"
    assert "open" not in form.partition(">")[0]
    assert "#cancel-" not in page, "one way to it"
    assert "Cancel it for good" in page
    long = {"revision": 1, "cancel-reason": "x" * 1001}
    refused = author.post(f"{address}{change.pk}/cancel/", long)
    assert refused.status_code == 400
    assert re.search(r"<details[^>]* open>\s*<summary[^>]*>.*?Cancel this change", refused.content.decode(), re.DOTALL)
    change = act(client_of(world.admin), change, "cancel", **{"cancel-reason": "Not this week."})
    assert (change.state, change.closed_reason) == (ChangeState.CANCELLED, "Not this week.")
    assert "Cancelled by admin: Not this week." in text_of(author.get(f"{address}{change.pk}/"))


def test_the_grid_says_that_a_second_person_has_to_agree(world, lead) -> None:
    client = client_of(lead)

    def due() -> list[str]:
        answer = client.post(f"{EDIT}check/", json.dumps(LOWER), content_type="application/json")
        assert answer.status_code == 200
        return answer.json()["approval"]

    assert due() == []
    Tenant.objects.filter(slug="search").update(approval_required=True)
    assert due() == ["tenant Search"]
    page = client.get(EDIT).content.decode()
    assert re.search(r'data-zone="UTC"', page), "the zone in which the page writes the time of a draft"
    words = client.get(f"{EDIT}data/").json()["words"]
    assert "{why}" in words["approval_due"]


def test_the_list_is_filtered_and_exported(world) -> None:
    client = client_of(world.admin)
    kept, given_up = drafted(client, LOWER), drafted(client, TOO_MUCH)
    act(client, given_up, "cancel")
    page = client.get(f"{BASE}changes/?state=cancelled").content.decode()
    assert re.findall(r"Change (\d+)</a>", page) == [str(given_up.pk)]
    assert "queue search-rank-inference" in page
    csv = client.get(f"{BASE}changes/?open=yes&format=csv").content.decode("utf-8-sig").splitlines()
    assert [line.partition(",")[0] for line in csv] == ["change", str(kept.pk)]
    assert "No change matches" in client.get(f"{BASE}changes/?q=nobody").content.decode()


def test_a_change_that_failed_before_it_was_written_can_be_applied_again_and_cancelled(world) -> None:
    client = client_of(world.admin)
    for verb, state in (("apply", ChangeState.APPLYING), ("cancel", ChangeState.CANCELLED)):
        change = drafted(client, {"queue/search-training": {"card_quota": {H200: 16 if verb == "apply" else 8}}})
        QuotaChange.objects.filter(pk=change.pk).update(state=ChangeState.FAILED, error="It moved.")
        page = client.get(f"{BASE}changes/{change.pk}/").content.decode()
        for address, shown in (("apply", True), ("cancel", True), ("retry", False), ("rollback", False)):
            assert (f"changes/{change.pk}/{address}/" in page) is shown, address
        assert act(client, change, verb, reason="Again.", when="now").state == state


def test_who_could_give_way_is_said_once(world) -> None:
    client = client_of(world.admin)
    queue = {
        "service_type": "inference", "tenant": "search", "project": "search-rank-inference", "weight": 1,
        "priority": 80000, "reclaimable": False, "state": "Open", "card_quota": {H200: 4},
    }  # fmt: skip
    change = drafted(client, {"queue/rank-new": queue})
    page = client.get(f"{BASE}changes/{change.pk}/").content.decode()
    assert page.count("could give way") == 1


def test_a_time_that_is_over_or_half_is_refused_with_the_time_of_now(world) -> None:
    client = client_of(world.admin)
    change = drafted(client, LOWER)
    where = f"{BASE}changes/{change.pk}/apply/"
    over = client.post(where, {**NOW, "when": "at", "at_0": "2020-01-01", "at_1": "10:00"}).content.decode()
    assert re.search(r"lies ahead: it is \d{4}-\d\d-\d\d \d\d:\d\d UTC now", over)
    half = client.post(where, {**NOW, "when": "at", "at_0": "", "at_1": "22:00"}).content.decode()
    assert "Choose a date and a time, such as 22:00." in half
    assert act(client, change, "apply", reason="x", when="now", at_1="22:00").state == ChangeState.APPLYING


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_a_reason_that_is_refused_is_told_also_where_the_page_has_no_field_for_it(world, lead, verb: str) -> None:
    """A draft's page shows neither form: five kinds of a hostile reason were answered 400 with no word about them."""
    client = client_of(world.admin)
    draft = drafted(client_of(lead), LOWER)
    long = {f"{verb}-reason": "x" * 1001, "revision": 1}
    refused = client.post(f"{BASE}changes/{draft.pk}/{verb}/", long)
    said = text_of(refused)
    if verb == "approve":  # it is no draft's to be approved, whatever the reason
        assert (refused.status_code, "No approval is due for this draft" in said) == (400, True)
    else:
        assert (refused.status_code, "has 1001" in said, "Why do you reject it?" in said) == (400, True, True)
    Tenant.objects.filter(slug="search").update(approval_required=True)
    client_of(lead).post(f"{BASE}changes/{draft.pk}/apply/", NOW)
    draft.refresh_from_db()
    assert draft.state == ChangeState.WAITING
    refused = client.post(f"{BASE}changes/{draft.pk}/{verb}/", long)
    assert (refused.status_code, text_of(refused).count("has 1001")) == (400, 1)
