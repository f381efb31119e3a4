"""The ground of the tests of changes: a cluster with hardware, two tenants, and people with rights."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

from django.utils import timezone

from tests import quota_writes
from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.models import PlatformRole, Tenant, User
from tidesched_web.accounts.selectors import access_of
from tidesched_web.audit.models import AuditEntry
from tidesched_web.changes import services as changes
from tidesched_web.changes.selectors import read_tree
from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.common.permissions import Access

NOON = dt.datetime(2026, 3, 4, 12, tzinfo=dt.UTC)
H200, A100 = "NVIDIA-H200", "NVIDIA-A100"
QUEUE = {"service_type": "inference", "tenant": "acme", "project": "chat"}
TRAINING = {"service_type": "training", "tenant": "acme", "business_line": "research"}


@dataclass
class Ground:
    """Everything that the tests name."""

    cluster: Cluster
    tenants: dict[str, Tenant] = field(default_factory=dict)
    users: dict[str, User] = field(default_factory=dict)
    seq: int = 0  # where the audit log of the cluster stood when the ground was made

    def access(self, name: str) -> Access:
        return access_of(self.users[name])

    def tree(self):
        return read_tree(self.cluster)

    def carry_out(self, edits, *, who="root", reason="because", **more):
        return changes.carry_out(cluster=self.cluster, edits=edits, access=self.access(who), reason=reason, **more)

    def draft(self, edits, *, who="root", reason="because", **more):
        return changes.draft(cluster=self.cluster, edits=edits, access=self.access(who), reason=reason, **more)

    def quota(self, queue, card=H200):
        return self.tree()[f"queue/{queue}"]["card_quota"].get(card, 0)


def build(*, mode: str = "observe", api_url: str = "https://10.0.0.1:6443", **more) -> Ground:
    """Tenants acme and rival with a ceiling of 8 H200 for inference each, on 16; two platform admins."""
    # What a tide plan does must not hang on the hour of the test.
    clock = {"clock_anchor": NOON, "clock_wall_anchor": timezone.now()}
    cluster = Cluster.objects.create(name="east", slug="east", api_url=api_url, mode=mode, **(clock | more))
    for card, hardware in ((H200, 16), (A100, 8)):
        CardType.objects.create(cluster=cluster, name=card, hardware=hardware, last_seen_at=timezone.now())
    ground = Ground(cluster)
    for name, role in (
        ("root", PlatformRole.ADMIN),
        ("second", PlatformRole.ADMIN),
        ("auditor", PlatformRole.AUDITOR),
        ("owner", ""),
        ("mate", ""),
        ("rival", ""),
    ):
        ground.users[name] = accounts.create_user(username=name, password=None, platform_role=role, actor="tests")
    for slug in ("acme", "rival"):
        tenant = ground.tenants[slug] = quota_writes.ensure_tenant(slug=slug, actor="tests")
        project = quota_writes.ensure_project(tenant=tenant, slug="chat", actor="tests")
        line = quota_writes.ensure_business_line(tenant=tenant, slug="research", actor="tests")
        quota_writes.set_card_quota(
            cluster=cluster, owner=tenant, service_type="inference", cards={H200: 8}, actor="tests"
        )
        quota_writes.create_queue(
            cluster=cluster, name=f"{slug}-online", service_type="inference", project=project,
            card_quota={H200: 6}, actor="tests",
        )  # fmt: skip
        quota_writes.create_queue(
            cluster=cluster, name=f"{slug}-train", service_type="training", business_line=line,
            card_quota={H200: 8}, actor="tests",
        )  # fmt: skip
    for user, tenant, role in (("owner", "acme", "admin"), ("mate", "acme", "member"), ("rival", "rival", "admin")):
        accounts.set_membership(user=ground.users[user], tenant=ground.tenants[tenant], role=role, actor="tests")
    ground.seq = AuditEntry.objects.filter(chain=f"cluster:{cluster.pk}").count()
    return ground


def intent_of_the_log(ground: Ground) -> dict[str, dict[str, object]]:
    """The documents as the entries of changes have them last; None = deleted."""
    found: dict[str, dict[str, object]] = {}
    entries = AuditEntry.objects.filter(chain=f"cluster:{ground.cluster.pk}", seq__gt=ground.seq)
    for entry in entries.exclude(object_type="quota_change").order_by("seq"):
        name = entry.object_label.replace(" → ", "/")
        if entry.object_type == "business_line" and name.startswith("platform/"):
            name = "-/" + name.partition("/")[2]
        found[f"{entry.object_type.replace('_', '-')}/{name}"] = entry.after
    return found
