"""What a tenant admin asks for above the tenant's quota: on the grid, its review, the inbox, and after the approval."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from tests.web.console.cast import H200
from tests.web.console.test_changes import EDIT, act, drafted, lead, quota, world
from tests.web.console.test_inbox import account, counts
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.models import PlatformRole
from tidesched_web.changes.models import ChangeState
from tidesched_web.quota.models import CardQuota

pytestmark = pytest.mark.django_db
__all__ = ["lead", "world"]

ASKS = {
    "tenant/search": {"quota": {"inference": {"card_quota": {H200: 22}}}},
    "project/search/search-rank-inference": {"quota": {"inference": {"card_quota": {H200: 18}}}},
    "queue/search-rank-inference": {"card_quota": {H200: 18}},
}


def text_of(client: Client, url: str) -> str:
    """The page without its tags."""
    return " ".join(re.sub(r"<[^>]+>", " ", client.get(url).content.decode()).split())


def test_a_tenant_admin_asks_on_the_grid_and_a_platform_admin_decides_from_the_inbox(world, lead) -> None:
    author, of_tenant = client_of(lead), account("deputy", tenant="search")
    second = account("second", platform=PlatformRole.ADMIN)
    for page in ("/", "/tenants/search/"):
        assert re.search(rf'<a\s+href="{EDIT}"\s*>Edit or ask for quota</a>', author.get(page).content.decode()), page
    assert "ask for quota" not in client_of(world.member).get("/").content.decode()
    rows = author.get(f"{EDIT}data/").json()["rows"]
    assert {(row["kind"], row["may"], row.get("asks")) for row in rows if row["kind"] == "tenant"} == {
        ("tenant", 1, True)
    }
    assert not any(row.get("asks") for row in second.get(f"{EDIT}data/").json()["rows"])
    change = drafted(author, ASKS)
    page = text_of(author, f"/clusters/demo/changes/{change.pk}/")
    assert "What is asked for?" in page
    assert "Search (search) · Inference: H200: 20 → 22 (2 more)" in page
    assert "a platform admin has to approve it, and it is applied as a whole then" in page
    assert "Request approval" in page
    act(author, change, "apply", reason="More people ask.", when="now")
    assert (change.state, quota("search-rank-inference")) == (ChangeState.WAITING, 16)
    assert "It waits for the approval of a platform admin." in text_of(author, f"/clusters/demo/changes/{change.pk}/")
    for client in (author, of_tenant, account("rival", tenant="research")):
        assert "More people ask." not in text_of(client, "/waiting/")
        assert counts(client) == ["0", ""]
    inbox = text_of(second, "/waiting/")
    assert "Asks for 2 more than tenant Search (search) has (Inference: H200): 20 → 22" in inbox
    assert counts(second) == ["1", "1"]
    act(second, change, "approve")
    assert (change.state, change.approved_by) == (ChangeState.APPLYING, "second")
    assert quota("search-rank-inference") == 18
    assert CardQuota.objects.get(tenant__slug="search", card_type__name=H200, service_type="inference").cards == 22


def test_where_the_cluster_has_no_room_the_request_is_sent_and_its_approver_told_what_is_missing(world, lead) -> None:
    author, second = client_of(lead), account("second", platform=PlatformRole.ADMIN)
    change = drafted(author, {"tenant/search": {"quota": {"inference": {"card_quota": {H200: 200}}}}})
    page = author.get(f"/clusters/demo/changes/{change.pk}/").content.decode()
    assert "a platform admin has to make room first" in page
    assert "act-why" not in page, "it can be sent"
    act(author, change, "apply", reason="A big launch.", when="now")
    assert change.state == ChangeState.WAITING
    page = text_of(second, f"/clusters/demo/changes/{change.pk}/")
    assert "the cluster has no room for what is asked" in page
    assert second.post(f"/clusters/demo/changes/{change.pk}/approve/", {"revision": change.revision}).status_code in (
        302,
        422,
    )
    change.refresh_from_db()
    assert change.state == ChangeState.WAITING
