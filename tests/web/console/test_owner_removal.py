"""Deleting what has quotas, on its page: a change for a project, the way there for a tenant."""

from __future__ import annotations

import html
import re

import pytest

from tests.web.console import world as story
from tests.web.console.cast import H200
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.models import Project, Tenant
from tidesched_web.changes.models import QuotaChange
from tidesched_web.clusters.models import Cluster
from tidesched_web.quota import services as quota

pytestmark = pytest.mark.django_db


def test_deleting_a_project_with_quotas_leads_to_its_change() -> None:
    world = story.full()
    tenant, cluster = Tenant.objects.get(slug="search"), Cluster.objects.get(slug="demo")
    made = quota.create_project(tenant=tenant, slug="lab", actor="tests")
    quota.set_card_quota(cluster=cluster, owner=made, service_type="inference", cards={H200: 0}, actor="tests")
    Tenant.objects.filter(slug="search").update(approval_required=True)
    client, address = client_of(world.admin), "/tenants/search/projects/lab/delete/"
    assert "this is a change of its quota tree" in client.get(address).content.decode()
    answer = client.post(address, {"reason": "over", "version": made.version})
    change = QuotaChange.objects.get()
    assert (change.edits, change.state) == ({"project/search/lab": None}, "waiting")
    assert answer["Location"] == f"/clusters/demo/changes/{change.pk}/"
    assert Project.objects.filter(slug="lab").exists()


def test_a_tenant_with_quotas_offers_the_change_that_takes_them_back() -> None:
    world = story.full()
    client = client_of(world.admin)
    page = client.get("/tenants/search/delete/").content.decode()
    assert "Take them back by a change first" in html.unescape(page)
    edits = html.unescape(re.search(r'name="edits" value="([^"]+)"', page)[1])
    client.post("/clusters/demo/quota/edit/review/", {"edits": edits})
    assert QuotaChange.objects.get().edits["tenant/search"] == {"quota": None}
