from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.contrib.postgres.fields import ArrayField
from django.db.models import Func, IntegerField, Q, QuerySet, TextField

from tidesched_web.accounts.models import BusinessLine, Project, Tenant
from tidesched_web.changes.documents import RULES
from tidesched_web.changes.models import ChangeObject, ChangeRevision, ChangeState, QuotaChange
from tidesched_web.changes.tree_document import (
    Difference,
    Document,
    Documents,
    key_of,
    kind_of,
    parts_of,
    touches,
    written_value,
)
from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.clusters.selectors import aliases_of, visible_clusters
from tidesched_web.common.models import ServiceType
from tidesched_web.common.permissions import Access
from tidesched_web.quota.models import (
    CardQuota,
    ComputeQuota,
    NamespaceGrant,
    PriorityClass,
    Queue,
    QuotaTree,
    TidePlan,
)
from tidesched_web.quota.selectors import compute_hardware_of, hardware_of
from tidesched_web.quota.tide_selectors import document_of
from tidesched_web.scheduling.models import QueueUsage
from tidesched_web.workloads.selectors import live_gangs

MIB = 2**20


@dataclass(frozen=True)
class TreeReading:
    """``hardware``: what nodes have shown of each card type; ``card_names`` knows the declared ones too."""

    documents: Documents
    tenant_ids: Mapping[str, int]
    card_names: frozenset[str] = frozenset()
    hardware: Mapping[str, int] = field(default_factory=dict)
    card_aliases: Mapping[str, str] = field(default_factory=dict)
    card_rows: Mapping[str, CardType] = field(default_factory=dict)


def read_tree(cluster: Cluster, access: Access | None = None) -> Documents:
    """Eleven queries, whatever the size of the tree. Under the lock of the tree it is what a write decides on."""
    reading = reading_of(cluster)
    return reading.documents if access is None else within_sight(reading, access)


def reading_of(cluster: Cluster) -> TreeReading:
    cards, compute = _card_rows(cluster), _compute_rows(cluster)
    documents: Documents = {}
    tenants: dict[int, str] = {}
    for pk, slug, name, description, approval in Tenant.objects.values_list(
        "pk", "slug", "name", "description", "approval_required"
    ):
        tenants[pk] = slug
        quota = _limits(cards["tenant", pk], compute["tenant", pk])
        documents[key_of("tenant", slug)] = _set(
            approval_required=approval, description=description, name=name, quota=quota
        )
    projects: dict[int, str] = {}
    for key, pk, slug, name in _owners("project", Project):
        projects[pk] = slug
        documents[key] = {"name": name, "quota": _limits(cards["project", pk], compute["project", pk])}
    lines: dict[int, str] = {}
    for key, pk, slug, name in _owners("business-line", BusinessLine):
        lines[pk] = slug
        documents[key] = {"name": name}
    for queue in Queue.objects.filter(cluster=cluster).only(*_INTENT_OF_QUEUE).order_by():
        documents[key_of("queue", queue.name)] = queue_document(
            queue,
            cards["queue", queue.pk].get(queue.service_type, {}),
            tenant=tenants.get(queue.tenant_id or 0),
            project=projects.get(queue.project_id or 0),
            business_line=lines.get(queue.business_line_id or 0),
        )
    documents |= _others(cluster)
    documents[RULES] = _rules(cluster)
    known = list(CardType.objects.filter(cluster=cluster).select_related("parent"))
    for card in known:
        if not card.discovered:
            documents[key_of("card-type", card.name)] = _set(
                aliases=card.aliases or None,
                kind=card.kind,
                parent=card.parent.name if card.parent else None,
                resource=card.resource,
            )
    return TreeReading(
        {key: documents[key] for key in sorted(documents)},
        {slug: pk for pk, slug in tenants.items()},
        frozenset(card.name for card in known),
        {card.name: card.hardware for card in known if card.last_seen_at is not None},
        aliases_of({card.name: card.aliases for card in known}),
        {card.name: card for card in known},
    )


def owner_keys() -> list[str]:
    return [key for key, *_row in (*_owners("project", Project), *_owners("business-line", BusinessLine))]


def _owners(kind: str, model: type[Project] | type[BusinessLine]) -> Iterator[tuple[str, int, str, str]]:
    for tenant, pk, slug, name in model._base_manager.values_list("tenant__slug", "pk", "slug", "name"):
        yield key_of(kind, tenant, slug), pk, slug, name


