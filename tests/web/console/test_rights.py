"""Where a reader has no button the page says who has it, by the rule that refuses the act."""

from __future__ import annotations

import html

import pytest
from django.utils import timezone

from tests.quota_writes import write_tide_plan
from tests.web.console import world as story
from tests.web.console.cast import H200
from tests.web.console.test_changes import drafted
from tests.web.console.test_pages import client_of
from tests.web.console.test_tide_plans import LIST, NIGHT
from tidesched_web.accounts.models import Membership, Tenant, TenantRole, User
from tidesched_web.accounts.selectors import access_of
from tidesched_web.changes import services
from tidesched_web.clusters.models import Cluster
from tidesched_web.common.errors import DomainError
from tidesched_web.console import rights
from tidesched_web.scheduling.models import Alert

pytestmark = pytest.mark.django_db
WRITERS = "Ask a platform admin or an admin of your tenant to change this."
OF_SEARCH = "Ask a platform admin or an admin of tenant Search to change this."
PLATFORM = "Ask a platform admin to change this."
# page → what a member reads there, and whether a tenant's admin reads it too
SAID = {
    "/": (OF_SEARCH, False),
    "/clusters/demo/quota/": (WRITERS, False),
    "/clusters/demo/changes/": (WRITERS, False),
    "/clusters/demo/queues/": (WRITERS, False),
    "/clusters/demo/queues/search-training/": (OF_SEARCH, False),
    "/tenants/search/": (OF_SEARCH, False),
    "/tenants/search/members/": (OF_SEARCH, False),
    "/tenants/search/projects/search-rank-inference/": (OF_SEARCH, False),
    LIST: (PLATFORM, True),
    f"{LIST}nights/": (PLATFORM, True),
    "/clusters/demo/drift/": (PLATFORM, True),
    "/clusters/demo/alerts/": (PLATFORM, True),
}


@pytest.fixture
def world(world) -> story.World:
    document = {"enabled": True, "layers": [NIGHT]}
    write_tide_plan(cluster=world.cluster, name="nights", document=document, actor="tests")
    return world


@pytest.fixture
def lead(world) -> User:
    """The tenant admin of Search."""
    user = User.objects.create(username="lead", password="!")
    Membership.objects.create(user=user, tenant=Tenant.objects.get(slug="search"), role=TenantRole.ADMIN)
    return user


def page(user: User, address: str) -> str:
    answer = client_of(user).get(address)
    assert answer.status_code == 200, address
    return " ".join(html.unescape(answer.content.decode()).split())


@pytest.mark.parametrize("address", SAID)
def test_who_may_is_said_where_the_button_is_missing(world, lead, address) -> None:
    said, to_tenant_admins = SAID[address]
    assert said in page(world.member, address)
    assert (said in page(lead, address)) == to_tenant_admins
    if address != "/":
        assert said in page(world.auditor, address)
        assert "Ask a platform admin" not in page(world.admin, address)


def test_it_leads_to_those_who_may_be_asked(world) -> None:
    for address in ("/", "/clusters/demo/queues/search-training/", "/tenants/search/"):
        assert 'href="/tenants/search/members/?role=admin"' in page(world.member, address), address


def test_an_admin_of_the_tenant_is_told_what_is_for_the_platform_alone(world, lead) -> None:
    text = page(lead, "/tenants/search/")
    assert PLATFORM in text
    assert "Edit or ask for quota" in text


def test_on_a_change_it_is_the_rule_that_refuses_in_its_words(world, lead) -> None:
    change = drafted(client_of(lead), {"queue/search-training": {"card_quota": {H200: 16}}})
    address = f"/clusters/demo/changes/{change.pk}/"
    said = "Only platform admins and tenant admins may change quota."
    for user in (world.member, world.auditor):
        assert said in page(user, address)
    for user in (lead, world.admin):
        assert "may change quota" not in page(user, address)


def test_what_belongs_to_no_tenant_is_for_platform_admins(world) -> None:
    limit = rights.limit_of(access_of(world.auditor), "tenant")
    assert limit is not None
    assert limit.text == PLATFORM
    assert limit.tenant is None
    assert rights.limit_of(access_of(world.admin), "tenant") is None


