"""The management pages: what they cost, what they say, and what a form does with what is wrong in it."""

from __future__ import annotations

import html
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.api.page_forms import forms_of, post_opened
from tests.passwords import PASSWORD
from tests.web.console import world as story
from tests.web.console.cast import A100
from tests.web.console.test_pages import MAX_QUERIES, WRITER, client_of
from tidesched_web.accounts.models import Membership, Project, Tenant, TenantRole, User
from tidesched_web.audit.models import AuditEntry
from tidesched_web.changes.models import QuotaChange
from tidesched_web.clusters.models import CardType, PolicyRevision
from tidesched_web.jobs.models import Job
from tidesched_web.quota.models import PriorityClass, Queue

pytestmark = pytest.mark.django_db
# Page → who opens it beside the platform's admin.
LISTS = {
    "tenants/": "lead",
    "tenants/search/": "lead",
    "tenants/search/members/": "lead",
    "projects/": "lead",
    "tenants/search/projects/search-rank-inference/": "lead",
    "business-lines/": "lead",
    "users/": "",
    "users/{person}/": "",
    "clusters/demo/grants/": "lead",
    "clusters/demo/card-types/": "lead",
    "clusters/demo/priority-classes/": "lead",
    "clusters/demo/policy/": "lead",
    "clusters/demo/policy/all/": "lead",
    "clusters/demo/policy/1/": "lead",
}
POLICY = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n'
TOLD = re.compile(r'<div class="text-danger mt-1" role="alert">([^<]*)</div>')


@pytest.fixture
def world(world) -> story.World:
    world.lead = User.objects.create(username="lead")
    Membership.objects.create(user=world.lead, tenant=Tenant.objects.get(slug="search"), role=TenantRole.ADMIN)
    return world


def test_pages_cost_few_queries(world, subtests) -> None:
    for who in (world.admin, world.lead):
        client = client_of(who)
        client.get("/tenants/")
        for path, others in LISTS.items():
            if who == world.lead and not others:
                continue
            with subtests.test(f"{path} for {who}"), CaptureQueriesContext(connection) as queries:
                answer = client.get("/" + path.format(person=world.member.pk))
                assert answer.status_code == 200
                # Two elements with one id: the second one has no label of its own.
                ids = re.findall(r'\sid="([^"]+)"', answer.content.decode())
                assert sorted(set(ids)) == sorted(ids)
                assert len(queries) <= MAX_QUERIES + WRITER, [query["sql"][:120] for query in queries]


def test_lists_are_paged_and_filters_live_in_the_address(world) -> None:
    Tenant.objects.bulk_create(Tenant(slug=f"many-{n:03}", name=f"Many {n}") for n in range(60))
    client = client_of(world.admin)
    first = client.get("/tenants/?q=many").content.decode()
    assert "many-049" in first
    assert "many-050" not in first
    assert "Remove the filter Name" in first
    onward = re.search(r'href="(\?[^"]*cursor=[^"]*)"', first)[1].replace("&amp;", "&")
    second = client.get(f"/tenants/{onward}").content.decode()
    assert "many-050" in second
    assert "many-049" not in second
    assert "No tenant matches" in client.get("/tenants/?q=nobody").content.decode()
    assert client.get("/tenants/?q=%00&cursor=x").status_code == 200


def test_a_new_queue_beyond_its_owner_names_who_could_give_way_and_leads_to_the_grid(world) -> None:
    client = client_of(world.admin)
    page = html.unescape(client.get("/clusters/demo/new/queue/").content.decode())
    owner = re.search(r'<option value="(project-\d+)">Search › Rank – ([^<]+)</option>', page)
    assert owner, "what is left stands behind the owner's name"
    assert 'href="/clusters/demo/quota/edit/"' in page
    body = {"name": "rank-new", "service_type": "inference", "owner": owner[1], "card:NVIDIA-H200": "4", "reason": "x"}
    refused = client.post("/clusters/demo/new/queue/", body)
    said = " ".join(html.unescape(text) for text in TOLD.findall(refused.content.decode()))
    assert "Rank gives out 20 × H200 for inference, but has 16: 4 too many." in said
    assert "search-rank-inference could give way: it has 16 × H200, of which " in said
    assert "NVIDIA-" not in said


