"""A stale form takes over the present values, keeps what was typed, and can be sent again."""

import re

import pytest
from django.utils.translation import override

from tests.api.page_forms import forms_of
from tests.quota_writes import write_tide_plan
from tests.web.console.test_changes import act, drafted, text_of
from tests.web.console.test_pages import client_of
from tests.web.console.test_tide_plans import LIST, NIGHT, applied, sent
from tidesched_web.accounts.models import Membership, Tenant, User
from tidesched_web.clusters.models import Cluster
from tidesched_web.console.forms.audit import SealForm
from tidesched_web.console.forms.connection import SettingsForm
from tidesched_web.console.forms.queue import QueueEditForm
from tidesched_web.quota.models import Queue, TidePlan

pytestmark = pytest.mark.django_db
RULES = "/clusters/demo/rules/"


def opened(client, address, field="reason"):
    """The form of a page, as a browser would send it back; boxes that are not ticked and other buttons are not sent."""
    page = client.get(address).content.decode()
    form = next(one for one in forms_of(page, address) if one.method == "post" and field in one.fields)
    inputs = re.findall(r"<input[^>]*>", page)
    boxes = {
        re.search(r'name="([^"]*)"', one)[1] for one in inputs if 'type="checkbox"' in one and "checked" not in one
    }
    return {name: value for name, value in form.fields.items() if name not in boxes and value != "review"}


def test_two_admins_edit_the_rules_and_both_edits_stand(world):
    client = client_of(world.admin)
    mine, theirs = opened(client, RULES), opened(client, RULES)
    assert client.post(RULES, theirs | {"overcommit_training_percent": "120", "reason": "night"}).status_code == 302
    stale = client.post(RULES, mine | {"approval_required": "on", "reason": "four eyes"})
    assert stale.status_code == 412
    said = text_of(stale)
    assert "Nothing was saved. What you typed is kept in the form." in said
    assert "Taken over into the form, since you had not changed it: Training may be promised: 120" in said
    again = next(form for form in forms_of(stale.content.decode(), RULES) if "reason" in form.fields)
    assert again.fields["overcommit_training_percent"] == "120"
    assert again.fields["approval_required"] == "on"
    assert again.fields["reason"] == "four eyes"
    assert client.post(RULES, again.fields).status_code == 302
    cluster = Cluster.objects.get(slug="demo")
    assert (float(cluster.overcommit_training), cluster.approval_required) == (1.2, True)


def test_where_both_changed_a_figure_both_are_shown_and_the_typed_one_stays(world):
    client = client_of(world.admin)
    address = "/clusters/demo/queues/search-training/edit/"
    mine, theirs = opened(client, address), opened(client, address)
    assert client.post(address, theirs | {"weight": "3", "priority": "20001", "reason": "x"}).status_code == 302
    stale = client.post(address, mine | {"weight": "7", "reason": "y"})
    assert stale.status_code == 412
    assert "Changed by both There now Yours Weight 3 7 Taken over" in text_of(stale)
    again = next(form for form in forms_of(stale.content.decode(), address) if "reason" in form.fields)
    assert (again.fields["weight"], again.fields["priority"]) == ("7", "20001")
    assert f'href="{address}"' in stale.content.decode(), "the way to what is there"
    assert client.post(address, again.fields | {"reason": "y"}).status_code == 302
    queue = Queue.objects.get(name="search-training")
    assert (queue.weight, queue.priority) == (7, 20001)


def test_an_act_that_turns_a_state_is_not_done_twice(world):
    """Two admins press the same button: the second one does not take back what the first one did."""
    client = client_of(world.admin)
    for address, state in (
        (f"/users/{world.member.pk}/switch/", lambda: User.objects.get(pk=world.member.pk).is_active),
        ("/clusters/demo/queues/search-training/close/", lambda: Queue.objects.get(name="search-training").state),
        ("/tenants/search/approval/", lambda: Tenant.objects.get(slug="search").approval_required),
    ):
        posted = opened(client, address) | {"reason": "once"}
        before = state()
        assert client.post(address, posted).status_code == 302, address
        assert state() != before
        second = client.post(address, posted)
        assert second.status_code == 412, address
        assert state() != before, "turned back"
        assert "Next: look at the page as it is now, then decide again." in text_of(second)


def test_who_comes_second_to_pause_does_not_resume(world):
    client, address = client_of(world.admin), "/clusters/demo/pause/"
    posted = opened(client, address) | {"reason": "smoke", "confirm": "on"}
    assert client.post(address, posted).status_code == 302
    second = client.post(address, posted)
    assert second.status_code == 400
    assert "is paused already, by" in text_of(second)
    assert Cluster.objects.get(slug="demo").paused_at is not None
    again = next(form for form in forms_of(second.content.decode(), address) if "confirm" in form.fields)
    assert (again.fields["act"], again.fields["reason"]) == ("resume", "smoke")