# Who is asked → the doors of pages that say so: an address that is sent to, or edits that are drafted.
DOORS: dict[str, tuple[str, ...]] = {
    "tenant": (
        *(f"/clusters/demo/queues/search-training/{act}/" for act in ("edit", "close", "delete")),
        "/tenants/search/projects/search-rank-inference/edit/",
        "/tenants/search/edit/",
        "/tenants/search/invite/",
        "draft queue/search-training",
    ),
    "writers": ("draft ", "/clusters/demo/new/queue/", "look /waiting/"),
    "platform": (
        *(f"{LIST}nights/{act}/" for act in ("edit", "switch", "take-back")),
        "/clusters/demo/new/tide-plan/",
        "/tenants/search/delete/",
        "/tenants/search/approval/",
        "/clusters/demo/drift/decide/",
        "/clusters/demo/alerts/{alert}/acknowledge/",
        "/clusters/demo/alerts/{alert}/resolve/",
    ),
}


def _opens(user: User, cluster: Cluster, door: str) -> bool:
    """Whether the rule behind a door lets somebody in; what is sent is empty, so nothing is done."""
    if door.startswith("draft "):
        try:
            key = door.partition(" ")[2]
            services.draft(
                cluster=cluster, edits={key: {"card_quota": {H200: 16}}} if key else {}, access=access_of(user)
            )
        except DomainError as error:
            return error.status not in (403, 404)
        return True
    client = client_of(user)
    status = (client.get(door[5:]) if door.startswith("look ") else client.post(door, {})).status_code
    assert status < 500, door
    return status not in (403, 404)


def test_each_sentence_about_who_may_is_as_the_rule_that_refuses_the_act(world, lead) -> None:
    search, alert = Tenant.objects.get(slug="search"), Alert.objects.filter(cluster=world.cluster).latest("pk")
    rival = User.objects.create(username="rival", password="!")
    Membership.objects.create(user=rival, tenant=Tenant.objects.get(slug="research"), role=TenantRole.ADMIN)
    for user in (world.member, rival, world.auditor, lead, world.admin):
        access = access_of(user)
        for what, doors in DOORS.items():
            limit = rights.limit_of(access, what, search)
            for door in doors:
                address = door.format(alert=alert.pk)
                assert _opens(user, world.cluster, address) is (limit is None), (user.username, what, door)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("/clusters/demo/quota/edit/", WRITERS),
        ("/waiting/", WRITERS),
        ("/clusters/demo/new/queue/", WRITERS),
        ("/tenants/search/edit/", OF_SEARCH),
    ],
)
def test_a_page_that_a_member_may_not_open_says_who_may_and_leads_to_them(world, address, said) -> None:
    answer = client_of(world.member).get(address)
    text = html.unescape(" ".join(answer.content.decode().split()))
    assert answer.status_code == 403
    assert said in text
    assert 'href="/tenants/search/members/?role=admin">See its admins' in text


def test_what_the_quotas_of_all_tenants_add_up_to_is_for_who_sees_them_all(world, lead) -> None:
    """Less one's own quota it would be that of the others."""
    address = "/clusters/demo/card-types/"
    for user, shown in ((world.member, False), (lead, False), (world.auditor, True), (world.admin, True)):
        assert ("Inference quota" in page(user, address)) is shown, user.username
        rows = client_of(user).get(address).context["page"].rows
        assert all((row.inference_quota is not None) is shown for row in rows), user.username


def test_an_alert_about_all_tenants_says_so_to_who_sees_some(world) -> None:
    """Where it leads to they may find nothing."""
    Alert.objects.create(
        cluster=world.cluster, code="drift", key="drift", severity="warning", message="", numbers={"objects": 1},
        raised_at=timezone.now(),
    )  # fmt: skip
    said = "what it is about may be an object that you do not see"
    for user, wanted in ((world.member, True), (world.auditor, False)):
        assert (said in page(user, "/clusters/demo/alerts/")) is wanted, user.username