def test_where_the_owner_has_none_of_a_card_what_is_left_above_it_is_said(world) -> None:
    client = client_of(world.admin)
    page = html.unescape(client.get("/clusters/demo/new/queue/").content.decode())
    owner = re.search(r'<option value="(project-\d+)">Search › Rank ', page)
    assert owner
    body = {"name": "rank-new", "service_type": "inference", "owner": owner[1], f"card:{A100}": "2", "reason": "x"}
    refused = client.post("/clusters/demo/new/queue/", body)
    said = " ".join(html.unescape(text) for text in TOLD.findall(refused.content.decode()))
    assert "Rank gives out 2 × A100-SXM4-80GB for inference, but has 0: 2 too many. Search has 0 left." in said


def test_a_mistake_is_told_at_its_field_and_what_was_typed_stays(world) -> None:
    client = client_of(world.admin)
    answer = client.post("/new/tenant/", {"slug": "search", "name": "Search again"})
    page = answer.content.decode()
    assert answer.status_code == 400
    assert TOLD.findall(page) == ["There is one of this name already."]
    assert 'value="Search again"' in page
    stale = client.post("/tenants/search/edit/", {"name": "Other", "version": "7"}).content.decode()
    assert "This was changed meanwhile" in stale
    beyond = {"weight": "1", "priority": "20000", "card:NVIDIA-H200": "99999", "reason": "more"}
    refused = post_opened(client, "/clusters/demo/queues/search-training/edit/", beyond)
    assert refused.status_code == 400
    assert any("H200" in text for text in TOLD.findall(refused.content.decode()))
    assert 'value="99999"' in refused.content.decode()
    taken = {"name": "search-training", "service_type": "training", "owner": "", "reason": "x"}
    assert "This field is required." in client.post("/clusters/demo/new/queue/", taken).content.decode()
    line = world.queues["search-training"].business_line_id
    taken["owner"] = f"line-{line}"
    assert "There is one of this name already." in client.post("/clusters/demo/new/queue/", taken).content.decode()
    assert "An inference queue belongs" in client.post(
        "/clusters/demo/new/queue/", taken | {"service_type": "inference"}
    ).content.decode().replace("An inference queue belongs to a project, a training", "")


def test_what_may_not_go_says_why(world) -> None:
    client = client_of(world.admin)
    page = client.get("/tenants/search/delete/").content.decode()
    assert "It cannot be deleted yet" in page
    assert "3 queues" in page
    assert "1 business line" in page
    assert 'aria-disabled="true"' in page
    figures = html.unescape(client.get("/clusters/demo/queues/search-training/delete/").content.decode())
    assert re.search(r'class="key">\d+ × [A-Z0-9]', figures), "cards by their short names"
    assert not re.search(r'class="key">[^<]*NVIDIA-', figures)
    queue = client.get("/clusters/demo/queues/search-training/").content.decode()
    assert "Close it first" in queue
    default = client.get(f"/users/{world.admin.pk}/").content.decode()
    assert "This is the last active platform admin" in default


def test_a_queue_closes_and_drains_and_goes(world) -> None:
    client, address = client_of(world.lead), "/clusters/demo/queues/search-training/"
    done = post_opened(client, f"{address}close/", {"reason": "moved"}, follow=True).content.decode()
    assert "The queue is closing" in done
    assert "It is closed and drains" in done
    world.queues["search-training"].gangs.all().delete()
    Queue.objects.filter(name="search-training").update(live_state="Closed")
    assert "closed and drained" in client.get(address).content.decode()
    gone = post_opened(client, f"{address}delete/", {"reason": "over"}, follow=True).content.decode()
    assert "Queue search-training is deleted." in gone
    assert not Queue.objects.filter(name="search-training").exists()


