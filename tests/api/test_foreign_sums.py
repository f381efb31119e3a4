"""What refusals and plans say to a tenant admin: no name of another tenant, and no sum of all tenants."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from django.utils import timezone

from tests import quota_writes
from tests.api.cast import A100, H200
from tests.api.test_quota_changes import act, drafted
from tests.api.test_tide_plans import ALWAYS
from tests.quota_writes import write_tide_plan
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.services import apply_due
from tidesched_web.clusters.models import CardType
from tidesched_web.quota.models import CardQuota, Queue

# The rival's ceiling of 7 and the 1,015 that acme asks for.
ASKED, SUM = 1015, 1022
TOO_MUCH = {"queue/acme-online": {"card_quota": {H200: ASKED}}}


@pytest.fixture
def place(world):
    return f"clusters/{world.clusters['east'].pk}/tree/"


@pytest.fixture
def unlimited(world):
    """Acme has no ceiling of its own: its claims are added to the rival's, beneath the hardware."""
    CardQuota.objects.filter(tenant=world.tenants["acme"]).delete()
    CardQuota.objects.filter(tenant=world.tenants["rival"], card_type__name=H200).update(cards=7)
    return world


def says_sum(answer):
    """Whether a page or body names the sum, with or without a sign between its thousands."""
    return re.search(r"(?<!\w)1[, \u00a0]?022(?!\w)", answer.content.decode()) is not None


def new_queue(**more):
    return {"queue/acme-new": {"service_type": "inference", "tenant": "acme", "card_quota": {}, **more}}


def in_a_file(edits):
    return {"tree": {"format": 1, "queues": {"acme-new": edits["queue/acme-new"]}}, "keep": True, "reason": "x"}


def answers_to(owner, edits):
    """All that a tenant admin is answered about these edits, before anything of them is written."""
    body = {"cluster": "east", "edits": edits, "reason": "x"}
    change = drafted(owner, edits)
    address = f"/clusters/east/changes/{change['id']}/"
    return [
        owner.send("quota-changes/?dry_run=true", body),
        owner.get(f"/api/v1/quota-changes/{change['id']}/"),
        owner.get(f"/api/v1/quota-changes/{change['id']}/plan/", {"impact": "false"}),
        act(owner, change, "apply"),
        owner.get(address),
    ]


@pytest.mark.parametrize(
    ("near", "foreign"),
    [
        (new_queue(project="ival-chat"), "rival-chat"),
        (new_queue(project="ar-chat"), "far-chat"),
        (new_queue(service_type="training", business_line="ival-research"), "rival-research"),
        (new_queue(service_type="training", business_line="ar-research"), "far-research"),
    ],
)
def test_a_wrong_name_is_answered_with_names_of_the_same_tenant_alone(world, place, near, foreign):
    owner = world.client("owner")
    answers = [*answers_to(owner, near), owner.send(f"{place}?dry_run=true", in_a_file(near))]
    assert [b"There is no" in answer.content for answer in answers] == [True] * 6
    assert [foreign.encode() in answer.content for answer in answers] == [False] * 6


def test_a_near_name_of_ones_own_is_offered(world):
    for edits, name in (
        (new_queue(project="acme-chatt"), "acme/acme-chat?"),
        (new_queue(service_type="training", business_line="acme-reserch"), "acme/acme-research?"),
    ):
        answers = answers_to(world.client("owner"), edits)
        said = [f"Did you mean {name}" in answer.content.decode() for answer in answers]
        assert said == [True] * 5
    # Of another tenant's it would be refused, for a platform admin as well.
    body = {"cluster": "east", "edits": new_queue(project="rival-chat")}
    assert b"Did you mean rival" not in world.client("admin").send("quota-changes/?dry_run=true", body).content


def test_a_queue_that_is_gone_is_not_answered_with_a_foreign_one(world):
    line = {"service_type": "training", "tenant": "acme", "business_line": "acme-research"}
    owner, admin = world.client("owner"), world.client("admin")
    made = drafted(owner, {"queue/rival-trains": line})
    assert act(owner, made, "apply").json()["state"] == "applied"
    change = drafted(owner, {"grant/acme/rival-trains": {}})
    Queue.objects.filter(name="rival-trains").delete()
    plan = f"/api/v1/quota-changes/{change['id']}/plan/"
    said = owner.get(plan, {"impact": "false"}).content.decode()
    assert "There is no queue rival-trains." in said
    assert "rival-train?" not in said
    assert "Did you mean rival-train?" in admin.get(plan, {"impact": "false"}).content.decode()


def test_a_tide_plan_that_names_ones_queue_is_not_named(world):
    layers = [ALWAYS | {"quota": {"acme-online": {H200: {"set": 4}}}}]
    write_tide_plan(cluster=world.clusters["east"], name="nights-of-all", document={"layers": layers}, actor="tests")
    body = {"cluster": "east", "edits": {"queue/acme-online": None}, "reason": "x"}
    said = [world.client(who).send("quota-changes/?dry_run=true", body) for who in ("owner", "admin")]
    for answer in said:
        assert "in_use" in [error["code"] for error in answer.json()["plan"]["errors"]], answer.content
    assert ["nights-of-all" in answer.content.decode() for answer in said] == [False, True]


