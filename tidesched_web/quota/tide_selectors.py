import datetime as dt
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from django.db.models import BooleanField, Q, QuerySet
from django.db.models.expressions import RawSQL

from tidesched_web.clusters.models import Cluster
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.models import ServiceType
from tidesched_web.common.permissions import Access
from tidesched_web.quota import tide, tide_rules
from tidesched_web.quota.models import Queue, SyncState, TidePlan, TideStep
from tidesched_web.quota.selectors import card_quota_of, visible_queues, with_card_quota
from tidesched_web.quota.tide_turns import Turn, turns
from tidesched_web.quota.tree_selectors import quota_trees


def visible_tide_steps(access: Access) -> QuerySet[TideStep]:
    """Steps in visible clusters; a member sees those of the queues of their tenants."""
    steps = TideStep.objects.filter(cluster__in=visible_clusters(access)).select_related("queue")
    return steps if access.everything else steps.filter(queue__in=visible_queues(access).values("pk"))


def steps_of_plan(access: Access, cluster_id: int, name: str) -> QuerySet[TideStep]:
    return visible_tide_steps(access).filter(cluster=cluster_id, plans__contains=[name])


# So many later parts of a stretch are named.
NEXT_PARTS = 2
_NAMES_OWN_QUEUE = """
EXISTS (SELECT 1 FROM jsonb_array_elements(quota_tideplan.layers) AS layer,
                      jsonb_object_keys(layer->'quota') AS named
        JOIN quota_queue q ON q.name = named
        WHERE q.cluster_id = quota_tideplan.cluster_id AND q.tenant_id = ANY(%s))
"""


def visible_tide_plans(access: Access) -> QuerySet[TidePlan]:
    """Tide plans of visible clusters; for a member those that are about a queue of theirs."""
    plans = TidePlan.objects.filter(cluster__in=visible_clusters(access)).select_related("cluster")
    if access.everything:
        return plans
    names_own = RawSQL(_NAMES_OWN_QUEUE, [sorted(access.tenant_ids)], output_field=BooleanField())  # noqa: S611 - bound
    return plans.filter(names_own)


def visible_queue_names(access: Access, cluster_ids: Collection[int]) -> set[tuple[int, str]]:
    """The queues of these clusters whose quota the caller may read in a plan; nothing is asked for who sees all."""
    queues = Queue.objects.filter(cluster_id__in=cluster_ids, tenant_id__in=access.tenant_ids)
    return set() if access.everything else set(queues.values_list("cluster_id", "name"))


def layers_in_sight(
    plan: TidePlan, access: Access, names: Collection[tuple[int, str]]
) -> tuple[list[dict[str, Any]], int]:
    """The layers of a plan with the queues that the caller may see, and how many queues are left out."""
    if access.everything:
        return plan.layers, 0
    shown, hidden = [], set()
    for layer in plan.layers:
        own = {queue: cards for queue, cards in layer["quota"].items() if (plan.cluster_id, queue) in names}
        hidden |= set(layer["quota"]) - set(own)
        if own:
            shown.append({**layer, "quota": own})
    return shown, len(hidden)


def document_of(plan: TidePlan) -> dict[str, Any]:
    return {
        "enabled": plan.enabled,
        "exceptions": plan.exceptions,
        "layers": plan.layers,
        "position": plan.position,
        "time_zone": plan.time_zone,
    }


def plan_documents(cluster: Cluster) -> dict[str, dict[str, Any]]:
    return {plan.name: document_of(plan) for plan in TidePlan.objects.filter(cluster=cluster)}


@dataclass(frozen=True)
class _Asked:
    cluster: Cluster
    plans: list[tide.Plan]
    base: tide.Quota
    now: dt.datetime


def effective_by_name(
    cluster: Cluster, plans: list[tide.Plan], base: tide.Quota, *, now: dt.datetime | None = None
) -> dict[str, dict[str, int]]:
    return _effective([_Asked(cluster, plans, base, now or cluster.clock())])[cluster.pk]