def test_the_defaults_are_explained_and_taken(world) -> None:
    client = client_of(world.lead)
    page = client.get("/clusters/demo/new/queue/").content.decode()
    assert "80,000" in page
    assert "when inference needs them" in page
    assert 'name="priority"' not in page, "ranking a queue is the platform's"
    project = Project.objects.get(slug="search-rank-inference")
    body = {"name": "rank-two", "service_type": "inference", "owner": f"project-{project.pk}", "act": "make"}
    unsaid = client.post("/clusters/demo/new/queue/", body)
    assert (unsaid.status_code, TOLD.findall(unsaid.content.decode())) == (
        400, ["Say why: the reason goes into the audit log."],
    )  # fmt: skip
    assert client.post("/clusters/demo/new/queue/", body | {"reason": "more"}).status_code == 302
    made = Queue.objects.get(name="rank-two")
    assert (made.priority, made.reclaimable, made.tenant.slug) == (80000, False, "search")


def test_a_new_queue_is_reviewed_before_it_is_made(world) -> None:
    client, address = client_of(world.lead), "/clusters/demo/new/queue/"
    line = world.queues["search-training"].business_line_id
    body = {"name": "more-training", "service_type": "training", "owner": f"line-{line}"}
    page = html.unescape(client.get(address).content.decode())
    assert re.search(r'<button class="btn btn-primary" type="submit">Review the new queue</button>', page)
    answer = client.post(address, body)
    change = QuotaChange.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/clusters/demo/changes/{change.pk}/")
    assert (change.state, change.author, set(change.edits)) == ("draft", world.lead, {"queue/more-training"})
    assert not Queue.objects.filter(name="more-training").exists()
    review = client.get(answer["Location"]).content.decode()
    assert "What would happen at the next session?" in review
    assert "more-training" in review
    assert client.post(address, body)["Location"] == answer["Location"], "sent twice it is one draft"
    Tenant.objects.filter(slug="search").update(approval_required=True)
    waits = client.post(address, body | {"act": "make", "reason": "x"}, follow=True).content.decode()
    assert "waits for the approval of a second person" in waits
    assert not Queue.objects.filter(name="more-training").exists(), "no button goes past the second person"


def test_an_edit_of_a_queue_is_reviewed_before_it_is_sent(world) -> None:
    client, page = client_of(world.lead), "/clusters/demo/queues/search-training/"
    address, queue = f"{page}edit/", Queue.objects.get(name="search-training")
    shown = html.unescape(client.get(address).content.decode())
    assert re.search(r'<button class="btn btn-primary" type="submit">Review the changes</button>', shown)
    sent = next(form.fields for form in forms_of(shown, address) if "weight" in form.fields)
    at_once = sent.pop("act")
    assert (at_once, sent["reason"]) == ("save", "")
    assert client.post(address, sent)["Location"] == page, "nothing differs, so nothing is drafted"
    assert not QuotaChange.objects.exists()
    answer = client.post(address, sent | {"card:NVIDIA-H200": "20"})
    change = QuotaChange.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/clusters/demo/changes/{change.pk}/")
    assert (change.state, change.author) == ("draft", world.lead)
    assert change.edits == {"queue/search-training": {"card_quota": {"NVIDIA-H200": 20}}}, "only what was typed"
    assert "What would happen at the next session?" in client.get(answer["Location"]).content.decode()
    assert client.post(address, sent | {"card:NVIDIA-H200": "20"})["Location"] == answer["Location"]
    unsaid = client.post(address, sent | {"card:NVIDIA-H200": "20", "act": at_once})
    assert (unsaid.status_code, TOLD.findall(unsaid.content.decode())) == (
        400, ["Say why: the reason goes into the audit log."],
    )  # fmt: skip
    assert client.post(address, sent | {"cores": "500", "act": at_once, "reason": "x"})["Location"] == page
    assert Queue.objects.get(pk=queue.pk).cpu_milli == 500_000
    stale = client.post(address, sent | {"card:NVIDIA-H200": "22"})
    assert stale.status_code == 412, "no draft on figures that were not seen"
    assert QuotaChange.objects.filter(state="draft").count() == 1