def _rules(cluster: Cluster) -> Document:
    row = Cluster.objects.values("approval_required", "overcommit_inference", "overcommit_training").get(pk=cluster.pk)
    return {
        "approval_required": row["approval_required"],
        "overcommit_inference_percent": round(row["overcommit_inference"] * 100),
        "overcommit_training_percent": round(row["overcommit_training"] * 100),
    }


# The columns of a queue that its document is made of; the others are not read.
_INTENT_OF_QUEUE = (
    "name",
    "service_type",
    "tenant",
    "project",
    "business_line",
    "weight",
    "priority",
    "reclaimable",
    "cpu_milli",
    "memory_mib",
    "parent",
    "deserved",
    "guarantee",
    "state",
)


def queue_document(
    queue: Queue, cards: Mapping[str, int], *, tenant: str | None, project: str | None, business_line: str | None
) -> Document:
    return _set(
        business_line=business_line,
        card_quota=dict(cards),
        cpu_milli=queue.cpu_milli,
        deserved=queue.deserved or None,
        guarantee=queue.guarantee or None,
        memory_bytes=None if queue.memory_mib is None else queue.memory_mib * MIB,
        parent=queue.parent,
        priority=queue.priority,
        project=project,
        reclaimable=queue.reclaimable,
        service_type=queue.service_type,
        state="Open" if queue.state == "Open" else "Closed",
        tenant=tenant,
        weight=queue.weight,
    )


def _set(**fields: Any) -> Document:
    return {name: value for name, value in fields.items() if value is not None and value != ""}


_Cards = dict[str, dict[str, int]]


def _card_rows(cluster: Cluster) -> dict[tuple[str, int], _Cards]:
    rows = (
        CardQuota.objects.filter(cluster=cluster)
        .order_by()
        .values_list("queue_id", "project_id", "tenant_id", "service_type")
        .annotate(
            names=ArrayAgg("card_type__name", order_by="card_type__name"),
            counts=ArrayAgg("cards", order_by="card_type__name"),
        )
    )
    found: dict[tuple[str, int], _Cards] = defaultdict(dict)
    for queue, project, tenant, service_type, names, counts in rows:
        owner = ("queue", queue) if queue else ("project", project) if project else ("tenant", tenant)
        found[owner][service_type] = dict(zip(names, counts, strict=True))
    return found


def _compute_rows(cluster: Cluster) -> dict[tuple[str, int], dict[str, Document]]:
    found: dict[tuple[str, int], dict[str, Document]] = defaultdict(dict)
    for project, tenant, service_type, cpu, memory in ComputeQuota.objects.filter(cluster=cluster).values_list(
        "project_id", "tenant_id", "service_type", "cpu_milli", "memory_mib"
    ):
        owner = ("project", project) if project else ("tenant", tenant)
        figures = _set(cpu_milli=cpu, memory_bytes=None if memory is None else memory * MIB)
        if figures:
            found[owner][service_type] = figures
    return found


def _limits(cards: _Cards, compute: Mapping[str, Document]) -> Document:
    return {
        kind: ({"card_quota": cards[kind]} if kind in cards else {}) | compute.get(kind, {})
        for kind in sorted({*cards, *compute})
    }


def _others(cluster: Cluster) -> Documents:
    documents: Documents = {}
    for row in PriorityClass.objects.filter(cluster=cluster):
        documents[key_of("priority-class", row.name)] = _set(
            description=row.description,
            global_default=row.global_default,
            preemption_policy=row.preemption_policy,
            value=row.value,
        )
    for namespace, queue in NamespaceGrant.objects.filter(cluster=cluster).values_list("namespace", "queue__name"):
        documents[key_of("grant", namespace, queue)] = {}
    for plan in TidePlan.objects.filter(cluster=cluster):
        documents[key_of("tide-plan", plan.name)] = document_of(plan)
    return documents


def within_sight(reading: TreeReading, access: Access) -> Documents:
    """Tide plans name queues of everybody; they are for those who see everything."""
    if access.everything:
        return reading.documents
    own = {slug for slug, pk in reading.tenant_ids.items() if pk in access.tenant_ids}
    return {key: document for key, document in reading.documents.items() if _tenant_sees(key, reading.documents, own)}