def test_a_stale_tide_plan_shows_what_is_there_beside_what_was_typed(world):
    client = client_of(world.admin)
    applied(client, client.post("/clusters/demo/new/tide-plan/", sent()))
    opened_at = str(TidePlan.objects.get(name="days").version)
    address, typed = f"{LIST}days/edit/", sent(position="9", version=opened_at)
    applied(client, client.post(address, sent(position="4", version=opened_at)))
    stale = client.post(address, typed)
    assert stale.status_code == 412
    assert re.search("Changed by both There now Yours position 4 9 Next: save again", text_of(stale), re.IGNORECASE)
    again = next(form for form in forms_of(stale.content.decode(), address) if "position" in form.fields).fields
    assert again["position"] == "9"
    applied(client, client.post(address, typed | {"version": again["version"]}))
    assert TidePlan.objects.get(name="days").position == 9


def test_a_message_about_a_change_that_waits_leads_to_it(world):
    client = client_of(world.admin)
    act(client, drafted(client, {"rules/cluster": {"approval_required": True}}), "apply", reason="x", when="now")
    address = "/clusters/demo/queues/search-training/edit/"
    page = client.post(address, opened(client, address) | {"weight": "9", "reason": "x"}, follow=True).content.decode()
    link = re.search(r'<a href="(/clusters/demo/changes/\d+/)">Change \d+</a> waits for the approval', page)
    assert link, "a link"
    assert client.get(link[1]).status_code == 200


@pytest.mark.parametrize(
    ("form", "field", "typed", "said"),
    [
        (lambda data: QueueEditForm(data, cards=["NVIDIA-H200"]), "weight", "many",
         "Weight has to be a whole number from 1 to 65,535; “many” is not."),
        (lambda data: QueueEditForm(data, cards=["NVIDIA-H200"]), "weight", "",
         "Weight has to be a whole number from 1 to 65,535; it is empty."),
        (lambda data: QueueEditForm(data, cards=["NVIDIA-H200"]), "card:NVIDIA-H200", "-1",
         "H200 has to be a whole number of at least 0; “-1” is not."),
        (lambda data: QueueEditForm(data, cards=["NVIDIA-H200"]), "cores", "1.23456",
         "CPU cores has to be a number of at least 0 with at most 3 places after the point; “1.23456” is not."),
        (SettingsForm, "evict_share_of_training", "2",
         "Share of the running training cards that one session may evict has to be a number from 0 to 1; “2” is not."),
        (SealForm, "days", "x" * 90,
         f"Older than, in days has to be a whole number from 0 to 36,500; “{'x' * 40}…” is not."),
    ],
)  # fmt: skip
def test_a_wrong_number_is_answered_with_its_field_the_value_and_what_would_be_right(form, field, typed, said):
    assert list(form({field: typed}).errors[field]) == [said]
    with override("zh-hans"):
        chinese = form({field: typed}).errors[field][0]
    assert re.search(r"须为.*(整数|数)", chinese), chinese
    assert typed[:40] in chinese


def test_a_form_that_says_no_version_saves_nothing_and_comes_back_with_what_was_typed_and_the_version_of_now(world):
    client, address = client_of(world.admin), "/clusters/demo/queues/search-training/edit/"
    typed = opened(client, address) | {"weight": "7", "reason": "bigger jobs"}
    for body in (
        {name: value for name, value in typed.items() if name != "version" and not name.startswith("initial-")},
        typed | {"version": ""},
    ):
        refused = client.post(address, body)
        assert refused.status_code == 412
        said = text_of(refused)
        assert "does not say which version of this its author had looked at. Nothing was saved." in said
        assert "Field There now Yours Weight 1 7 " in said
        assert Queue.objects.get(name="search-training").weight == 1
    again = next(form for form in forms_of(refused.content.decode(), address) if "reason" in form.fields).fields
    assert (again["weight"], again["reason"]) == ("7", "bigger jobs")
    assert again["version"] == str(Queue.objects.get(name="search-training").version)
    assert client.post(address, again).status_code == 302
    assert Queue.objects.get(name="search-training").weight == 7


def test_no_form_that_asks_once_more_takes_a_missing_version_for_the_newest(world):
    client = client_of(world.admin)
    document = {"enabled": True, "layers": [NIGHT]}
    write_tide_plan(cluster=world.cluster, name="nights", document=document, actor="tests")
    for address in (
        "/clusters/demo/queues/search-training/close/",
        "/tenants/search/approval/",
        f"/users/{world.member.pk}/switch/",
        "/clusters/demo/policy/1/roll-back/",
    ):
        refused = client.post(address, {"reason": "x"})
        assert refused.status_code == 412, address
        assert "Nothing was saved." in text_of(refused), address
    member = Membership.objects.filter(tenant__slug="search").exclude(role="admin").first()
    told = client.post(f"/tenants/search/members/{member.pk}/role/", {f"m{member.pk}-role": "admin"}, follow=True)
    assert "does not say which version" in text_of(told)
    before = member.role
    member.refresh_from_db()
    assert member.role == before
