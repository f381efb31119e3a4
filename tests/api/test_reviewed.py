"""A decision is bound to what was looked at: If-Match on every act, and on the writes of members, grants and cards."""

from __future__ import annotations

import pytest
from django.utils import timezone

from tests.api.addresses import NIGHT
from tests.api.cast import A100, H200, ApiClient
from tests.api.test_quota_changes import EDITS, act, drafted
from tests.quota_writes import write_tide_plan
from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.independence_selectors import standings_of
from tidesched_web.accounts.models import Membership, PlatformRole, Project, User
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.services import apply_due
from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.clusters.selectors import newest_policy
from tidesched_web.quota.models import CardQuota, NamespaceGrant, Queue

OTHER = {"queue/acme-online": {"card_quota": {H200: 2}}}


def quota() -> int:
    return CardQuota.objects.get(queue__name="acme-online", card_type__name=H200).cards


def waiting(world, who="owner"):
    Cluster.objects.update(approval_required=True)
    change = drafted(world.client(who))
    asked = act(world.client(who), change, "apply")
    assert (asked.status_code, asked.json()["state"]) == (202, "waiting"), asked.content
    return asked.json()


@pytest.mark.parametrize("verb", ["approve", "reject", "cancel", "apply", "retry", "rollback"])
def test_every_act_needs_the_version_that_was_looked_at(world, verb):
    change = drafted(world.client("owner"))
    admin, url = world.client("admin"), f"quota-changes/{change['id']}/{verb}/"
    missing, stale = admin.send(url, {"reason": "x"}), admin.send(url, {"reason": "x"}, If_Match='"77"')
    assert (missing.status_code, missing.json()["code"]) == (428, "precondition_required")
    assert (stale.status_code, stale.json()["code"], stale.json()["etag"]) == (412, "stale", '"1"')
    assert QuotaChange.objects.get(pk=change["id"]).state == "draft"


def test_edits_swapped_after_the_review_are_not_approved(world):
    change, owner, admin = waiting(world), world.client("owner"), world.client("admin")
    reviewed = admin.get(f"/api/v1/quota-changes/{change['id']}/").headers["ETag"]
    swapped = owner.change("PATCH", f"quota-changes/{change['id']}/", {"edits": OTHER}, If_Match=reviewed)
    assert (swapped.status_code, swapped.json()["revision"]) == (200, 2), swapped.content
    assert act(owner, change, "apply").json()["state"] == "waiting"
    for verb in ("approve", "reject"):
        refused = admin.send(f"quota-changes/{change['id']}/{verb}/", {"reason": "x"}, If_Match=reviewed)
        assert (refused.status_code, refused.json()["code"]) == (412, "stale")
        assert refused.json()["edited_since"] == [
            {"object": "queue/acme-online", "field": f"/card_quota/{H200}", "before": 7, "after": 2}
        ]
    assert quota() == 6
    agreed = admin.send(f"quota-changes/{change['id']}/approve/", If_Match=refused.json()["etag"])
    assert (agreed.status_code, quota()) == (202, 2)


def test_the_hour_and_the_reason_are_a_part_of_what_is_reviewed(world):
    change, owner, admin = waiting(world), world.client("owner"), world.client("admin")
    url = f"quota-changes/{change['id']}/"
    soon = "2031-05-04T02:00:00Z"
    assert owner.change("PATCH", url, {"apply_at": soon}, If_Match="*").json()["revision"] == 2
    assert owner.change("PATCH", url, {"apply_at": soon}, If_Match="*").json()["revision"] == 2, "nothing differs"
    assert act(owner, change, "apply").json()["revision"] == 2
    reviewed = admin.get(f"/api/v1/{url}").headers["ETag"]
    # Sent back and sent again for another hour, by the act alone: a third revision.
    assert owner.change("PATCH", url, {"reason": "more users"}, If_Match="*").json()["state"] == "draft"
    again = act(owner, change, "apply", {"apply_at": "2031-05-03T02:00:00Z", "reason": "at once, please"})
    assert (again.json()["state"], again.json()["revision"]) == ("waiting", 3)
    refused = admin.send(f"{url}approve/", {}, If_Match=reviewed)
    assert (refused.status_code, [found["field"] for found in refused.json()["edited_since"]]) == (
        412, ["/reason", "/apply_at"],
    )  # fmt: skip
    assert quota() == 6