def test_the_sum_of_all_tenants_is_said_to_no_one_of_them(unlimited, place):
    owner, admin = unlimited.client("owner"), unlimited.client("admin")
    queue = Queue.objects.get(name="acme-online")
    tree = owner.read(place)
    tree["queues"]["acme-online"]["card_quota"] = {H200: ASKED}
    answers = [
        *answers_to(owner, TOO_MUCH),
        owner.send(f"{place}?dry_run=true", {"tree": tree, "reason": "x"}),
        owner.send(place, {"tree": tree, "reason": "x"}, If_Match="*"),
        owner.change("PATCH", f"queues/{queue.pk}/", {"card_quota": {H200: ASKED}, "reason": "x"}, If_Match="*"),
    ]
    for answer in answers:
        assert not says_sum(answer), answer.content
    assert [b"no more H200 to give out" in answer.content for answer in answers] == [True] * 8
    for error in (*answers[0].json()["plan"]["errors"], *answers[3].json()["errors"]):
        assert (error["code"], error["requested"], error["limit"]) == ("exceeds_hardware", None, None)
    body = {"cluster": "east", "edits": TOO_MUCH}
    (error,) = admin.send("quota-changes/?dry_run=true", body).json()["plan"]["errors"]
    assert (error["requested"], error["limit"]) == (SUM, 16)


@pytest.mark.parametrize("author", ["owner", "admin"])
def test_what_is_kept_with_a_change_says_no_sum_of_all_tenants_either(unlimited, author):
    """Its plan when it was cancelled, and what failed at its hour: a tenant admin reads both."""
    owner, client = unlimited.client("owner"), unlimited.client(author)
    over = drafted(client, TOO_MUCH)
    assert act(client, over, "cancel").json()["state"] == "cancelled"
    CardType.objects.filter(name=H200).update(hardware=5000)
    late = drafted(client, TOO_MUCH)
    assert act(client, late, "apply", {"apply_at": "2999-01-01T00:00:00Z"}).json()["state"] == "approved"
    CardType.objects.filter(name=H200).update(hardware=16)
    QuotaChange.objects.filter(pk=late["id"]).update(apply_at=timezone.now() - dt.timedelta(seconds=1))
    assert apply_due(late["id"]).state == "failed"
    for change in (over, late):
        rest = f"/api/v1/quota-changes/{change['id']}/"
        for path in (rest, f"{rest}plan/?impact=false", f"/clusters/east/changes/{change['id']}/"):
            assert not says_sum(owner.get(path))
    assert "no more H200 to give out" in owner.read(f"quota-changes/{late['id']}/")["error"]


@pytest.mark.parametrize("ceiling", [None, 10])
def test_an_hour_of_a_tide_plan_without_room_is_refused_without_the_sum_and_the_plan(unlimited, ceiling):
    """Acme's queue has 9 of them then. With a ceiling of its own the sum is acme's, and is said."""
    layers = [ALWAYS | {"quota": {"acme-online": {H200: {"set": 9}}}}]
    document = {"enabled": True, "layers": layers}
    write_tide_plan(cluster=unlimited.clusters["east"], name="nights-of-all", document=document, actor="tests")
    if ceiling:
        CardType.objects.filter(name=H200).update(hardware=24)
        quota_writes.set_card_quota(
            cluster=unlimited.clusters["east"], owner=unlimited.tenants["acme"], service_type="inference",
            cards={H200: ceiling, A100: 2}, actor="tests",
        )  # fmt: skip
    body = {"cluster": "east", "edits": new_queue(project="acme-chat", card_quota={H200: 2}), "reason": "x"}
    said = {who: unlimited.client(who).send("quota-changes/?dry_run=true", body) for who in ("owner", "admin")}
    (error,) = said["owner"].json()["plan"]["errors"]
    (whole,) = said["admin"].json()["plan"]["errors"]
    figures = (11, 10) if ceiling else (18, 16)
    assert error["code"] == "exceeds_at_moment"
    assert (error["requested"], error["limit"]) == (figures if ceiling else (None, None))
    assert (whole["requested"], whole["limit"]) == figures
    assert "nights-of-all" not in said["owner"].content.decode()
    assert "Open then: nights-of-all" in whole["detail"]


def test_the_form_of_a_queue_says_what_is_left_of_ones_own_ceiling_alone(unlimited):
    quota_writes.ensure_project(tenant=unlimited.tenants["acme"], slug="acme-more", actor="tests")
    shown = [unlimited.client(who).get("/clusters/east/new/queue/").content.decode() for who in ("owner", "admin")]
    options = [[line for line in page.split("<option") if "acme-more" in line] for page in shown]
    assert ["left" in "".join(found) for found in options] == [False, True], options