def _effective(asked: list[_Asked]) -> dict[int, dict[str, dict[str, int]]]:
    """A floor may hold back what the plans give to other queues, so all that they touch are looked at."""
    found = {one.cluster.pk: {queue: dict(cards) for queue, cards in one.base.items()} for one in asked}
    turned = {one.cluster.pk: (one, tide.touched(one.plans)) for one in asked}
    turned = {pk: (one, names) for pk, (one, names) in turned.items() if names.intersection(one.base)}
    if not turned:
        return found
    theirs = Q()
    for pk, (_one, names) in turned.items():
        theirs |= Q(cluster=pk, name__in=names)
    queues = Queue.objects.filter(theirs)
    floors = _floors(queues)
    for pk, (one, _names) in turned.items():
        found[pk] = tide.effective_quota(one.base, one.plans, one.now, floors.get(pk, {}))
    floored = {pk: one for pk, (one, _names) in turned.items() if pk in floors}
    if not floored:
        return found
    touched: dict[int, dict[str, dict[str, int]]] = {pk: {} for pk in floored}
    for row in with_card_quota(queues.filter(cluster__in=floored)):
        touched[row.cluster_id][row.name] = card_quota_of(row)
    trees = cache(lambda: quota_trees(one.cluster for one in floored.values()))
    for pk, one in floored.items():
        tree = partial(lambda pk: trees()[pk], pk)
        held = tide_rules.effective(touched[pk], one.plans, one.now, floors[pk], tree)
        found[pk] |= {queue: cards for queue, cards in held.items() if queue in found[pk]}
    return found


def _floors(queues: QuerySet[Queue]) -> dict[int, dict[str, dict[str, int]]]:
    rows = queues.filter(service_type=ServiceType.INFERENCE).exclude(usage__allocated=0)
    found: dict[int, dict[str, dict[str, int]]] = {}
    for cluster, name, card, milli in rows.values_list("cluster_id", "name", "usage__card", "usage__allocated"):
        if milli:
            found.setdefault(cluster, {}).setdefault(name, {})[card] = math.ceil(milli / 1000)
    return found


def effective_now(cluster: Cluster, queues: Iterable[Queue]) -> dict[int, dict[str, int]]:
    rows = list(queues)
    base = {queue.name: card_quota_of(queue) for queue in rows}
    plans = tide.enabled_plans(plan_documents(cluster))
    quota = effective_by_name(cluster, plans, base) if plans else base
    return {queue.pk: dict(quota[queue.name]) for queue in rows}


def effective_of(queues: Iterable[Queue]) -> dict[int, dict[str, int]]:
    by_cluster: dict[int, list[Queue]] = {}
    for queue in queues:
        by_cluster.setdefault(queue.cluster_id, []).append(queue)
    plans, asked = _plans_on(by_cluster), []
    for pk, rows in by_cluster.items():
        cluster, base = rows[0].cluster, {queue.name: card_quota_of(queue) for queue in rows}
        asked.append(_Asked(cluster, plans.get(pk, []), base, cluster.clock()))
    quota = _effective(asked)
    return {queue.pk: dict(quota[pk][queue.name]) for pk, rows in by_cluster.items() for queue in rows}


@dataclass(frozen=True)
class QueueTurn:
    """What tide plans make of a figure of a queue, now or next; ``since``: when the present figure was sent."""

    queue: Queue
    turn: Turn
    since: dt.datetime | None = None

    @property
    def sent(self) -> int:
        return int(self.queue.tide.get(self.turn.card, self.turn.base))

    @property
    def moved(self) -> int:
        return max(0, self.turn.base - self.sent if self.turn.lends else self.sent - self.turn.base)

    @property
    def next_parts(self) -> list[dict[str, Any]]:
        found, before = [], self.turn.by
        for change in self.turn.changes[:NEXT_PARTS]:
            by = abs(change.cards - self.turn.base)
            found.append({"at": change.at, "by": by, "back": max(0, before - by), "plans": change.plans})
            before = by
        return found


def turns_of(queues: QuerySet[Queue], clusters: Iterable[Cluster]) -> list[QueueTurn]:
    """Of a plan that is about other queues too only its name is in it. Three queries."""
    by_cluster = {cluster.pk: cluster for cluster in clusters}
    plans = _plans_on(by_cluster)
    theirs = Q(pk__in=[])
    for pk, standing in plans.items():
        theirs |= Q(cluster=pk, name__in=tide.touched(standing))
    rows: dict[int, list[Queue]] = {}
    for row in with_card_quota(queues.filter(theirs)).order_by("name") if plans else ():
        rows.setdefault(row.cluster_id, []).append(row)
    return _with_steps([one for pk, named in rows.items() for one in _turns(named, plans[pk], by_cluster[pk])])


