from dataclasses import dataclass
from typing import Any

from django.db.models import Model, Q, QuerySet

from tidesched_web.accounts.models import ApiToken, BusinessLine, Membership, Project, Tenant
from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.quota.models import CardQuota, ComputeQuota, NamespaceGrant, Queue

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Dependents:
    kind: str
    count: int
    names: tuple[str, ...]
    blocks: bool

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "count": self.count, "names": list(self.names), "blocks": self.blocks}


def _group(kind: str, rows: QuerySet[Any], name: str, *, blocks: bool) -> Dependents:
    """One query as long as few rows are there, which is the usual case; a second one counts where there are many."""
    names = list(rows.order_by(name).values_list(name, flat=True)[: SHOWN + 1])
    count = len(names) if len(names) <= SHOWN else rows.count()
    return Dependents(kind, count, tuple(map(str, names[:SHOWN])), blocks)


def _quotas(owner: Model, column: str) -> Dependents:
    cards = CardQuota.objects.filter(**{column: owner})
    rows = [
        f"{card}: {count}" for card, count in cards.order_by("card_type__name").values_list("card_type__name", "cards")
    ]
    # A queue's cpu and memory are fields of its own.
    compute = 0 if isinstance(owner, Queue) else ComputeQuota.objects.filter(**{column: owner}).count()
    return Dependents("quota", len(rows) + compute, tuple(rows[:SHOWN]), blocks=False)


def dependents_of(row: Model) -> list[Dependents]:
    groups: list[Dependents] = []
    if isinstance(row, Tenant):
        groups = [
            _group("queue", Queue.objects.filter(tenant=row), "name", blocks=True),
            _group("project", Project.objects.filter(tenant=row), "slug", blocks=False),
            _group("business_line", BusinessLine.objects.filter(tenant=row), "slug", blocks=False),
            _group("member", Membership.objects.filter(tenant=row), "user__username", blocks=False),
            _group("token", ApiToken.objects.filter(tenant=row), "prefix", blocks=False),
            _quotas(row, "tenant"),
        ]
    elif isinstance(row, Project):
        groups = [_group("queue", Queue.objects.filter(project=row), "name", blocks=True), _quotas(row, "project")]
    elif isinstance(row, BusinessLine):
        groups = [_group("queue", Queue.objects.filter(business_line=row), "name", blocks=True)]
    elif isinstance(row, Queue):
        groups = [
            _group("grant", NamespaceGrant.objects.filter(queue=row), "namespace", blocks=False),
            _quotas(row, "queue"),
        ]
    elif isinstance(row, CardType):
        promised = CardQuota.objects.filter(card_type=row)
        groups = [
            _group("slice", CardType.objects.filter(parent=row), "name", blocks=True),
            _group("queue", Queue.objects.filter(card_quotas__in=promised), "name", blocks=True),
            _group("project", Project.objects.filter(card_quotas__in=promised).distinct(), "slug", blocks=True),
            _group("tenant", Tenant.objects.filter(card_quotas__in=promised).distinct(), "slug", blocks=True),
        ]
    return [group for group in groups if group.count]


def clusters_with_quota_of(owner: Tenant | Project) -> list[Cluster]:
    theirs = Q(tenant=owner) | Q(project__tenant=owner) if isinstance(owner, Tenant) else Q(project=owner)
    cards = CardQuota.objects.filter(theirs, queue=None).values("cluster")
    compute = ComputeQuota.objects.filter(theirs).values("cluster")
    return list(Cluster.objects.filter(pk__in=cards.union(compute)).order_by("pk"))


def edits_without_quota(owner: Tenant | Project) -> dict[str, dict[str, None]]:
    if isinstance(owner, Project):
        return {f"project/{owner.tenant.slug}/{owner.slug}": {"quota": None}}
    projects = Project.objects.filter(tenant=owner).order_by("slug").values_list("slug", flat=True)
    return {f"tenant/{owner.slug}": {"quota": None}} | {
        f"project/{owner.slug}/{slug}": {"quota": None} for slug in projects
    }