def test_the_form_of_a_new_queue_says_what_its_owner_has_left_and_where_more_is_given(world) -> None:
    address = "/clusters/demo/new/queue/"
    project = Project.objects.get(slug="search-rank-inference")
    for user, way in ((world.admin, "Give it more in the grid"), (world.lead, "Move or ask for more in the grid")):
        page = html.unescape(client_of(user).get(f"{address}?owner={project.pk}").content.decode())
        said = re.search(r'<div class="banner tone-\w+" role="status">(.*?)</div>', page, re.DOTALL)
        text = " ".join(re.sub(r"<[^>]+>", " ", said[1]).split())
        assert text == f"Rank has no cards left to give out. {way}"
        assert 'href="/clusters/demo/quota/edit/"' in said[1]
        assert "left to give out" not in client_of(user).get(address).content.decode().split("</select>")[-1]


def test_missing_defaults_are_made_by_one_button(world) -> None:
    PriorityClass.objects.filter(name="pc-low").delete()
    client = client_of(world.admin)
    assert "these are missing: pc-low" in client.get("/clusters/demo/priority-classes/").content.decode()
    client.post("/clusters/demo/new/priority-classes/")
    assert PriorityClass.objects.get(name="pc-low").value == 20000


def test_a_found_card_type_is_not_for_deleting(world) -> None:
    found = CardType.objects.get(name="NVIDIA-L40S")
    client = client_of(world.admin)
    page = client.get(f"/clusters/demo/card-types/{found.pk}/delete/").content.decode()
    assert "Nodes carry it" in page


def test_a_tenant_admin_invites_and_the_person_comes_in(world) -> None:
    client = client_of(world.lead)
    assert "/tenants/search/invite/" in client.get("/tenants/search/members/").content.decode()
    sent = {"username": "ida", "email": "ida@example.com", "role": "member"}
    page = client.post("/tenants/search/invite/", sent)
    assert "no-store" in page["Cache-Control"]
    address = re.search(r"http://testserver(/invite/[^<]+)<", page.content.decode())[1]
    assert client.post("/tenants/search/invite/", sent).status_code == 400, "the name is taken"
    members = client.get("/tenants/search/members/").content.decode()
    assert "Invited" in members
    ida = Membership.objects.get(user__username="ida")
    newer = client.post(f"/tenants/search/members/{ida.pk}/link/").content.decode()
    assert Client().get(address).status_code == 410
    address = re.search(r"http://testserver(/invite/[^<]+)<", newer)[1]
    person = Client()
    password = {"new_password": PASSWORD, "repeated": PASSWORD}
    assert person.post(address, password).status_code == 302
    assert person.get("/tenants/search/").status_code == 200
    assert person.get("/tenants/research/").status_code == 404
    again = client.post(f"/tenants/search/members/{ida.pk}/link/", follow=True).content.decode()
    assert "in use or has rights elsewhere" in again


def test_a_found_card_type_gets_other_names(world) -> None:
    found = CardType.objects.get(name="NVIDIA-L40S")
    client, address = client_of(world.admin), f"/clusters/demo/card-types/{found.pk}/edit/"
    assert "Other names" in client.get(address).content.decode()
    assert post_opened(client, address, {"aliases": "L40S, Ada  L40S", "kind": "mig"}).status_code == 302
    found.refresh_from_db()
    assert (found.aliases, found.kind) == (["Ada", "L40S"], "whole")
    assert "also Ada, L40S" in client.get("/clusters/demo/card-types/?q=ada").content.decode()
    refused = post_opened(client, address, {"aliases": "NVIDIA-H200"})
    assert refused.status_code == 400
    assert TOLD.findall(refused.content.decode()) == ["NVIDIA-H200 is the name of a card type already."]
    for _again in range(2):
        assert post_opened(client, address, {"aliases": ""}).status_code == 302
    found.refresh_from_db()
    assert found.aliases == []
    other = CardType.objects.get(name="NVIDIA-H200")
    assert post_opened(client, f"/clusters/demo/card-types/{other.pk}/edit/", {"aliases": ""}).status_code == 302
    other.refresh_from_db()
    assert other.discovered, "it has got no document for nothing"


