"""What promises cards goes by a change: DELETE of a project or tenant that has quotas."""

from __future__ import annotations

import pytest

from tests import quota_writes
from tests.api.cast import H200
from tests.api.test_quota_changes import act
from tidesched_web.accounts.models import Project
from tidesched_web.clusters.models import Cluster
from tidesched_web.quota import services as quota
from tidesched_web.quota.models import CardQuota


@pytest.fixture
def project(world) -> Project:
    made = quota.create_project(tenant=world.tenants["acme"], slug="lab", actor="tests")
    quota_writes.set_card_quota(
        cluster=world.clusters["east"], owner=made, service_type="inference", cards={H200: 2}, actor="tests"
    )
    return made


def quotas(row: Project) -> int:
    return CardQuota.objects.filter(project__slug=row.slug, queue=None).count()


def test_a_project_with_quotas_goes_by_a_change_and_comes_back(world, project):
    owner = world.client("owner")
    url = f"projects/{project.pk}/"
    dry = owner.change("DELETE", f"{url}?dry_run=true")
    assert (dry.status_code, dry.json()["plan"]["errors"]) == (200, []), dry.content
    assert owner.change("DELETE", url).json()["code"] == "reason_required"
    assert owner.change("DELETE", url, {"reason": "over"}, If_Match='"99"').status_code == 412
    done = owner.change("DELETE", url, {"reason": "over"}, If_Match=f'"{project.version}"')
    assert (done.status_code, done.json()["edits"]) == (202, {"project/acme/lab": None})
    assert not Project.objects.filter(slug="lab").exists()
    back = act(owner, done.json(), "rollback", {"apply": True})
    assert (back.status_code, back.json()["state"]) == (202, "applied"), back.content
    assert quotas(project) == 1
    assert world.client("stranger").change("DELETE", url, {"reason": "x"}).status_code == 404


def test_where_approval_is_due_the_deletion_waits_for_it(world, project):
    Cluster.objects.update(approval_required=True)
    asked = world.client("owner").change("DELETE", f"projects/{project.pk}/", {"reason": "over"})
    assert (asked.status_code, asked.json()["state"]) == (202, "waiting")
    assert quotas(project) == 1
    done = act(world.client("admin"), asked.json(), "approve", {"reason": "the lab has moved out"}).json()
    assert (done["state"], done["approved_reason"]) == ("applied", "the lab has moved out")
    assert not Project.objects.filter(slug="lab").exists()


def test_a_tenant_with_quotas_names_the_way(world, project):
    admin, tenant = world.client("admin"), world.tenants["acme"]
    for queue in ("acme-online", "acme-train"):
        world.queues[queue].gangs.all().delete()
        world.queues[queue].delete()
    refused = admin.change("DELETE", f"tenants/{tenant.pk}/", {"reason": "left"})
    assert (refused.status_code, refused.json()["code"], refused.json()["clusters"]) == (409, "in_use", ["east"])
    edits = refused.json()["edits"]
    assert edits["project/acme/lab"] == {"quota": None}
    made = admin.send("quota-changes/", {"cluster": "east", "edits": edits, "reason": "left"}).json()
    assert act(admin, made, "apply").json()["state"] == "applied"
    assert admin.change("DELETE", f"tenants/{tenant.pk}/", {"reason": "left"}).status_code == 204


def test_a_project_with_queues_names_the_one_change_that_deletes_both_or_the_gangs_that_are_in_them(world):
    owner, project = world.client("owner"), Project.objects.get(slug="acme-chat")
    url, queue = f"projects/{project.pk}/", world.queues["acme-online"]
    refused = owner.change("DELETE", url, {"reason": "over"})
    assert (refused.status_code, refused.json()["code"]) == (409, "in_use")
    assert "edits" not in refused.json()
    assert f"acme-online ({queue.gangs.count()})" in refused.json()["detail"]
    queue.gangs.all().delete()
    refused = owner.change("DELETE", url, {"reason": "over"})
    told = refused.json()
    assert (refused.status_code, told["code"], told["clusters"]) == (409, "in_use", ["east"])
    assert {group["kind"]: group["count"] for group in told["dependents"]}["queue"] == 1
    assert told["edits"] == {"queue/acme-online": None, "project/acme/acme-chat": None}
    made = owner.send("quota-changes/", {"cluster": "east", "edits": told["edits"], "reason": "over"}).json()
    assert made["errors"] == []
    assert act(owner, made, "apply").json()["state"] == "applied"
    assert not Project.objects.filter(slug="acme-chat").exists()
    assert owner.change("DELETE", url, {"reason": "over"}).status_code == 404
    assert world.client("stranger").change("DELETE", url, {"reason": "x"}).status_code == 404


def test_a_dry_run_of_a_deletion_has_the_edits_and_the_plan_of_the_deletion(world, project):
    owner, url = world.client("owner"), f"projects/{project.pk}/"
    dry = owner.change("DELETE", f"{url}?dry_run=true").json()
    assert dry["dry_run"] is True
    assert Project.objects.filter(slug="lab").exists()
    done = owner.change("DELETE", url, {"reason": "over"}).json()
    assert dry["edits"] == done["edits"] == {"project/acme/lab": None}
    assert dry["plan"]["fields"] == owner.read(f"quota-changes/{done['id']}/plan/", impact="false")["fields"]


def test_a_dry_run_of_a_deletion_is_refused_as_the_deletion_is(world):
    owner, admin = world.client("owner"), world.client("admin")
    project, tenant = Project.objects.get(slug="acme-chat"), world.tenants["acme"]
    ways = {f"projects/{project.pk}/": owner, f"tenants/{tenant.pk}/": admin}
    for gangs_left in (True, False):
        if not gangs_left:
            for queue in ("acme-online", "acme-train"):
                world.queues[queue].gangs.all().delete()
        for url, client in ways.items():
            dry, done = (client.change("DELETE", url + asked, {"reason": "over"}) for asked in ("?dry_run=true", ""))
            assert (dry.status_code, done.status_code) == (409, 409)
            told, real = dry.json(), done.json()
            for name in ("code", "detail", "clusters", "changes", "dependents"):
                assert told[name] == real[name], name
            assert told.get("edits") == real.get("edits")
            assert ("edits" in told, bool(told["changes"])) == (not gangs_left, not gangs_left)


def test_a_tenant_with_queues_names_the_change_of_each_cluster_that_takes_them_away(world, project):
    admin, tenant = world.client("admin"), world.tenants["acme"]
    for queue in ("acme-online", "acme-train"):
        world.queues[queue].gangs.all().delete()
    refused = admin.change("DELETE", f"tenants/{tenant.pk}/", {"reason": "left"})
    assert (refused.status_code, refused.json()["code"]) == (409, "in_use")
    assert "takes the quotas back" in refused.json()["detail"]
    for change in refused.json()["changes"]:
        body = {"cluster": change["cluster"], "edits": change["edits"], "reason": "left"}
        made = admin.send("quota-changes/", body).json()
        assert act(admin, made, "apply").json()["state"] == "applied"
    assert admin.change("DELETE", f"tenants/{tenant.pk}/", {"reason": "left"}).status_code == 204
