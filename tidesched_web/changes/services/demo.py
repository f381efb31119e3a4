"""The demo's intent, made once in one transaction: what people change in it afterwards is theirs."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence

import msgspec
from django.db import transaction
from django.utils import timezone

from tidesched_web import env
from tidesched_web.accounts.demo_people import Offered
from tidesched_web.accounts.models import BusinessLine, Project, Tenant
from tidesched_web.changes.services import demo_hall, demo_life
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.models import Cluster, ClusterMode
from tidesched_web.common.actors import SYSTEM
from tidesched_web.common.models import ServiceType
from tidesched_web.engine import demo
from tidesched_web.quota import services as quota
from tidesched_web.quota.services.tide_plans import write_tide_plan
from tidesched_web.scheduling import drawn_history_services as drawn_history

SLUG = "demo"
_SCHEDULER = "tidesched"
# What inference does not need at noon and at night goes to training; the demo's tide runs by UTC.
_EVERY_DAY = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_TIDES = {
    "enabled": True,
    "time_zone": "UTC",
    "layers": [
        {
            "name": "noon",
            "days": _EVERY_DAY,
            "start": "12:30",
            "end": "15:30",
            "quota": {
                "borealis-chat": {"NVIDIA-H200": {"add": -8}},
                "atlas-web-search": {"NVIDIA-H200": {"add": -4}},
            },
        },
        {
            "name": "night",
            "days": _EVERY_DAY,
            "start": "23:30",
            "end": "06:30",
            "quota": {
                "borealis-chat": {"NVIDIA-H200": {"add": -24}},
                "atlas-web-search": {"NVIDIA-H200": {"add": -12}},
                "atlas-ads": {"NVIDIA-H800": {"add": -8}},
            },
        },
    ],
}
# With it the queues are promised more slices than the nodes have: the tree marks it and an alert says so.
_OVER_PROMISED = {"fjord-evaluation": {"NVIDIA-A100/mig-1g.10gb-mixed": 40}}
_QUEUES = tuple(
    msgspec.structs.replace(queue, card_quota=_OVER_PROMISED.get(queue.name, queue.card_quota)) for queue in demo.QUEUES
)


def ensure_demo(*, url: str, token: str, people: Sequence[Offered] = (), size: str = "S") -> tuple[Cluster, bool]:
    """The demo's cluster, and whether it is new. An old one gets the address and the token of now.

    ``people``: with which passwords the accounts of a new demo are made. ``size``: M for the medium one.
    """
    with transaction.atomic():
        cluster = Cluster.objects.filter(slug=SLUG).first()
        if cluster is not None:
            return clusters.set_connection(cluster=cluster, api_url=url, token=token, actor=SYSTEM), False
        cluster = _make_cluster(url, token, size)
        tenants = {t.slug: quota.ensure_tenant(slug=t.slug, name=t.name, actor=SYSTEM) for t in demo.TENANTS}
        _make_owners(cluster, tenants)
        seed = int(env.text("DEMO_SEED", "1"))
        if size == "M":
            demo_hall.add_hall(cluster, seed)
        else:
            drawn_history.draw_use(cluster=cluster, hardware=demo.hardware(size), seed=seed)
        demo_life.make_people(people, tenants)
        demo_life.ask_for_cards(cluster)
        return cluster, True


def _make_cluster(url: str, token: str, size: str) -> Cluster:
    cluster = clusters.create(
        # On every page of the medium one it is said that what lies before its first moment was not measured.
        name="Demo (drawn history)" if size == "M" else "Demo",
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
        reason=demo_life.REASON,
    )
    clusters.set_policy(
        cluster=cluster, text=demo.FOUNDING_POLICY, actor=SYSTEM, reason="The founding policy.", released=True
    )
    for card in demo.card_types(size):
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
    for described in _QUEUES:
        _make_queue(cluster, described, projects, lines)
    write_tide_plan(cluster=cluster, name="tides", document=_TIDES, actor=SYSTEM, reason=demo_life.REASON)


def _give_quota(cluster: Cluster, tenants: dict[str, Tenant], projects: dict[tuple[str, str], Project]) -> None:
    """Each tenant and project gets exactly what its queues have together."""
    of_tenant: dict[tuple[str, str], Counter[str]] = {}
    of_project: dict[tuple[str, str], Counter[str]] = {}
    for queue in _QUEUES:
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
            reason=demo_life.REASON,
        )
    for key, cards in sorted(of_project.items()):
        quota.set_card_quota(
            cluster=cluster,
            owner=projects[key],
            cards=cards,
            service_type=ServiceType.INFERENCE,
            actor=SYSTEM,
            reason=demo_life.REASON,
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
        reason=demo_life.REASON,
    )
    for namespace in described.namespaces:
        quota.ensure_grant(queue=queue, namespace=namespace, actor=SYSTEM, reason=demo_life.REASON)