def _tenant_sees(key: str, documents: Documents, own: set[str]) -> bool:
    kind = kind_of(key)
    if kind in ("priority-class", "card-type"):
        return True
    return kind != "tide-plan" and tenant_of(key, documents) in own


def tenant_of(key: str, documents: Mapping[str, Document]) -> str | None:
    kind, parts = kind_of(key), parts_of(key)
    if kind in ("tenant", "project"):
        return parts[0]
    if kind == "business-line":
        return None if parts[0] == "-" else parts[0]
    if kind == "grant":
        key = key_of("queue", parts[1])
    return documents.get(key, {}).get("tenant") if kind in ("queue", "grant") else None


# -- what a plan needs to know beside the tree -------------------------------------------------------------------------


@dataclass(frozen=True)
class Surroundings:
    hardware: Mapping[str, int]
    ratios: Mapping[str, float]
    # queue → card → cards in use, and cards promised to admitted gangs; a queue without a figure has neither.
    in_use: Mapping[str, Mapping[str, float]]
    promised: Mapping[str, Mapping[str, float]]
    live_gangs: Mapping[str, int]


def surroundings_of(cluster: Cluster, reading: TreeReading | None = None, leaving: Iterable[str] = ()) -> Surroundings:
    """``leaving`` names the queues that are about to be deleted, whose gangs are counted too."""
    names = list(leaving)
    in_use, promised = use_of_queues(cluster)
    gangs = live_gangs(cluster, names) if names else {}
    return Surroundings(
        hardware=hardware_of(cluster) if reading is None else {**reading.hardware, **compute_hardware_of(cluster)},
        ratios={
            ServiceType.INFERENCE.value: float(cluster.overcommit_inference),
            ServiceType.TRAINING.value: float(cluster.overcommit_training),
        },
        in_use=in_use,
        promised=promised,
        live_gangs=gangs,
    )


def use_of_queues(cluster: Cluster) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    in_use: dict[str, dict[str, float]] = defaultdict(dict)
    promised: dict[str, dict[str, float]] = defaultdict(dict)
    rows = QueueUsage.objects.filter(Q(allocated__gt=0) | Q(inqueue__gt=0), queue__cluster=cluster)
    for queue, card, used, inqueue in rows.values_list("queue__name", "card", "allocated", "inqueue"):
        for milli, found in ((used, in_use), (inqueue, promised)):
            if milli:
                found[queue][card] = milli / 1000
    return in_use, promised


# -- changes -----------------------------------------------------------------------------------------------------------


# What such a change shows was written down when it was applied or ended.
_ENDED = (
    ChangeState.APPLYING,
    ChangeState.APPLIED,
    ChangeState.REJECTED,
    ChangeState.CANCELLED,
    ChangeState.ROLLED_BACK,
)
_IS_OVER = Q(state__in=_ENDED) | Q(state=ChangeState.FAILED, committed_at__isnull=False)


def visible_changes(access: Access) -> QuerySet[QuotaChange]:
    """One's own, still open, show figures of now, so they too may touch nothing else: a role may have been lost."""
    changes = QuotaChange.objects.select_related("cluster")
    if access.everything:
        return changes
    mine = Q(author_id=access.user_id) if access.user_id is not None and access.limited_to is None else Q(pk__in=[])
    within = Q(platform_wide=False, tenant_ids__contained_by=sorted(access.tenant_ids))
    mine &= within | _IS_OVER
    return changes.filter(mine | (within & ~Q(tenant_ids=[])), cluster__in=visible_clusters(access))


# Objects of a change that a list names.
FIRST_TOUCHED = 3
_TOUCHED = "(SELECT count(*) FROM jsonb_object_keys(%(expressions)s))"
_FIRST = """ARRAY(
    SELECT name FROM jsonb_object_keys(%(expressions)s) AS name ORDER BY name COLLATE "C" LIMIT %(most)s
)"""


def with_touched(changes: QuerySet[QuotaChange]) -> QuerySet[QuotaChange]:
    """Without what may be megabytes of each, for lists; ``touched_first``: the first objects by name."""
    names: ArrayField[list[str], list[str]] = ArrayField(TextField())
    return changes.defer("edits", "base", "plan", "failure").annotate(
        touched=Func("edits", template=_TOUCHED, output_field=IntegerField()),
        touched_first=Func("edits", template=_FIRST, most=FIRST_TOUCHED, output_field=names),
    )


