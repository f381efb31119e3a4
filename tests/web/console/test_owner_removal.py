"""Deleting what has quotas, on its page: a change for a project, the way there for a tenant."""

from __future__ import annotations

import html
import json
import re
from collections import Counter

import pytest

from tests import quota_writes
from tests.api.page_forms import PageForm, forms_of, post_opened
from tests.web.console import world as story
from tests.web.console.cast import H200
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.models import Project, Tenant
from tidesched_web.changes.models import QuotaChange
from tidesched_web.clusters.models import Cluster
from tidesched_web.quota import services as quota
from tidesched_web.quota.models import ComputeQuota, Queue
from tidesched_web.workloads.models import TERMINAL_GANG_STATES, Gang

pytestmark = pytest.mark.django_db


def test_deleting_a_project_with_quotas_leads_to_its_change(world) -> None:
    tenant, cluster = Tenant.objects.get(slug="search"), Cluster.objects.get(slug="demo")
    made = quota.create_project(tenant=tenant, slug="lab", actor="tests")
    quota_writes.set_card_quota(cluster=cluster, owner=made, service_type="inference", cards={H200: 0}, actor="tests")
    Tenant.objects.filter(slug="search").update(approval_required=True)
    client, address = client_of(world.admin), "/tenants/search/projects/lab/delete/"
    assert "this is a change of its quota tree" in client.get(address).content.decode()
    answer = client.post(address, {"reason": "over", "version": made.version})
    change = QuotaChange.objects.get()
    assert (change.edits, change.state) == ({"project/search/lab": None}, "waiting")
    assert answer["Location"] == f"/clusters/demo/changes/{change.pk}/"
    assert Project.objects.filter(slug="lab").exists()


def test_a_tenant_with_quotas_offers_the_change_that_takes_them_back(world) -> None:
    client = client_of(world.admin)
    Gang.objects.filter(queue__tenant__slug="search").delete()
    Queue.objects.filter(tenant__slug="search").delete()
    page = client.get("/tenants/search/delete/").content.decode()
    assert "Take them back by a change first" in html.unescape(page)
    edits = html.unescape(re.search(r'name="edits" value="([^"]+)"', page)[1])
    client.post("/clusters/demo/quota/edit/review/", {"edits": edits})
    assert QuotaChange.objects.get().edits["tenant/search"] == {"quota": None}


def removal(page: str, url: str) -> tuple[PageForm | None, str]:
    """The form that leads to the review of the change, and the text of the page."""
    forms = [form for form in forms_of(page, url) if form.action.endswith("/quota/edit/review/")]
    return (forms[0] if forms else None), " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


@pytest.mark.parametrize("what", ["project", "tenant"])
def test_one_change_takes_an_owner_with_its_queues_back_once_no_gang_is_in_them(world, what: str) -> None:
    url = "/tenants/search/projects/search-rank-inference/delete/" if what == "project" else "/tenants/search/delete/"
    queues = Queue.objects.filter(tenant__slug="search")
    queues = queues.filter(project__slug="search-rank-inference") if what == "project" else queues
    client, names = client_of(world.admin), sorted(queues.values_list("name", flat=True))
    gangs = Gang.objects.filter(queue__in=queues, gone_at=None).exclude(state__in=TERMINAL_GANG_STATES)
    counts = Counter(gangs.values_list("queue__name", flat=True))
    assert counts
    page = client.get(url).content.decode()
    form, said = removal(page, url)
    assert form is None, "a queue with gangs is not deleted"
    for name, count in counts.items():
        assert f"{name} : {count} gang" in said
        assert f'href="/clusters/demo/gangs/?queue={name}"' in page
    gangs.delete()
    form, said = removal(client.get(url).content.decode(), url)
    whole = f"Review the change that deletes it with its {len(names)} queue in {world.cluster.name}"
    parts = f"Review the change that deletes its queues and takes its quotas back in {world.cluster.name}"
    assert (whole in said, parts in said) == ((True, False) if what == "project" else (False, True))
    answer = client.post(form.action, form.fields)
    change = QuotaChange.objects.get()
    assert {f"queue/{name}" for name in names} <= {key for key, edit in change.edits.items() if edit is None}
    assert Queue.objects.filter(name__in=names).count() == len(names), "nothing goes before the review"
    assert "What does not fit" not in client.get(answer["Location"]).content.decode()
    done = client.post(f"{answer['Location']}apply/", {"reason": "over", "when": "now", "revision": 1})
    assert done.status_code == 302, done.content.decode()
    assert not Queue.objects.filter(name__in=names).exists()
    if what == "tenant":
        assert "tenant/search" in change.edits
        assert Tenant.objects.filter(slug="search").exists(), "its members would not come back with a roll back"
        assert post_opened(client, url, {"reason": "over"}).status_code == 302
    assert Project.objects.filter(slug="search-rank-inference").exists() is False
    assert Tenant.objects.filter(slug="search").exists() is (what == "project")


@pytest.mark.parametrize("url", ["/tenants/search/projects/search-rank-inference/", "/tenants/search/"])
def test_the_page_of_an_owner_with_queues_leads_to_its_deletion(world, url: str) -> None:
    """Its button was locked, with no way to the change that deletes it."""
    page = client_of(world.admin).get(url).content.decode()
    assert f'href="{url}delete/"' in page
    assert "close and delete them first" not in page


def test_a_project_whose_queues_are_empty_is_said_to_go_by_one_change(world) -> None:
    url = "/tenants/search/projects/search-rank-inference/delete/"
    client = client_of(world.admin)
    assert "It cannot be deleted yet" in client.get(url).content.decode()
    Gang.objects.filter(queue__project__slug="search-rank-inference").delete()
    page = client.get(url).content.decode()
    assert "It is deleted with its queues by one change" in page
    assert "It cannot be deleted yet" not in page
    assert "It cannot be deleted yet" in client.get("/tenants/search/delete/").content.decode()


def test_of_an_owner_in_two_clusters_each_has_a_change_of_its_own(world) -> None:
    hall = story.empty_cluster("hall")
    project = Project.objects.get(slug="search-rank-inference")
    quota_writes.set_card_quota(cluster=hall, owner=project, service_type="inference", cards={}, actor="tests")
    ComputeQuota.objects.create(cluster=hall, project=project, service_type="inference", cpu_milli=1000)
    Gang.objects.filter(queue__project=project).delete()
    url = "/tenants/search/projects/search-rank-inference/delete/"
    page = client_of(world.admin).get(url).content.decode()
    ways = [form for form in forms_of(page, url) if form.action.endswith("/quota/edit/review/")]
    assert [form.action.split("/")[2] for form in ways] == ["demo", "hall"]
    assert json.loads(ways[0].fields["edits"]) == {
        "queue/search-rank-inference": None, "project/search/search-rank-inference": {"quota": None},
    }  # fmt: skip
    assert json.loads(ways[1].fields["edits"]) == {"project/search/search-rank-inference": {"quota": None}}