def test_what_waits_is_not_sent_silently_with_another_hour_or_reason(world):
    change, owner = waiting(world), world.client("owner")
    before = owner.read(f"quota-changes/{change['id']}/")
    for same in ({}, {"reason": before["reason"]}, {"apply_at": before["apply_at"]}):
        assert act(owner, change, "apply", same).json() == before, same
    for other in ({"apply_at": "2031-05-03T02:00:00Z"}, {"reason": "for the demo"}):
        refused = act(owner, change, "apply", other)
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict"), other
    assert owner.read(f"quota-changes/{change['id']}/") == before


def test_an_approval_holds_for_the_hour_and_the_reason_that_were_approved(world):
    Cluster.objects.update(approval_required=True)
    owner, admin, later = world.client("owner"), world.client("admin"), "2999-11-29T02:00:00Z"

    def approved(**hour):
        change = drafted(owner)
        if hour:
            act(owner, change, "apply", hour)
        assert act(admin, change, "approve").json()["state"] == "approved"
        return change

    for other in ({"apply_at": "2020-01-01T00:00:00Z"}, {"reason": "for the demo"}):
        moved = act(owner, approved(apply_at=later), "apply", other).json()
        assert (moved["state"], moved["approved_by"], quota()) == ("waiting", "", 6), other
    again = act(owner, approved(apply_at=later), "apply", {"apply_at": later, "reason": "more users"}).json()
    assert (again["state"], again["approved_by"]) == ("approved", "admin")
    back = approved(apply_at=later)
    edited = owner.change("PATCH", f"quota-changes/{back['id']}/", {"reason": "for the demo"}, If_Match="*").json()
    assert (edited["state"], edited["approved_by"]) == ("draft", "")
    assert act(owner, approved(), "apply").json()["state"] == "applied", "it was approved without an hour"


def test_an_approval_does_not_outlive_another_hour_that_needed_none(world):
    """Demanded, approved, demanded no more: moved now, it is no approved change once approval is demanded again."""
    Cluster.objects.update(approval_required=True)
    owner, later = world.client("owner"), "2999-11-29T02:00:00Z"
    for other in ({"apply_at": "2998-11-29T02:00:00Z"}, {"reason": "for the demo"}):
        Cluster.objects.update(approval_required=True)
        change = drafted(owner)
        act(owner, change, "apply", {"apply_at": later})
        assert act(world.client("admin"), change, "approve").json()["approved_by"] == "admin"
        Cluster.objects.update(approval_required=False)
        moved = act(owner, change, "apply", other).json()
        assert (moved["state"], moved["approved_by"], moved["approved_at"]) == ("approved", "", None), other
        Cluster.objects.update(approval_required=True)
        QuotaChange.objects.filter(pk=change["id"]).update(apply_at=timezone.now())
        assert (apply_due(change["id"]).state, quota()) == ("waiting", 6), other


def test_sent_again_with_the_tag_of_the_review_an_act_is_harmless(world):
    owner, change = world.client("owner"), drafted(world.client("owner"))
    sent = [owner.send(f"quota-changes/{change['id']}/apply/", If_Match='"1"') for _ in range(2)]
    assert [(answer.status_code, answer.json()["state"]) for answer in sent] == [(202, "applied")] * 2
    assert QuotaChange.objects.get(pk=change["id"]).version == 2


def test_a_dry_run_of_an_old_version_is_refused(world):
    owner, change = world.client("owner"), drafted(world.client("owner"))
    owner.change("PATCH", f"quota-changes/{change['id']}/", {"edits": OTHER}, If_Match='"1"')
    path = f"quota-changes/{change['id']}/apply/?dry_run=true"
    assert owner.send(path, If_Match='"1"').status_code == 412
    assert owner.send(path, If_Match='"2"').status_code == 200
    queue = Queue.objects.get(pk=world.queues["acme-online"].pk)
    dry = f"queues/{queue.pk}/?dry_run=true"
    admin = world.client("admin")
    assert admin.change("PATCH", dry, {"weight": 2}, If_Match='"99"').status_code == 412
    assert admin.change("PATCH", dry, {"weight": 2}, If_Match=f'"{queue.version}"').status_code == 200
    assert admin.change("DELETE", dry, {}, If_Match='"99"').status_code == 412


