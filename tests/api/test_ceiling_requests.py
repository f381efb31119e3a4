"""A tenant admin asks for more quota than the tenant has: who may ask for what, and who alone can grant it."""

from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone

from tests.api.cast import A100, H200, ApiClient
from tests.api.test_quota_changes import act, drafted, patch
from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.models import PlatformRole, TenantRole
from tidesched_web.audit.models import AuditEntry
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.changes.services import apply_due
from tidesched_web.clusters.models import CardType
from tidesched_web.quota.models import CardQuota

CEILING = {"quota": {"inference": {"card_quota": {H200: 9}}}}
# One more card for a queue, its tenant's ceiling with it: the tenant of `world` has 8.
ASKS = {"tenant/acme": CEILING, "queue/acme-online": {"card_quota": {H200: 9}}}


@pytest.fixture
def world(world):
    """The cast of the API with room in the cluster, a second admin of acme and an admin of the rival."""
    CardType.objects.filter(name=H200).update(hardware=24)
    for name, tenant in (("deputy", "acme"), ("rival-admin", "rival")):
        world.users[name] = accounts.create_user(username=name, password=None, actor="tests")
        accounts.set_membership(
            user=world.users[name], tenant=world.tenants[tenant], role=TenantRole.ADMIN, actor="tests"
        )
    world.users["late-puppet"] = accounts.create_user(
        username="late-puppet", password=None, platform_role=PlatformRole.ADMIN, actor="tests",
        by=world.users["owner"].pk,
    )  # fmt: skip
    return world


def has(world, slug="acme"):
    """The H200 of the tenant and of its inference queue."""
    rows = CardQuota.objects.filter(card_type__name=H200, service_type="inference")
    tenant = rows.get(tenant=world.tenants[slug]).cards
    return tenant, rows.get(queue=world.queues[f"{slug}-online"]).cards


def asked(world, **more):
    """A request of the owner that waits."""
    change = drafted(world.client("owner"), ASKS, **more)
    answer = act(world.client("owner"), change, "apply")
    assert (answer.status_code, answer.json()["state"]) == (202, "waiting"), answer.content
    return change


def test_a_request_waits_for_a_platform_admin_and_is_applied_as_a_whole(world):
    owner, admin = world.client("owner"), world.client("admin")
    change = drafted(owner, ASKS)
    plan = owner.read(f"quota-changes/{change['id']}/plan/", impact="false")
    assert plan["asked"] == [
        {"object": "tenant/acme", "field": f"/quota/inference/card_quota/{H200}", "before": 8, "after": 9}
    ]
    assert (plan["errors"], plan["approval"]) == ([], {"due": True, "why": [{"kind": "ceiling", "name": "acme"}]})
    assert (change["asks_beyond"], "approve" in change["actions"]) == (True, False)
    # No decision before it is asked for.
    assert act(admin, change, "approve").status_code == 409
    sent = act(owner, change, "apply")
    assert (sent.status_code, sent.json()["state"], has(world)) == (202, "waiting", (8, 6))
    # Asked again, by anyone of the tenant: it waits.
    for caller in ("owner", "deputy"):
        assert act(world.client(caller), change, "apply").json()["state"] == "waiting"
    assert has(world) == (8, 6)
    agreed = act(admin, change, "approve", {"reason": "there is room"})
    assert (agreed.json()["state"], agreed.json()["approved_by"], has(world)) == ("applied", "admin", (9, 9))