def open_draft(
    access: Access, cluster: Cluster, edits: Mapping[str, Any], *, rolls_back: QuotaChange | None = None
) -> QuotaChange | None:
    if access.user_id is None:
        return None
    drafts = QuotaChange.objects.select_related("cluster").filter(
        cluster=cluster, state=ChangeState.DRAFT, author_id=access.user_id, edits=edits, rolls_back=rolls_back
    )
    if rolls_back is None:
        drafts = drafts.filter(base_version=tree_version(cluster))
    return drafts.order_by("-id").first()


def objects_of(change: QuotaChange) -> QuerySet[ChangeObject]:
    return ChangeObject.objects.filter(change=change)


def tree_version(cluster: Cluster) -> int:
    found = QuotaTree.objects.filter(cluster=cluster).values_list("version", flat=True).first()
    return 1 if found is None else found


def row_versions(cluster: Cluster, keys: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    wanted = list(keys)

    def among(kind: str) -> list[tuple[str, ...]]:
        return [parts_of(key) for key in wanted if kind_of(key) == kind]

    named: list[tuple[str, type[Queue] | type[PriorityClass] | type[TidePlan]]] = [
        ("queue", Queue),
        ("priority-class", PriorityClass),
        ("tide-plan", TidePlan),
    ]
    for kind, model in named:
        if names := [parts[0] for parts in among(kind)]:
            rows = model._base_manager.filter(cluster=cluster, name__in=names).values_list("name", "version")
            found |= {key_of(kind, name): version for name, version in rows}
    if RULES in wanted:
        found[RULES] = Cluster.objects.values_list("version", flat=True).get(pk=cluster.pk)
    if slugs := [parts[0] for parts in among("tenant")]:
        tenants = Tenant.objects.filter(slug__in=slugs).values_list("slug", "version")
        found |= {key_of("tenant", slug): version for slug, version in tenants}
    owners: list[tuple[str, type[Project] | type[BusinessLine]]] = [
        ("project", Project),
        ("business-line", BusinessLine),
    ]
    for kind, owner in owners:
        if places := among(kind):
            below = owner._base_manager.filter(slug__in=[place[1] for place in places])
            for tenant, slug, version in below.values_list("tenant__slug", "slug", "version"):
                found[key_of(kind, tenant, slug)] = version
    # A grant has nothing that could be edited: as long as it is there it is its first version.
    for namespace, queue in among("grant"):
        if NamespaceGrant.objects.filter(cluster=cluster, namespace=namespace, queue__name=queue).exists():
            found[key_of("grant", namespace, queue)] = 1
    if names := [parts[0] for parts in among("card-type")]:
        cards = CardType.objects.filter(cluster=cluster, name__in=names).values_list("name", "version")
        found |= {key_of("card-type", name): version for name, version in cards}
    return {key: found[key] for key in wanted if key in found}


def writers_of(
    change: QuotaChange, moved: Iterable[Mapping[str, Any]], access: Access
) -> dict[tuple[str, str], QuotaChange]:
    """It may be older than ``change``: a draft of the grid knows what its author saw when the grid was opened."""
    places = [Difference(entry["object"], entry["field"], entry["before"], entry["after"]) for entry in moved]
    if not places:
        return {}
    written = visible_changes(access).filter(
        cluster=change.cluster_id,
        tree_version__isnull=False,
        edits__has_any_keys=sorted({place.object for place in places}),
    )
    newest = list(written.defer("base", "plan").order_by("-tree_version")[:50])
    found: dict[tuple[str, str], QuotaChange] = {}
    for place in places:
        writer = next((one for one in newest if touches(one.edits, place)), None)
        late = writer is not None and (writer.tree_version or 0) > change.base_version
        if writer is not None and (late or written_value(writer.edits, place) == place.after):
            found[place.object, place.field] = writer
    return found


def written_since(access: Access, cluster: Cluster, version: int) -> list[QuotaChange]:
    written = visible_changes(access).filter(cluster=cluster, tree_version__gt=version)
    return list(written.defer("base", "plan", "failure").order_by("-tree_version")[:20])


def revision_at_version(change: QuotaChange, version: int) -> int:
    rows = ChangeRevision.objects.filter(change=change, version__gte=version).order_by("number")
    found = rows.values_list("number", flat=True).first()
    return change.revision if found is None else found


def at_revision(change: QuotaChange, revision: int) -> ChangeRevision | None:
    return ChangeRevision.objects.filter(change=change, number=revision).first()