def test_a_dry_run_of_an_old_version_is_refused_of_plans_projects_and_the_policy(world):
    admin, east = world.client("admin"), world.clusters["east"]
    project = Project.objects.create(tenant=world.tenants["acme"], slug="lab", name="Lab")
    plan = write_tide_plan(cluster=east, name="nights", document={"layers": [NIGHT]}, actor="tests")
    limits = {"inference": {"card_quota": {A100: 1}}}
    body = {"quota": {"east": limits}, "reason": "x"}
    assert admin.change("PATCH", f"projects/{project.pk}/", body, If_Match="*").status_code == 200
    project.refresh_from_db()
    policy = {"text": 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n', "reason": "x"}
    for method, path, body, version in (
        ("PATCH", f"tide-plans/{plan.pk}/", {"position": 3, "reason": "x"}, plan.version),
        ("DELETE", f"tide-plans/{plan.pk}/", {"reason": "x"}, plan.version),
        ("DELETE", f"projects/{project.pk}/", {"reason": "x"}, project.version),
        ("PUT", f"clusters/{east.pk}/policy/", policy, newest_policy(east).number),
    ):
        stale = admin.change(method, f"{path}?dry_run=true", body, If_Match='"99"')
        assert (stale.status_code, stale.json()["code"]) == (412, "stale"), path
        done = admin.change(method, f"{path}?dry_run=true", body, If_Match=f'"{version}"')
        assert (done.status_code, done.json()["dry_run"]) == (200, True), done.content


def test_a_stale_tag_is_refused_for_members_grants_and_card_types(world):
    admin = world.client("admin")
    member = Membership.objects.get(user=world.users["teammate"])
    url = f"members/{member.pk}/"
    assert admin.get(f"/api/v1/{url}").headers["ETag"] == '"1"'
    assert admin.change("PATCH", url, {"role": "admin"}, If_Match='"9"').status_code == 412
    changed = admin.change("PATCH", url, {"role": "admin"}, If_Match='"1"')
    assert (changed.status_code, changed.headers["ETag"]) == (200, '"2"')
    assert admin.change("DELETE", url, {"reason": "x"}, If_Match='"1"').status_code == 412
    assert admin.change("DELETE", url, {"reason": "x"}, If_Match='"2"').status_code == 204
    grant = f"grants/{world.grant.pk}/"
    assert admin.get(f"/api/v1/{grant}").headers["ETag"] == '"1"'
    assert admin.change("DELETE", grant, {"reason": "x"}, If_Match='"9"').status_code == 412
    assert NamespaceGrant.objects.filter(pk=world.grant.pk).exists()
    assert admin.change("DELETE", grant, {"reason": "x"}, If_Match='"1"').status_code == 204
    card = CardType.objects.get(cluster=world.clusters["east"], name=A100)
    url, body = f"card-types/{card.pk}/", {"aliases": ["a100"], "reason": "short"}
    assert admin.change("PATCH", url, body, If_Match='"9"').status_code == 412
    done = admin.change("PATCH", url, body, If_Match='"1"')
    assert (done.status_code, done.headers["ETag"]) == (200, '"2"'), done.content
    assert admin.change("PATCH", url, {"aliases": [], "reason": "x"}, If_Match='"1"').status_code == 412


# -- who is a second person --------------------------------------------------------------------------------------------


def invited(world, username, by, *, role="admin"):
    """An account that one of the cast (or an account made before) invited into acme; its link was used."""
    maker = world.users[by]
    _user, _link, secret = accounts.invite_user(
        username=username, memberships={world.tenants["acme"]: role}, of_tenant=world.tenants["acme"],
        actor=maker.username, by=maker.pk,
    )  # fmt: skip
    world.users[username] = accounts.use_link(secret=secret, new_password="a long enough password 17")


def refusal(world, who, change):
    answer = world.client(who).send(f"quota-changes/{change['id']}/approve/", If_Match="*")
    return answer.status_code, answer.json().get("code"), answer.json().get("cause")


@pytest.mark.parametrize("path", ["owner", "chain"])
def test_who_was_made_by_the_author_is_no_second_person(world, path):
    invited(world, "puppet", "owner")
    if path == "chain":
        invited(world, "puppets-puppet", "puppet")
    who = {"owner": "puppet", "chain": "puppets-puppet"}[path]
    change = waiting(world)
    assert refusal(world, who, change) == (403, "approver_not_independent", "made_by_author")
    shown = world.client(who).read(f"quota-changes/{change['id']}/")
    assert "approve" not in shown["actions"]
    assert "reject" in shown["actions"]
    assert quota() == 6


@pytest.mark.parametrize(
    ("author", "approver", "cause"),
    [
        ("puppet", "owner", "author_made_by_approver"),
        ("puppets-puppet", "owner", "author_made_by_approver"),
        ("puppets-puppet", "puppet", "author_made_by_approver"),
        ("puppet", "twin", "same_maker"),
        ("puppets-puppet", "twin", "same_maker"),
    ],
)
def test_who_made_the_author_or_was_made_with_the_author_is_no_second_person(world, author, approver, cause):
    for name, by in (("puppet", "owner"), ("twin", "owner"), ("puppets-puppet", "puppet")):
        invited(world, name, by)
    change = waiting(world, author)
    assert refusal(world, approver, change) == (403, "approver_not_independent", cause)
    assert "approve" not in world.client(approver).read(f"quota-changes/{change['id']}/")["actions"]
    assert "Nothing waits for you" in world.client(approver).get("/waiting/").content.decode()
    assert quota() == 6
    assert world.client("admin").send(f"quota-changes/{change['id']}/approve/", If_Match="*").status_code == 202


def test_a_chain_of_accounts_between_author_and_approver_may_be_as_long_as_it_likes(world, django_assert_num_queries):
    last = world.users["owner"]
    for number in range(150):
        last = User.objects.create(username=f"link-{number}", password="!", invited_by=last)
    world.users["puppet"] = last
    accounts.set_membership(user=last, tenant=world.tenants["acme"], role="admin", actor="x", by=last.invited_by_id)
    assert refusal(world, "puppet", waiting(world)) == (403, "approver_not_independent", "made_by_author")
    with django_assert_num_queries(3):
        assert len(standings_of([last.pk])[last.pk].behind) == 150


def test_who_gave_the_author_the_role_or_a_link_is_no_second_person(world):
    acme, owner = world.tenants["acme"], world.users["owner"]
    accounts.set_membership(user=world.users["teammate"], tenant=acme, role="admin", actor="owner", by=owner.pk)
    assert refusal(world, "owner", waiting(world, "teammate")) == (
        403, "approver_not_independent", "author_made_by_approver",
    )  # fmt: skip


def test_a_platform_admin_who_made_the_author_decides_only_where_no_independent_account_can(world):
    invited(world, "hired", "admin")
    change = waiting(world, "hired")
    answer = world.client("admin").send(f"quota-changes/{change['id']}/approve/", If_Match="*")
    assert (answer.status_code, answer.json()["cause"]) == (403, "author_made_by_approver")
    assert "These can decide: owner." in answer.json()["detail"]
    # With a token for one tenant the admin is a tenant admin.
    token = ApiClient(token=world.token("admin", "quota:write", tenant="acme"))
    accounts.set_membership(user=world.users["owner"], tenant=world.tenants["acme"], role="member", actor="operator")
    assert act(token, change, "approve").status_code == 403
    assert act(world.client("admin"), change, "approve").json()["state"] == "applied"


def test_a_platform_admin_whose_author_is_one_too_never_decides_alone(world):
    world.users["second"] = accounts.create_user(
        username="second", password=None, platform_role=PlatformRole.ADMIN, actor="admin", by=world.users["admin"].pk
    )
    accounts.set_membership(user=world.users["owner"], tenant=world.tenants["acme"], role="member", actor="operator")
    assert refusal(world, "admin", waiting(world, "second")) == (
        403, "approver_not_independent", "author_made_by_approver",
    )  # fmt: skip


def test_what_no_one_demands_two_persons_for_is_granted_by_the_admin_who_made_the_author(world):
    invited(world, "hired", "admin")
    CardType.objects.filter(name=H200).update(hardware=24)
    change = drafted(world.client("hired"), {"tenant/acme": {"quota": {"inference": {"card_quota": {H200: 9}}}}})
    assert act(world.client("hired"), change, "apply").json()["state"] == "waiting"
    assert act(world.client("admin"), change, "approve").json()["state"] == "applied"


def test_a_role_given_by_the_author_to_an_older_account_does_not_count(world):
    accounts.set_membership(
        user=world.users["teammate"], tenant=world.tenants["acme"], role="admin", actor="owner",
        by=world.users["owner"].pk,
    )  # fmt: skip
    assert refusal(world, "teammate", waiting(world)) == (403, "approver_not_independent", "made_by_author")


def test_a_password_set_through_the_authors_link_does_not_count(world):
    _link, secret = accounts.make_link(
        user=world.users["admin"], kind="reset", actor="owner", by=world.users["owner"].pk
    )
    world.users["admin"] = accounts.use_link(secret=secret, new_password="a long enough password 17")
    assert refusal(world, "admin", waiting(world)) == (403, "approver_not_independent", "made_by_author")


def test_who_edits_a_change_of_no_account_is_its_author(world):
    change = waiting(world)
    QuotaChange.objects.update(author=None, created_by="operator")
    admin, url = world.client("admin"), f"quota-changes/{change['id']}/"
    assert admin.change("PATCH", url, {"edits": OTHER}, If_Match="*").status_code == 200
    assert act(admin, change, "apply").json()["state"] == "waiting"
    assert act(admin, change, "approve").status_code == 403
    assert quota() == 6


def test_a_role_that_is_younger_than_the_change_does_not_count(world):
    change = waiting(world)
    accounts.set_membership(user=world.users["teammate"], tenant=world.tenants["acme"], role="admin", actor="operator")
    world.users["late"] = accounts.create_user(
        username="late", password=None, platform_role=PlatformRole.ADMIN, actor="operator"
    )
    for who in ("teammate", "late"):
        assert refusal(world, who, change) == (403, "approver_not_independent", "younger_than_change")
    assert world.client("admin").send(f"quota-changes/{change['id']}/approve/", If_Match="*").status_code == 202


def test_a_tenant_admin_of_older_standing_is_a_second_person(world):
    accounts.set_membership(user=world.users["teammate"], tenant=world.tenants["acme"], role="admin", actor="operator")
    change = waiting(world)
    assert "approve" in world.client("teammate").read(f"quota-changes/{change['id']}/")["actions"]
    assert world.client("teammate").send(f"quota-changes/{change['id']}/approve/", If_Match="*").status_code == 202


def test_actions_say_what_can_be_done_now(world):
    owner, change = world.client("owner"), drafted(world.client("owner"))
    assert change["actions"] == ["apply", "edit", "reject", "cancel"]
    assert world.client("admin").read(f"quota-changes/{change['id']}/")["actions"] == ["apply", "reject", "cancel"]
    assert world.client("auditor").read(f"quota-changes/{change['id']}/")["actions"] == []
    assert act(owner, change, "apply").json()["actions"] == ["rollback"]
    assert EDITS


def test_what_changes_nothing_of_a_card_type_is_bound_to_its_version_too(world):
    admin, card = world.client("admin"), CardType.objects.get(cluster__slug="east", name=A100)
    for tag, status in (('"77"', 412), ("no-tag", 400), ('"1"', 200)):
        answer = admin.change("PATCH", f"card-types/{card.pk}/?dry_run=true", {"reason": "x"}, If_Match=tag)
        assert answer.status_code == status, (tag, answer.content)


def test_a_version_that_was_never_there_is_answered_with_the_present_one(world):
    body = {"cluster": "east", "edits": {"queue/acme-online": {"weight": 3}}, "reason": "more"}
    change = world.client("admin").send("quota-changes/", body).json()
    answer = world.client("admin").send(f"quota-changes/{change['id']}/apply/", {}, If_Match='"99"')
    assert (answer.status_code, answer.json()["etag"]) == (412, f'"{change["version"]}"')
    assert answer.json()["detail"].startswith(f"The version of change {change['id']} is {change['version']}, and")
