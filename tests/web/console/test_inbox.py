"""What waits for an approver: the page, the count in the menu and the bell, and whom the author waits for."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.quota_writes import write_tide_plan
from tests.web.console import world as story
from tests.web.console.cast import H200
from tests.web.console.test_changes import LOWER, act, drafted, text_of
from tests.web.console.test_pages import client_of
from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.models import PlatformRole, Tenant, User
from tidesched_web.changes.models import QuotaChange
from tidesched_web.clusters.models import Cluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(world) -> story.World:
    Tenant.objects.filter(slug="search").update(approval_required=True)
    return world


def account(name: str, *, tenant: str = "", platform: str = "", by: User | None = None) -> Client:
    user = accounts.create_user(
        username=name, password=None, platform_role=platform, actor="tests", by=by.pk if by else None
    )
    if tenant:
        accounts.set_membership(user=user, tenant=Tenant.objects.get(slug=tenant), role="admin", actor="tests")
    return client_of(user)


def counts(client: Client) -> list[str]:
    """The figures of the bell and of the menu."""
    page = client.get("/clusters/demo/queues/").content.decode()
    found = [re.search(rf'id="inbox-{place}"[^>]*>(.*?)</span>\s*</?', page, re.DOTALL) for place in ("bell", "nav")]
    return [re.sub(r"<[^>]+>|\s", "", one[1]) if one else "" for one in found]


def test_the_hour_of_a_change_says_of_which_clock_it_is(world) -> None:
    second = account("second", platform=PlatformRole.ADMIN)
    author = client_of(world.admin)
    change = act(author, drafted(author, LOWER), "apply", reason="Less is used.", when="now")
    assert "as soon as it is approved" in second.get("/waiting/").content.decode()
    hour = (timezone.now() + dt.timedelta(hours=5)).replace(microsecond=0)
    QuotaChange.objects.filter(pk=change.pk).update(apply_at=hour)
    Cluster.objects.filter(pk=world.cluster.pk).update(simulated=True, clock_rate=60.0)
    there = Cluster.objects.get(pk=world.cluster.pk).clock(hour)
    page = " ".join(second.get("/waiting/").content.decode().split())
    assert f"{hour:%Y-%m-%d %H:%M:%S} UTC by the real clock" in page
    assert f"{there:%Y-%m-%d %H:%M:%S} UTC by the cluster&#x27;s clock" in page


def test_a_change_waits_in_the_inbox_of_those_who_may_approve_it_and_of_no_other(world) -> None:
    second = account("second", platform=PlatformRole.ADMIN)
    of_tenant, of_other = account("lead", tenant="search"), account("rival", tenant="maps")
    puppet = account("puppet", platform=PlatformRole.ADMIN, by=world.admin)
    author = client_of(world.admin)
    change = act(author, drafted(author, LOWER), "apply", reason="Less is used.", when="now")
    for client in (second, of_tenant):
        page = client.get("/waiting/").content.decode()
        assert f"/clusters/demo/changes/{change.pk}/" in page
        assert "Less is used." in page
        assert re.search(r"24 → <strong>16<", page)
        assert counts(client) == ["1", "1"]
    late = account("late", platform=PlatformRole.ADMIN)
    for client in (author, of_other, puppet, late):
        page = client.get("/waiting/").content.decode()
        assert "Nothing waits for you" in page
        assert "Less is used." not in page
        assert counts(client) == ["0", ""]
    for user in (world.auditor, world.member):
        assert client_of(user).get("/waiting/").status_code == 403
        assert "inbox-bell" not in client_of(user).get("/clusters/demo/queues/").content.decode()
    assert Client().get("/waiting/").status_code == 302
    act(second, change, "approve")
    assert "Nothing waits for you" in second.get("/waiting/").content.decode()
    assert counts(of_tenant) == ["0", ""]


def test_pages_count_what_waits_without_reading_what_it_says(world) -> None:
    """The plan of one change may be megabytes: only its own page and the inbox read plans, a list none."""
    second, author = account("second", platform=PlatformRole.ADMIN), client_of(world.admin)
    act(author, drafted(author, LOWER), "apply", reason="Less is used.", when="now")
    plan = '"changes_quotachange"."plan"'
    for address in ("queues/", "changes/", "changes/?format=csv"):
        with CaptureQueriesContext(connection) as queries:
            assert second.get(f"/clusters/demo/{address}").status_code == 200
        read = [query["sql"] for query in queries if plan in query["sql"]]
        assert not read, (address, read)
    assert counts(second) == ["1", "1"]
    assert "24 → <strong>16<" in second.get("/waiting/").content.decode()


def test_the_tenants_own_ceiling_waits_for_a_platform_admin_alone(world) -> None:
    of_tenant = account("lead", tenant="search")
    second = account("second", platform=PlatformRole.ADMIN)
    author = client_of(world.admin)
    edits = {"tenant/search": {"quota": {"inference": {"card_quota": {H200: 21}}}}}
    act(author, drafted(author, edits), "apply", reason="More.", when="now")
    assert counts(of_tenant) == ["0", ""]
    assert counts(second) == ["1", "1"]


def test_the_author_sees_for_whom_it_waits(world) -> None:
    second = account("zhou-second", platform=PlatformRole.ADMIN)
    lead = User.objects.get(pk=int(account("lead", tenant="search").session["_auth_user_id"]))
    author = client_of(lead)
    change = act(author, drafted(author, LOWER), "apply", reason="Less.", when="now")
    page = author.get(f"/clusters/demo/changes/{change.pk}/").content.decode()
    assert "It waits for the approval of a platform admin." in page
    assert "A change is approved by another person than its author." in page
    assert "zhou-second" not in page
    User.objects.filter(platform_role=PlatformRole.ADMIN).update(invited_by=lead)
    page = author.get(f"/clusters/demo/changes/{change.pk}/").content.decode()
    assert "No account can approve this now" in page
    User.objects.update(invited_by=None)
    QuotaChange.objects.filter(pk=change.pk).update(author=world.admin)
    page = client_of(world.admin).get(f"/clusters/demo/changes/{change.pk}/").content.decode()
    assert "It waits for the approval of one of: lead, zhou-second." in page
    assert second.get("/waiting/").status_code == 200


def test_in_chinese_a_row_says_when_it_was_submitted_and_whose_it_is_by_name(world) -> None:
    """And a change has one word wherever it stands."""
    second = account("second", platform=PlatformRole.ADMIN)
    User.objects.filter(username="second").update(language="zh-hans")
    Tenant.objects.filter(slug="search").update(name="Search and Answers")
    User.objects.filter(pk=world.admin.pk).update(language="zh-hans")
    author = client_of(world.admin)
    draft = drafted(author, LOWER)
    said = " ".join(author.get(f"/clusters/demo/changes/{draft.pk}/").content.decode().split())
    assert re.search(r"须由第二人审批（[^）]*Search and Answers）", said)
    change = act(author, draft, "apply", reason="Less.", when="now")
    page = second.get("/waiting/").content.decode()
    heads = [text.strip() for text in re.findall(r'<th scope="col"[^>]*>([^<]+)</th>', page)]
    assert heads == ["变更", "作用", "租户", "提交人", "原因", "计划应用时间", "提交"]
    assert re.search(r'<td data-label="租户">\s*Search and Answers <span class="key">search</span>\s*</td>', page)
    assert re.search(r'data-label="提交">\s*<time [^>]*>[^<]*(?:前|刚刚)</time>', page), "a moment, not a duration"
    for path in (f"/clusters/demo/changes/{change.pk}/", "/clusters/demo/changes/"):
        assert "更改" not in second.get(path).content.decode(), path


def test_who_made_the_author_is_told_why_their_approval_does_not_count_and_whom_to_ask(world) -> None:
    lead = account("lead", tenant="search")
    account("zhou-second", platform=PlatformRole.ADMIN)
    maker = User.objects.get(username="lead")
    puppet = account("puppet", tenant="search", by=maker)
    change = act(puppet, drafted(puppet, LOWER), "apply", reason="Less.", when="now")
    assert counts(lead) == ["0", ""]
    page = lead.get(f"/clusters/demo/changes/{change.pk}/").content.decode()
    assert "you made the account of puppet" in page
    assert "It waits for the approval of a platform admin." in page
    assert act(lead, change, "approve").state == "waiting"
    for name in ("zhou-second", world.admin.username):
        assert counts(client_of(User.objects.get(username=name))) == ["1", "1"]


def test_what_a_change_deletes_and_its_hour_are_said_before_it_is_approved(world) -> None:
    second, author = account("second", platform=PlatformRole.ADMIN), client_of(world.admin)
    write_tide_plan(cluster=world.cluster, name="nights", document={"enabled": False, "layers": []}, actor="tests")
    change = drafted(author, {**LOWER, "tide-plan/nights": None})
    act(author, change, "apply", reason="Not used.", when="at", at_0="2999-11-29", at_1="02:00")
    page = second.get("/waiting/").content.decode()
    assert re.search(r"<strong>\s*Deletes tide plan nights\s*</strong>", page)
    page = " ".join(second.get(f"/clusters/demo/changes/{change.pk}/").content.decode().split())
    assert re.search(r"asks you for approval\. It is applied at 2999-11-29 02:00", page)


def test_an_author_is_told_of_a_change_that_another_person_closed_until_it_was_opened(world) -> None:
    lead, admin, other = account("lead", tenant="search"), client_of(world.admin), account("other", tenant="search")
    rejected = act(lead, drafted(lead, LOWER), "apply", reason="Less is used.", when="now")
    act(admin, rejected, "reject", **{"reject-reason": "Not before Friday."})
    given_up = act(admin, drafted(lead, LOWER), "cancel")
    own = act(lead, drafted(lead, LOWER), "cancel")
    page = text_of(lead.get("/waiting/"))
    assert re.search(rf"Change {given_up.pk} .*? Cancelled {world.admin.username} .*? Change {rejected.pk} ", page)
    assert re.search(rf"Change {rejected.pk} .*? Rejected {world.admin.username}: Not before Friday\.", page)
    assert f"Change {own.pk} demo" not in page, "they know what they did"
    assert "Nothing waits for you" not in page
    assert counts(lead) == ["2", "2"]
    for client in (admin, other):
        assert counts(client) == ["0", ""], "it is its author's alone"
        client.get(f"/clusters/demo/changes/{rejected.pk}/")
    address = f"/clusters/demo/changes/{rejected.pk}/"
    lead.get(address, headers={"HX-Request": "true", "HX-Target": "live"})
    assert counts(lead) == ["2", "2"], "a page that stands open was not looked at"
    for left in (given_up, None):
        assert lead.get(address).status_code == 200
        shown = text_of(lead.get("/waiting/"))
        assert f"Change {rejected.pk} " not in shown
        if left is not None:
            assert counts(lead) == ["1", "1"]
            address = f"/clusters/demo/changes/{left.pk}/"
    assert "Nothing waits for you" in shown
    assert counts(lead) == ["0", ""]
