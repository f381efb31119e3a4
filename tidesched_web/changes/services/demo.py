import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec
from django.db import transaction
from django.utils import timezone

from tidesched_web import env
from tidesched_web.accounts.demo_people import Offered
from tidesched_web.accounts.models import Tenant
from tidesched_web.changes.services import demo_life
from tidesched_web.changes.services.applying import carry_out
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.models import Cluster, ClusterMode
from tidesched_web.common.actors import SYSTEM
from tidesched_web.common.permissions import Access
from tidesched_web.engine import demo
from tidesched_web.quota.models import DEFAULT_PRIORITY_CLASSES
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
            "quota": {"borealis-chat": {"NVIDIA-H200": {"add": -8}}, "atlas-web-search": {"NVIDIA-H200": {"add": -4}}},
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
    with transaction.atomic():
        cluster = Cluster.objects.filter(slug=SLUG).first()
        if cluster is not None:
            return clusters.set_connection(cluster=cluster, api_url=url, token=token, actor=SYSTEM), False
        cluster = _make_cluster(url, token, size)
        _carry_out(cluster, _tree(), demo_life.REASON)
        seed = int(env.text("DEMO_SEED", "1"))
        if size == "M":
            hall = _edits(demo.HALL_TENANTS, demo.HALL_BUSINESS_LINES, demo.hall_queues())
            _carry_out(cluster, hall, "The second hall of the medium demo.")
            drawn_history.draw(cluster=cluster, hardware=demo.hardware("M"), seed=seed)
        else:
            drawn_history.draw_use(cluster=cluster, hardware=demo.hardware(size), seed=seed)
        demo_life.make_people(people, {tenant.slug: tenant for tenant in Tenant.objects.all()})
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
    return cluster


def _carry_out(cluster: Cluster, edits: dict[str, Any], reason: str) -> None:
    access = Access(actor=SYSTEM, everything=True, administers=True)
    carry_out(cluster=cluster, edits=edits, access=access, reason=reason)


def _tree() -> dict[str, Any]:
    classes = {
        f"priority-class/{name}": {"value": value, "description": f"{name[3:].title()} priority class for Volcano."}
        for name, value in DEFAULT_PRIORITY_CLASSES.items()
    }
    return {**classes, **_edits(demo.TENANTS, demo.BUSINESS_LINES, _QUEUES), "tide-plan/tides": _TIDES}


def _edits(
    tenants: Sequence[demo.DemoTenant], lines: Sequence[demo.DemoBusinessLine], queues: Sequence[demo.DemoQueue]
) -> dict[str, Any]:
    """The tree of some owners and queues; each tenant and project gets exactly what its queues have together."""
    of_tenant: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    of_project: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for queue in queues:
        of_tenant[queue.tenant, queue.service_type].update(queue.card_quota)
        of_project[queue.tenant, queue.project].update(queue.card_quota)
    edits: dict[str, Any] = {}
    for tenant in tenants:
        kinds = {kind: of_tenant[tenant.slug, kind] for kind in ("inference", "training")}
        quota = {kind: {"card_quota": dict(cards)} for kind, cards in kinds.items() if cards}
        edits[f"tenant/{tenant.slug}"] = {"name": tenant.name, "quota": quota}
        for project in tenant.projects:
            cards = {"card_quota": dict(of_project[tenant.slug, project.slug])}
            document = {"name": project.name, "quota": {"inference": cards}}
            edits[f"project/{tenant.slug}/{project.slug}"] = document
    for line in lines:
        edits[f"business-line/{line.tenant or '-'}/{line.slug}"] = {"name": line.name}
    for queue in queues:
        edits[f"queue/{queue.name}"] = _queue(queue)
        edits |= {f"grant/{namespace}/{queue.name}": {} for namespace in queue.namespaces}
    return edits


def _queue(queue: demo.DemoQueue) -> dict[str, Any]:
    document = {
        "service_type": queue.service_type,
        "weight": queue.weight,
        "priority": queue.priority,
        "reclaimable": queue.reclaimable,
        "cpu_milli": queue.cpu * 1000,
        "memory_bytes": queue.memory_gib * 2**30,
        "card_quota": queue.card_quota,
    }
    owners = {"tenant": queue.tenant, "project": queue.project, "business_line": queue.business_line}
    return document | {name: value for name, value in owners.items() if value}
