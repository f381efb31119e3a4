"""The demo's intent, made once in one transaction: what people change in it afterwards is theirs."""

from __future__ import annotations

import datetime as dt
from collections import Counter

from django.db import transaction
from django.utils import timezone

from tidesched_web import env
from tidesched_web.accounts.models import BusinessLine, Project, Tenant
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.models import Cluster, ClusterMode
from tidesched_web.common.actors import SYSTEM
from tidesched_web.common.models import ServiceType
from tidesched_web.engine import demo
from tidesched_web.quota import services as quota
from tidesched_web.quota.services.tide_plans import write_tide_plan

SLUG = "demo"
_REASON = "The demo that comes with a new installation."
_SCHEDULER = "tidesched"
# To look at and to switch on: what inference does not need at night is promised to nobody then.
_NIGHTS = {
    "enabled": False,
    "time_zone": "Asia/Shanghai",
    "layers": [
        {
            "name": "night",
            "days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"],
            "start": "23:30",
            "end": "06:30",
            "quota": {
                "borealis-chat": {"NVIDIA-H200": {"add": -16}},
                "atlas-web-search": {"NVIDIA-H200": {"add": -8}},
            },
        },
        {
            "name": "weekend",
            "days": ["sat", "sun"],
            "start": "06:30",
            "end": "23:30",
            "quota": {"atlas-ads": {"NVIDIA-H800": {"set": 24}}},
        },
    ],
}


def ensure_demo(*, url: str, token: str) -> tuple[Cluster, bool]:
    """The demo's cluster, and whether it is new. An old one gets the address and the token of now."""
    with transaction.atomic():
        cluster = Cluster.objects.filter(slug=SLUG).first()
        if cluster is not None:
            return clusters.set_connection(cluster=cluster, api_url=url, token=token, actor=SYSTEM), False
        cluster = _make_cluster(url, token)
        tenants = {t.slug: quota.ensure_tenant(slug=t.slug, name=t.name, actor=SYSTEM) for t in demo.TENANTS}
        _make_owners(cluster, tenants)
        return cluster, True


def _make_cluster(url: str, token: str) -> Cluster:
    cluster = clusters.create(
        name="Demo",
        slug=SLUG,
        api_url=url,
        token=token,
        mode=ClusterMode.SCHEDULE,
        simulated=True,
        clock_rate=float(env.text("DEMO_RATE", "144")),
        clock_anchor=dt.datetime.fromtimestamp(demo.START, dt.UTC),
        clock_wall_anchor=timezone.now(),
        scheduler_names=[_SCHEDULER],
        actor=SYSTEM,
        reason=_REASON,
    )
    clusters.set_policy(
        cluster=cluster, text=demo.FOUNDING_POLICY, actor=SYSTEM, reason="The founding policy.", released=True
    )
    for card in demo.card_types():
        clusters.ensure_card_type(
            cluster=cluster,
            name=card.name,
            resource=card.resource,
            kind=card.kind.value,
            parent=card.parent or "",
            actor=SYSTEM,
        )
    quota.ensure_default_priority_classes(cluster=cluster, actor=SYSTEM)
    return cluster


def _make_owners(cluster: Cluster, tenants: dict[str, Tenant]) -> None:
    projects = {
        (t.slug, p.slug): quota.ensure_project(tenant=tenants[t.slug], slug=p.slug, name=p.name, actor=SYSTEM)
        for t in demo.TENANTS
        for p in t.projects
    }
    lines = {
        line.slug: quota.ensure_business_line(
            tenant=tenants.get(line.tenant), slug=line.slug, name=line.name, actor=SYSTEM
        )
        for line in demo.BUSINESS_LINES
    }
    _give_quota(cluster, tenants, projects)
    for described in demo.QUEUES:
        _make_queue(cluster, described, projects, lines)
    write_tide_plan(cluster=cluster, name="nights", document=_NIGHTS, actor=SYSTEM, reason=_REASON)


def _give_quota(cluster: Cluster, tenants: dict[str, Tenant], projects: dict[tuple[str, str], Project]) -> None:
    """Each tenant and project gets exactly what its queues have together."""
    of_tenant: dict[tuple[str, str], Counter[str]] = {}
    of_project: dict[tuple[str, str], Counter[str]] = {}
    for queue in demo.QUEUES:
        if queue.tenant:
            of_tenant.setdefault((queue.tenant, queue.service_type), Counter()).update(queue.card_quota)
        if queue.project:
            of_project.setdefault((queue.tenant, queue.project), Counter()).update(queue.card_quota)
    for (tenant, service_type), cards in sorted(of_tenant.items()):
        quota.set_card_quota(
            cluster=cluster,
            owner=tenants[tenant],
            cards=cards,
            service_type=service_type,
            actor=SYSTEM,
            reason=_REASON,
        )
    for key, cards in sorted(of_project.items()):
        quota.set_card_quota(
            cluster=cluster,
            owner=projects[key],
            cards=cards,
            service_type=ServiceType.INFERENCE,
            actor=SYSTEM,
            reason=_REASON,
        )


def _make_queue(
    cluster: Cluster,
    described: demo.DemoQueue,
    projects: dict[tuple[str, str], Project],
    lines: dict[str, BusinessLine],
) -> None:
    queue = quota.ensure_queue(
        cluster=cluster,
        name=described.name,
        service_type=described.service_type,
        project=projects[described.tenant, described.project] if described.project else None,
        business_line=lines[described.business_line] if described.business_line else None,
        weight=described.weight,
        priority=described.priority,
        reclaimable=described.reclaimable,
        cpu_milli=described.cpu * 1000,
        memory_mib=described.memory_gib * 1024,
        card_quota=described.card_quota,
        actor=SYSTEM,
        reason=_REASON,
    )
    for namespace in described.namespaces:
        quota.ensure_grant(queue=queue, namespace=namespace, actor=SYSTEM, reason=_REASON)