@pytest.mark.parametrize(
    ("caller", "status"),
    [
        ("anonymous", 401), ("stranger", 404), ("rival", 404), ("rival-admin", 404), ("teammate", 403),
        ("auditor", 403), ("owner", 403), ("deputy", 403),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_no_other_can_decide(world, caller, status, verb):
    change = asked(world)
    answer = act(world.client(caller), change, verb, {"reason": "mine"})
    assert answer.status_code == status, answer.content
    assert (QuotaChange.objects.get(pk=change["id"]).state, has(world)) == ("waiting", (8, 6))


def test_no_token_of_a_tenant_decides_and_each_needs_its_scope(world):
    change = asked(world)
    tokens = {
        world.token("owner", "quota:write"): 403,
        world.token("deputy", "quota:write", tenant="acme"): 403,
        # A platform admin's token for one tenant is that of a tenant admin.
        world.token("admin", "quota:write", tenant="acme"): 403,
        world.token("admin", "quota:read"): 403,
        world.token("auditor", "quota:write"): 403,
    }
    for token, status in tokens.items():
        assert act(ApiClient(token=token), change, "approve").status_code == status
    assert has(world) == (8, 6)
    agreed = act(ApiClient(token=world.token("admin", "quota:write")), change, "approve")
    assert (agreed.status_code, has(world)) == (202, (9, 9))


def test_an_approver_whom_the_author_made_does_not_count(world):
    change = asked(world)
    refused = act(world.client("late-puppet"), change, "approve")
    assert (refused.status_code, refused.json()["code"], refused.json()["cause"]) == (
        403, "approver_not_independent", "made_by_author",
    )  # fmt: skip
    assert has(world) == (8, 6)


@pytest.mark.parametrize(
    ("edits", "status"),
    [
        # Another tenant's ceiling, alone and beside one's own; a tenant that is not there answers the same.
        ({"tenant/rival": CEILING}, 404),
        ({**ASKS, "tenant/rival": CEILING}, 404),
        ({**ASKS, "queue/rival-online": {"card_quota": {H200: 1}}}, 404),
        ({**ASKS, "tenant/nobody": CEILING}, 404),
        # What is the cluster's.
        ({**ASKS, "rules/cluster": {"overcommit_inference_percent": 200}}, 403),
        ({**ASKS, "card-type/new": {"resource": "x.y/z", "kind": "whole"}}, 403),
        # Less, no limit, a limit where there is none, and the tenant's rules cannot be asked for.
        ({"tenant/acme": {"quota": {"inference": {"card_quota": {H200: 7}}}}}, 403),
        ({"tenant/acme": {"quota": {"inference": {"card_quota": {H200: 9, A100: 1}}}}}, 403),
        ({"tenant/acme": {"quota": {"inference": {"card_quota": None}}}}, 403),
        ({"tenant/acme": {"quota": {"inference": None}}}, 403),
        ({"tenant/acme": {"quota": {"training": {"card_quota": {H200: 99}}}}}, 403),
        ({"tenant/acme": {"quota": {"inference": {"cpu_milli": 1000}}}}, 403),
        ({"tenant/acme": {**CEILING, "approval_required": True}}, 403),
        ({"tenant/acme": None}, 403),
        # What ranks a queue is not asked for on the way.
        ({**ASKS, "queue/acme-online": {"card_quota": {H200: 9}, "weight": 9}}, 403),
        ({**ASKS, "queue/acme-online": {"card_quota": {H200: 9}, "guarantee": {"cpu": "4"}}}, 403),
        ({**ASKS, "queue/acme-online": {"card_quota": {H200: 9}, "tenant": "rival"}}, 403),
    ],
)  # fmt: skip
def test_nothing_else_can_be_asked_for(world, edits, status):
    owner = world.client("owner")
    answer = owner.send("quota-changes/", {"cluster": "east", "edits": edits, "reason": "why not"})
    assert answer.status_code == status, answer.content
    # Neither by editing a request that is there.
    change = asked(world)
    answer = owner.change("PATCH", f"quota-changes/{change['id']}/", {"edits": edits}, If_Match="*")
    assert answer.status_code == status, answer.content
    assert QuotaChange.objects.get(pk=change["id"]).edits == ASKS
    assert has(world) == (8, 6)


@pytest.mark.parametrize("caller", ["anonymous", "teammate", "auditor", "stranger", "rival-admin"])
def test_no_other_can_ask(world, caller):
    answer = world.client(caller).send("quota-changes/", {"cluster": "east", "edits": ASKS, "reason": "more"})
    assert answer.status_code == {"anonymous": 401, "rival-admin": 404, "stranger": 400}.get(caller, 403)
    assert not QuotaChange.objects.exists()


def test_an_edit_after_the_approval_takes_it_back_and_the_old_version_decides_nothing(world):
    owner, admin = world.client("owner"), world.client("admin")
    change = asked(world, apply_at=(timezone.now() + dt.timedelta(hours=1)).isoformat())
    seen = f'"{QuotaChange.objects.get(pk=change["id"]).version}"'
    assert act(admin, change, "approve").json()["state"] == "approved"
    # Its hour is what was approved; another hour is not the author's to choose.
    for caller in ("owner", "deputy"):
        early = act(world.client(caller), change, "apply", {"apply_at": timezone.now().isoformat()})
        assert (early.status_code, has(world)) == (403, (8, 6))
    more = {**ASKS, "tenant/acme": {"quota": {"inference": {"card_quota": {H200: 10}}}}}
    edited = owner.change("PATCH", f"quota-changes/{change['id']}/", {"edits": more}, If_Match="*")
    assert (edited.json()["state"], edited.json()["approved_by"]) == ("draft", "")
    assert act(owner, change, "apply").json()["state"] == "waiting"
    stale = admin.send(f"quota-changes/{change['id']}/approve/", {}, If_Match=seen)
    assert (stale.status_code, [one["after"] for one in stale.json()["edited_since"]], has(world)) == (
        412, [10], (8, 6),
    )  # fmt: skip


def in_hours(hours):
    return (timezone.now() + dt.timedelta(hours=hours)).isoformat()


def test_another_platform_admin_applies_it_earlier_and_is_its_approver_then(world):
    boss = accounts.create_user(username="boss", password=None, platform_role=PlatformRole.ADMIN, actor="tests")
    change = asked(world, apply_at=in_hours(1))
    assert act(world.client("admin"), change, "approve").json()["state"] == "approved"
    # The refusal names the accounts that can, and what else there is.
    refused = act(world.client("owner"), change, "apply", {"apply_at": in_hours(0)})
    assert refused.status_code == 403
    assert "A platform admin may apply it at another hour" in refused.json()["detail"]
    assert "takes a new approval" in refused.json()["detail"]
    # At yet another hour it stays approved, by the one who chose that hour.
    moved = act(ApiClient(boss), change, "apply", {"apply_at": in_hours(2)}).json()
    assert (moved["state"], moved["approved_by"], moved["revision"], has(world)) == ("approved", "boss", 2, (8, 6))
    back = act(world.client("admin"), change, "apply", {"apply_at": in_hours(1)}).json()
    assert (back["state"], back["approved_by"]) == ("approved", "admin")
    done = act(ApiClient(boss), change, "apply", {"apply_at": in_hours(0)})
    assert (done.status_code, done.json()["state"], done.json()["approved_by"]) == (202, "applied", "boss")
    assert has(world) == (9, 9)
    entries = AuditEntry.objects.filter(object_type="quota_change", object_id=change["id"]).order_by("seq")
    assert [(entry.action.partition(".")[2], entry.actor) for entry in entries] == [
        ("submit", "owner"), ("approve", "admin"), ("approve", "boss"), ("schedule", "boss"),
        ("approve", "admin"), ("schedule", "admin"), ("approve", "boss"), ("apply", "boss"),
    ]  # fmt: skip


def test_an_hour_that_a_dependent_admin_chooses_needs_an_approval_that_counts(world):
    change = asked(world, apply_at=in_hours(1))
    assert act(world.client("admin"), change, "approve").json()["state"] == "approved"
    sent = act(world.client("late-puppet"), change, "apply", {"apply_at": in_hours(0)}).json()
    assert (sent["state"], sent["approved_by"], has(world)) == ("waiting", "", (8, 6))


def test_at_its_hour_it_is_written_only_while_its_approver_has_the_right(world):
    soon = (timezone.now() + dt.timedelta(hours=1)).isoformat()
    first, second = (asked(world, apply_at=soon) for _ in range(2))
    for change in (first, second):
        assert act(world.client("admin"), change, "approve").json()["state"] == "approved"
    QuotaChange.objects.update(apply_at=timezone.now())
    accounts.create_user(username="boss", password=None, platform_role=PlatformRole.ADMIN, actor="tests")
    type(world.users["admin"]).objects.filter(username="admin").update(platform_role="")
    failed = apply_due(first["id"])
    assert (failed.state, failed.failure["code"], has(world)) == (ChangeState.FAILED, "permission_denied", (8, 6))
    type(world.users["admin"]).objects.filter(username="admin").update(platform_role=PlatformRole.ADMIN)
    assert apply_due(second["id"]).state == ChangeState.APPLIED
    assert has(world) == (9, 9)


def test_what_the_platform_took_away_cannot_be_rolled_back_nor_a_grant_undone(world):
    owner, admin = world.client("owner"), world.client("admin")
    lowered = drafted(admin, {"tenant/acme": {"quota": {"inference": {"card_quota": {H200: 6}}}}})
    assert act(admin, lowered, "apply").json()["state"] == "applied"
    for body in ({"reason": "back"}, {"reason": "back", "apply": True}):
        refused = act(owner, lowered, "rollback", body)
        assert refused.status_code == 403, refused.content
    assert "rollback" not in owner.read(f"quota-changes/{lowered['id']}/")["actions"]
    assert has(world) == (6, 6)
    # What others drafted is not sent by the tenant's admin.
    raised = drafted(admin, {"tenant/acme": CEILING})
    assert act(owner, raised, "apply").status_code == 403
    assert has(world) == (6, 6)


def test_an_author_who_lost_the_platform_role_can_only_ask(world):
    boss = accounts.create_user(username="boss", password=None, platform_role=PlatformRole.ADMIN, actor="tests")
    accounts.set_membership(user=boss, tenant=world.tenants["acme"], role=TenantRole.ADMIN, actor="tests")
    client = ApiClient(boss)
    at_once, later = drafted(client, ASKS), drafted(client, ASKS)
    soon = (timezone.now() + dt.timedelta(hours=1)).isoformat()
    assert act(client, later, "apply", {"apply_at": soon}).json()["state"] == "approved"
    type(boss).objects.filter(pk=boss.pk).update(platform_role="")
    assert act(client, at_once, "apply").json()["state"] == "waiting"
    QuotaChange.objects.filter(pk=later["id"]).update(apply_at=timezone.now())
    assert (apply_due(later["id"]).state, has(world)) == (ChangeState.FAILED, (8, 6))


def test_patch_of_the_tenant_asks_and_does_not_set(world):
    owner = world.client("owner")
    url, body = f"tenants/{world.tenants['acme'].pk}/", {"quota": {"east": CEILING["quota"]}, "reason": "more users"}
    body["quota"]["east"]["inference"]["card_quota"][A100] = 2
    answer = patch(owner, url, body, If_Match="*")
    assert (answer.status_code, answer.json().get("state"), has(world)) == (202, "waiting", (8, 6)), answer.content
    for caller, status in (("teammate", 403), ("rival-admin", 404), ("auditor", 403)):
        assert patch(world.client(caller), url, body, If_Match="*").status_code == status


def test_it_can_be_sent_while_the_cluster_has_no_room_and_approved_once_there_is(world):
    CardType.objects.filter(name=H200).update(hardware=16)
    owner, admin = world.client("owner"), world.client("admin")
    edits = {"tenant/acme": {"quota": {"inference": {"card_quota": {H200: 10}}}}}
    change = drafted(owner, edits)
    plan = owner.read(f"quota-changes/{change['id']}/plan/", impact="false")
    error = plan["errors"][0]
    # What all tenants have together is not said to one of them, and no other tenant's name.
    assert (error["code"], error["requested"], error["limit"], error["sibling"]) == (
        "exceeds_hardware", None, None, None,
    )  # fmt: skip
    assert "18" not in error["detail"]
    assert "16" not in error["detail"]
    assert act(owner, change, "apply").json()["state"] == "waiting"
    refused = act(admin, change, "approve")
    assert (refused.status_code, refused.json()["errors"][0]["requested"]) == (422, 18)
    room = drafted(admin, {"tenant/rival": {"quota": {"inference": {"card_quota": {H200: 6}}}}})
    assert act(admin, room, "apply").json()["state"] == "applied"
    assert act(admin, change, "approve").json()["state"] == "applied"
    assert has(world) == (10, 6)
