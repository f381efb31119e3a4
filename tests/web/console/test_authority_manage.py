"""The management pages × everybody: who opens them, and whose POST does something. A page without a row fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from tests.web.console import world as story
from tests.web.console.test_pages import client_of
from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.models import Membership, Tenant, TenantRole, User
from tidesched_web.clusters.models import CardType
from tidesched_web.console import manage_urls
from tidesched_web.quota.models import NamespaceGrant, Queue

pytestmark = pytest.mark.django_db

CAST = ("anonymous", "admin", "auditor", "lead", "member", "stranger", "newcomer")
SIGN_IN = {"anonymous": 302}
EVERYBODY = SIGN_IN | dict.fromkeys(CAST[1:], 200)
# What belongs to tenant Search: its members see it, its admin (lead) and the platform's change it.
SEEN_IN_SEARCH = EVERYBODY | {"stranger": 404, "newcomer": 404}
OF_SEARCH = SEEN_IN_SEARCH | {"auditor": 403, "member": 403}
OF_PLATFORM = EVERYBODY | dict.fromkeys(("auditor", "lead", "member", "stranger", "newcomer"), 403)
SEEN_BY_ALL_SEEING = EVERYBODY | dict.fromkeys(("lead", "member", "stranger", "newcomer"), 404)
OF_ADMINS = SEEN_BY_ALL_SEEING | {"auditor": 403}
SEARCH_BY_PLATFORM = OF_SEARCH | {"lead": 403}
# Every member of a tenant with a queue sees the cluster; what is of the cluster itself the platform's admins change.
SEEN_IN_CLUSTER = EVERYBODY | {"newcomer": 404}
OF_CLUSTER = SEEN_IN_CLUSTER | dict.fromkeys(("auditor", "lead", "member", "stranger"), 403)


def done(who: dict[str, int]) -> dict[str, int]:
    """The same people, and their POST leads on instead of showing the form again."""
    return {name: 302 if status == 200 else status for name, status in who.items()}


@dataclass(frozen=True)
class Row:
    """One page: its address, who opens it, and what a good POST of each comes to (none: it takes no POST)."""

    path: str
    get: dict[str, int]
    post: dict[str, int] | None = None
    body: dict[str, str] | None = None


REASON = {"reason": "drill"}
POLICY = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n'
QUEUE = {"weight": "1", "priority": "20000", "reclaimable": "on", "card:NVIDIA-H200": "23", **REASON}
ROWS = {
    "tenants": Row("tenants/", EVERYBODY),
    "tenant_new": Row("new/tenant/", OF_PLATFORM, done(OF_PLATFORM), {"slug": "new", "name": "New"}),
    "tenant": Row("tenants/search/", SEEN_IN_SEARCH),
    "tenant_edit": Row("tenants/search/edit/", OF_SEARCH, done(OF_SEARCH), {"name": "Search engine"}),
    # It has queues, so even an admin's POST only says so.
    "tenant_delete": Row("tenants/search/delete/", SEARCH_BY_PLATFORM, SEARCH_BY_PLATFORM | {"admin": 400}, REASON),
    "members": Row("tenants/search/members/", SEEN_IN_SEARCH, done(OF_SEARCH), {"user": "newcomer", "role": "member"}),
    "member_invite": Row("tenants/search/invite/", OF_SEARCH, OF_SEARCH, {"username": "new", "role": "member"}),
    "member_link": Row("tenants/search/members/{invited}/link/", SIGN_IN | dict.fromkeys(CAST, 405), OF_SEARCH),
    "member_role": Row(
        "tenants/search/members/{member}/role/",
        SIGN_IN | dict.fromkeys(CAST, 405),
        done(OF_SEARCH),
        {"m{member}-role": "admin"},
    ),
    "member_remove": Row("tenants/search/members/{member}/remove/", OF_SEARCH, done(OF_SEARCH), REASON),
    "projects": Row("projects/", EVERYBODY),
    "project_new": Row(
        "new/project/",
        EVERYBODY,
        done(EVERYBODY) | dict.fromkeys(("auditor", "member", "stranger", "newcomer"), 400),
        {"tenant": "search", "slug": "new"},
    ),
    "project": Row("tenants/search/projects/search-rank-inference/", SEEN_IN_SEARCH),
    "project_edit": Row(
        "tenants/search/projects/search-rank-inference/edit/", OF_SEARCH, done(OF_SEARCH), {"name": "Rank"}
    ),
    "project_delete": Row(
        "tenants/search/projects/search-rank-inference/delete/",
        OF_SEARCH,
        OF_SEARCH | {"admin": 400, "lead": 400},
        REASON,
    ),
    "business_lines": Row("business-lines/", EVERYBODY),
    "business_line_new": Row(
        "new/business-line/",
        EVERYBODY,
        done(EVERYBODY) | dict.fromkeys(("auditor", "member", "stranger", "newcomer"), 400),
        {"tenant": "search", "slug": "new"},
    ),
    "business_line_edit": Row("business-lines/{line}/edit/", OF_SEARCH, done(OF_SEARCH), {"name": "Training"}),
    "business_line_delete": Row(
        "business-lines/{line}/delete/", OF_SEARCH, OF_SEARCH | {"admin": 400, "lead": 400}, REASON
    ),
    "users": Row("users/", SEEN_BY_ALL_SEEING),
    "user_new": Row("new/user/", OF_PLATFORM, OF_PLATFORM, {"username": "new"}),
    "tokens": Row("profile/tokens/", EVERYBODY, EVERYBODY, {"name": "robot", "scopes": "quota:read", "expires": "30d"}),
    "token_revoke": Row(
        "profile/tokens/{token}/revoke/",
        dict.fromkeys(CAST, 405),
        dict.fromkeys(CAST, 404) | dict.fromkeys(("anonymous", "admin", "member"), 302),
    ),
    "all_tokens": Row("users/tokens/", OF_PLATFORM),
    "user": Row("users/{person}/", SEEN_BY_ALL_SEEING, OF_ADMINS),
    "user_edit": Row("users/{person}/edit/", OF_ADMINS, done(OF_ADMINS), {"first_name": "Mei"}),
    "user_switch": Row("users/{person}/switch/", OF_ADMINS, done(OF_ADMINS), REASON),
    "queue_new": Row(
        "clusters/demo/new/queue/",
        SEEN_IN_CLUSTER,
        done(SEEN_IN_CLUSTER) | dict.fromkeys(("auditor", "member", "stranger"), 400),
        {"name": "new", "service_type": "inference", "owner": "project-{project}", "card:NVIDIA-L40S": "0", **REASON},
    ),
    "queue_edit": Row("clusters/demo/queues/search-training/edit/", OF_SEARCH, done(OF_SEARCH), QUEUE),
    "queue_close": Row("clusters/demo/queues/search-training/close/", OF_SEARCH, done(OF_SEARCH), REASON),
    # It is open and gangs are in it: even an admin's POST only says so.
    "queue_delete": Row(
        "clusters/demo/queues/search-training/delete/", OF_SEARCH, OF_SEARCH | {"admin": 400, "lead": 400}, REASON
    ),
    "grants": Row("clusters/demo/grants/", SEEN_IN_CLUSTER),
    "grant_new": Row(
        "clusters/demo/new/grant/",
        SEEN_IN_CLUSTER,
        done(SEEN_IN_CLUSTER) | dict.fromkeys(("auditor", "member", "stranger"), 400),
        {"namespace": "new", "queue": "search-training", **REASON},
    ),
    "grant_delete": Row("clusters/demo/grants/{grant}/delete/", OF_SEARCH, done(OF_SEARCH), REASON),
    "card_types": Row("clusters/demo/card-types/", SEEN_IN_CLUSTER),
    "card_type_new": Row(
        "clusters/demo/new/card-type/", OF_CLUSTER, done(OF_CLUSTER), {"name": "NVIDIA-B300", "kind": "whole"}
    ),
    "card_type_edit": Row(
        "clusters/demo/card-types/{declared}/edit/",
        OF_CLUSTER,
        done(OF_CLUSTER),
        {"kind": "whole", "resource": "nvidia.com/b200"},
    ),
    "card_type_delete": Row("clusters/demo/card-types/{declared}/delete/", OF_CLUSTER, done(OF_CLUSTER), REASON),
    "priority_classes": Row("clusters/demo/priority-classes/", SEEN_IN_CLUSTER),
    "priority_class_defaults": Row(
        "clusters/demo/new/priority-classes/", dict.fromkeys(CAST, 405), done(OF_CLUSTER), REASON
    ),
    "priority_class_new": Row(
        "clusters/demo/new/priority-class/",
        OF_CLUSTER,
        done(OF_CLUSTER),
        {"name": "pc-new", "value": "1", "preemption_policy": "Never", **REASON},
    ),
    "priority_class_edit": Row("clusters/demo/priority-classes/pc-low/edit/", OF_CLUSTER, done(OF_CLUSTER), REASON),
    "priority_class_replace": Row(
        "clusters/demo/priority-classes/pc-low/replace/",
        OF_CLUSTER,
        done(OF_CLUSTER),
        {"value": "7", "preemption_policy": "Never", "confirm": "on", **REASON},
    ),
    "priority_class_delete": Row("clusters/demo/priority-classes/pc-low/delete/", OF_CLUSTER, done(OF_CLUSTER), REASON),
    "policy": Row(
        "clusters/demo/policy/",
        SEEN_IN_CLUSTER,
        done(OF_CLUSTER),
        {"text": POLICY, "act": "apply", **REASON},
    ),
    "rules": Row(
        "clusters/demo/rules/",
        OF_CLUSTER,
        done(OF_CLUSTER),
        {"overcommit_inference_percent": "120", "overcommit_training_percent": "100", **REASON},
    ),
    "tenant_approval": Row("tenants/search/approval/", SEARCH_BY_PLATFORM, done(SEARCH_BY_PLATFORM), REASON),
    "policies": Row("clusters/demo/policy/all/", SEEN_IN_CLUSTER),
    "policy_revision": Row("clusters/demo/policy/1/", SEEN_IN_CLUSTER),
    "policy_roll_back": Row("clusters/demo/policy/1/roll-back/", OF_CLUSTER, done(OF_CLUSTER), REASON),
    "policy_release": Row("clusters/demo/policy/1/release/", dict.fromkeys(CAST, 405), done(OF_CLUSTER)),
    # The secret is the key: whoever holds it comes in, signed in or not.
    "invite": Row(
        "invite/{secret}/",
        dict.fromkeys(CAST, 200),
        dict.fromkeys(CAST, 302),
        {"new_password": "a long enough secret", "repeated": "a long enough secret"},
    ),
}


@pytest.fixture
def world() -> story.World:
    found = story.full()
    found.lead = User.objects.create(username="lead")
    Membership.objects.create(user=found.lead, tenant=Tenant.objects.get(slug="search"), role=TenantRole.ADMIN)
    return found


def samples(world: story.World) -> dict[str, Any]:
    """What the addresses name."""
    queue: Callable[[str], Queue] = world.queues.__getitem__
    _link, secret = accounts.make_link(user=world.newcomer, kind="reset", actor="tests")
    tenant = Tenant.objects.get(slug="search")
    invited, _link, _secret = accounts.invite_user(username="ida", actor="tests", memberships={tenant: "member"})
    search = queue("search-training")
    other = NamespaceGrant.objects.create(cluster=world.cluster, namespace="other", queue=queue("research-training"))
    grant = NamespaceGrant.objects.create(cluster=world.cluster, namespace="search", queue=search)
    declared = CardType.objects.create(cluster=world.cluster, name="NVIDIA-B200", discovered=False)
    return {
        "other": other.pk,
        "grant": grant.pk,
        "declared": declared.pk,
        "project": queue("search-rank-inference").project_id,
        "member": Membership.objects.get(user=world.member).pk,
        "invited": invited.memberships.get().pk,
        "line": queue("search-training").business_line_id,
        "person": world.member.pk,
        "secret": secret,
        "token": accounts.create_token(user=world.member, scopes=["quota:read"], actor="tests")[0].pk,
    }


def caller(world: story.World, name: str) -> Client:
    return Client() if name == "anonymous" else client_of(getattr(world, name))


def ask(world: story.World, name: str, method: str) -> dict[str, int]:
    """The answer to everybody; what one of them changed is taken back before the next one asks."""
    with transaction.atomic():
        answers = _asked(world, ROWS[name], name, method)
        transaction.set_rollback(True)
    return answers


def _asked(world: story.World, row: Row, name: str, method: str) -> dict[str, int]:
    found, answers = samples(world), {}
    path = "/" + row.path.format(**found)
    body = {key.format(**found): value.format(**found) for key, value in (row.body or {}).items()}
    for who in CAST:
        with transaction.atomic():
            client = caller(world, who)
            answer = client.get(path) if method == "get" else client.post(path, body)
            if who == "anonymous" and answer.status_code == 302 and name != "invite":
                assert answer["Location"].startswith("/sign-in/"), name
            answers[who] = answer.status_code
            transaction.set_rollback(True)
    return answers


def test_every_page_has_its_row() -> None:
    assert {pattern.name for pattern in manage_urls.urlpatterns} == set(ROWS)


def test_who_opens_which_page(world: story.World, subtests: pytest.Subtests) -> None:
    for name, row in ROWS.items():
        with subtests.test(name):
            assert ask(world, name, "get") == row.get


def test_whose_post_does_something(world: story.World, subtests: pytest.Subtests) -> None:
    for name, row in ROWS.items():
        if row.post is not None:
            with subtests.test(name):
                assert ask(world, name, "post") == row.post