def turns_of_queue(queue: Queue, cluster: Cluster) -> list[QueueTurn]:
    return _with_steps(_turns([queue], _plans_on([cluster.pk]).get(cluster.pk, []), cluster))


def _with_steps(found: list[QueueTurn]) -> list[QueueTurn]:
    """Of the open ones since when the cluster has the figure: by its step; by the clock where no step is kept."""
    queues = {one.queue.pk for one in found if one.turn.is_open}
    steps = TideStep.objects.filter(queue__in=queues).order_by("queue_id", "card", "-id").distinct("queue_id", "card")
    newest = {(step.queue_id, step.card): step for step in steps} if queues else {}
    told = []
    for one in found:
        step = newest.get((one.queue.pk, one.turn.card))
        if not one.turn.is_open:
            since = None
        elif step is None:
            since = one.turn.start if one.sent == one.turn.cards else None
        else:
            since = step.at if step.after == one.sent else None
        told.append(replace(one, since=since))
    return told


def _plans_on(cluster_ids: Iterable[int]) -> dict[int, list[tide.Plan]]:
    documents: dict[int, dict[str, Mapping[str, Any]]] = {}
    for plan in TidePlan.objects.filter(cluster_id__in=list(cluster_ids), enabled=True):
        documents.setdefault(plan.cluster_id, {})[plan.name] = document_of(plan)
    return {pk: tide.enabled_plans(named) for pk, named in documents.items()}


def _turns(rows: Iterable[Queue], plans: list[tide.Plan], cluster: Cluster) -> list[QueueTurn]:
    by_name = {row.name: row for row in rows}
    base = {name: card_quota_of(row) for name, row in by_name.items()}
    return [QueueTurn(by_name[turn.queue], turn) for turn in turns(base, plans, cluster.clock())] if plans else []


@dataclass(frozen=True)
class BaseQuota:
    """What a queue may use without tide plans, card → cards, and the plans with an open layer that is about it."""

    cards: Mapping[str, int]
    plans: tuple[str, ...]


def base_quota(cluster: Cluster, names: Collection[str], now: dt.datetime) -> dict[str, BaseQuota]:
    plans = tide.enabled_plans(plan_documents(cluster))
    turning: dict[str, list[str]] = {}
    for place, layer in tide.open_layers(plans, now):
        for queue in plans[place].layers[layer].quota:
            turning.setdefault(queue, []).append(plans[place].name)
    rows = with_card_quota(Queue.objects.filter(cluster=cluster, name__in=names))
    return {row.name: BaseQuota(card_quota_of(row), tuple(sorted({*turning.get(row.name, ())}))) for row in rows}


def beyond_base(base: Mapping[str, int], quota: Mapping[str, int]) -> dict[str, int]:
    """Where the quota that holds is another than the base: what `Queue.tide` remembers of a push."""
    return {card: quota.get(card, 0) for card in sorted({*base, *quota}) if quota.get(card, 0) != base.get(card, 0)}


def tide_due(cluster: Cluster) -> list[int]:
    """Queues whose cluster has something else than what holds now; one that the cluster refused waits for a person."""
    plans = tide.enabled_plans(plan_documents(cluster))
    queues = Queue.objects.filter(cluster=cluster).exclude(sync_state=SyncState.FAILED)
    rows = list(with_card_quota(queues).filter(Q(name__in=tide.touched(plans)) | ~Q(tide={})))
    base = {queue.name: card_quota_of(queue) for queue in rows}
    quota = effective_by_name(cluster, plans, base)
    return [queue.pk for queue in rows if beyond_base(base[queue.name], quota[queue.name]) != queue.tide]


def clusters_with_tide() -> QuerySet[Cluster]:
    enabled = TidePlan.objects.filter(enabled=True).values("cluster_id")
    told = Queue.objects.exclude(tide={}).values("cluster_id")
    return Cluster.objects.filter(Q(pk__in=enabled) | Q(pk__in=told))
