"""Tenants, projects and business lines: made, renamed and deleted, each with its entry in the audit log."""

from __future__ import annotations

import pytest

from tests import quota_writes
from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.models import Membership, Project, Tenant
from tidesched_web.audit.models import AuditEntry
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.models import CardType
from tidesched_web.common.errors import DomainError
from tidesched_web.quota import services as quota
from tidesched_web.quota.dependent_selectors import dependents_of
from tidesched_web.quota.models import CardQuota, QuotaTree

pytestmark = pytest.mark.django_db
ACTOR = "root"


def test_a_slug_is_taken_once() -> None:
    acme = quota.create_tenant(slug="acme", actor=ACTOR)
    assert acme.name == "acme"
    for again in (
        lambda: quota.create_tenant(slug="acme", actor=ACTOR),
        lambda: [quota.create_project(tenant=acme, slug="chat", actor=ACTOR) for _ in range(2)],
        lambda: [quota.create_business_line(tenant=None, slug="base", actor=ACTOR) for _ in range(2)],
    ):
        with pytest.raises(DomainError) as refused:
            again()
        assert refused.value.code == "already_exists"
        assert refused.value.extra["errors"][0]["pointer"] == "/slug"
    with pytest.raises(DomainError):
        quota.create_tenant(slug="No Slug", actor=ACTOR)


def test_an_edit_counts_a_version_and_a_stale_one_is_refused() -> None:
    acme = quota.create_tenant(slug="acme", actor=ACTOR)
    assert quota.update_owner(owner=acme, name="Acme", version=1, actor=ACTOR)
    assert not quota.update_owner(owner=acme, name="Acme", actor=ACTOR)
    with pytest.raises(DomainError) as refused:
        quota.update_owner(owner=acme, name="Other", version=1, actor=ACTOR)
    assert (refused.value.code, refused.value.extra["etag"]) == ("stale", '"2"')
    entry = AuditEntry.objects.order_by("-id").first()
    assert (entry.action, entry.before, entry.after) == ("tenant.update", {"name": "acme"}, {"name": "Acme"})
    assert AuditEntry.objects.count() == 2


def test_what_has_queues_stays_and_the_rest_goes_along() -> None:
    cluster = clusters.create(name="east", api_url="https://10.0.0.1:6443", actor=ACTOR)
    CardType.objects.create(cluster=cluster, name="NVIDIA-H200", hardware=8)
    acme = quota.create_tenant(slug="acme", actor=ACTOR)
    project = quota.create_project(tenant=acme, slug="chat", actor=ACTOR)
    line = quota.create_business_line(tenant=acme, slug="research", actor=ACTOR)
    member = accounts.create_user(username="mei", password=None, actor=ACTOR)
    accounts.set_membership(user=member, tenant=acme, role="member", actor=ACTOR)
    for owner in (acme, project):
        quota_writes.set_card_quota(
            cluster=cluster, owner=owner, service_type="inference", cards={"NVIDIA-H200": 4}, actor=ACTOR
        )
    queue = quota_writes.create_queue(
        cluster=cluster, name="chat-online", service_type="inference", project=project, actor=ACTOR
    )
    for owner in (acme, project):
        with pytest.raises(DomainError) as refused:
            quota.delete_owner(owner=owner, actor=ACTOR)
        assert refused.value.code == "in_use"
        blocking = next(group for group in refused.value.extra["dependents"] if group["blocks"])
        assert blocking == {"kind": "queue", "count": 1, "names": ["chat-online"], "blocks": True}
    quota.delete_owner(owner=line, actor=ACTOR)
    queue.delete()
    version = QuotaTree.objects.get().version
    for owner in (acme, project):
        with pytest.raises(DomainError) as refused:
            quota.delete_owner(owner=owner, actor=ACTOR)
        assert (refused.value.code, refused.value.extra["clusters"]) == ("in_use", ["east"])
        assert refused.value.extra["edits"]["project/acme/chat"] == {"quota": None}
    assert {group.kind: group.count for group in dependents_of(acme)} == {"project": 1, "member": 1, "quota": 1}
    CardQuota.objects.all().delete()
    quota.delete_owner(owner=acme, reason="they left", actor=ACTOR)
    assert not Tenant.objects.exists()
    assert not Project.objects.exists()
    assert not Membership.objects.exists()
    assert not CardQuota.objects.exists()
    assert QuotaTree.objects.get().version == version
    entry = AuditEntry.objects.order_by("-id").first()
    assert (entry.action, entry.object_label, entry.reason) == ("tenant.delete", "acme", "they left")
    assert entry.before["with"] == {"project": 1, "member": 1}