def test_a_policy_is_checked_applied_rolled_back_and_released(world) -> None:
    client, address = client_of(world.admin), "/clusters/demo/policy/"
    text = POLICY.replace("\n", "\r\n")
    checked = post_opened(client, address, {"text": text, "act": "check"}).content.decode()
    assert "What it would change" in checked
    assert PolicyRevision.objects.count() == 1
    broken = post_opened(client, address, {"text": "actions: allocat", "act": "apply", "reason": "x"})
    assert broken.status_code == 400
    assert "It cannot be applied" in broken.content.decode()
    assert "allocat" in broken.content.decode()
    assert post_opened(client, address, {"text": text, "act": "apply"}).status_code == 400, "without a reason"
    stored = post_opened(
        client, address, {"text": text, "act": "apply", "reason": "simpler"}, follow=True
    ).content.decode()
    assert "New, and not released yet." in stored
    assert PolicyRevision.objects.get(number=2).text == POLICY
    stale = client.post(address, {"text": "x", "act": "apply", "reason": "x", "version": "1"}).content.decode()
    assert "The policy was changed meanwhile" in stale
    PolicyRevision.objects.filter(number=1).update(text=POLICY.replace("gang", "priority"))
    back = post_opened(client, f"{address}1/roll-back/", {"reason": "worse"}, follow=True).content.decode()
    assert "Revision 1 is back." in back
    client.post(f"{address}3/release/")
    assert PolicyRevision.objects.get(number=3).released_at
    actions = AuditEntry.objects.order_by("id").values_list("action", "reason")
    assert list(actions) == [("policy.set", "simpler"), ("policy.set", "worse"), ("policy.release", "")]


def test_a_policy_that_is_refused_puts_no_question_to_a_worker(world) -> None:
    client, address = client_of(world.admin), "/clusters/demo/policy/"
    form, before = {"text": POLICY, "act": "apply", "reason": "simpler"}, Job.objects.count()
    stale = client.post(address, {**form, "version": "7"})
    assert stale.status_code == 412
    assert "What it would change" in stale.content.decode(), "the difference is still shown"
    assert Job.objects.count() == before
    client.post(address, {**form, "act": "check", "version": "1"})
    assert Job.objects.count() == before + 1


def test_an_invitation_lets_its_person_in_once(world) -> None:
    client = client_of(world.admin)
    body = {"username": "newhire", "email": "new@example.com", "tenant": "search", "role": "admin"}
    page = client.post("/new/user/", body).content.decode()
    link = re.search(r'id="access-link"[^>]*>http://testserver([^<]*)<', page)[1]
    assert link not in client.get(f"/users/{User.objects.get(username='newhire').pk}/").content.decode()
    guest = Client()
    opened = guest.get(link)
    assert "You sign in as <strong>newhire</strong>" in opened.content.decode()
    assert (opened["Referrer-Policy"], opened["Cache-Control"]) == ("strict-origin", "private, no-store")
    weak = guest.post(link, {"new_password": "12345", "repeated": "12345"})
    assert weak.status_code == 400
    good = {"new_password": "a long enough secret", "repeated": "a long enough secret"}
    assert guest.post(link, good).status_code == 302
    assert "Members of Search" in guest.get("/tenants/search/members/").content.decode()
    again = Client().post(link, good)
    assert again.status_code == 410
    assert "This link no longer works" in again.content.decode()


def test_a_switched_off_account_is_out_at_once(world) -> None:
    client, member = client_of(world.admin), client_of(world.member)
    assert member.get("/tenants/search/").status_code == 200
    post_opened(client, f"/users/{world.member.pk}/switch/", {"reason": "left"})
    assert member.get("/tenants/search/").status_code == 302


def test_without_a_tenant_a_page_says_what_comes_first() -> None:
    admin = story.people()[0]
    client = client_of(admin)
    assert "Make a tenant first" in client.get("/projects/").content.decode()
    assert "Make a tenant first" in client.get("/new/project/").content.decode()
    assert "No tenant yet" in client.get("/tenants/").content.decode()
    story.empty_cluster()
    assert "there is none that you administer" in client.get("/clusters/demo/new/queue/").content.decode()
