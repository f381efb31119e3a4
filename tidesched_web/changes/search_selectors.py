import re
from dataclasses import dataclass
from typing import Any

from django.db.models import CharField, F, Q, QuerySet, Value
from django.db.models.functions import Cast, Concat

from tidesched_web.accounts.models import User
from tidesched_web.accounts.selectors import visible_projects, visible_tenants
from tidesched_web.changes.selectors import visible_changes
from tidesched_web.clusters.models import Cluster
from tidesched_web.clusters.selectors import visible_nodes
from tidesched_web.common.permissions import Access
from tidesched_web.quota.selectors import visible_queues_of
from tidesched_web.scheduling.selectors import visible_reclaims
from tidesched_web.workloads.selectors import visible_gangs

# So many hits of each kind are shown: who finds more writes more of the name.
HITS = 12
_NUMBER = re.compile(r"(?:#|\D+[ #])?(\d{1,18})")


@dataclass(frozen=True, slots=True)
class Hit:
    kind: str
    pk: int
    name: str
    text: str
    note: str


def found(access: Access, cluster: Cluster, text: str) -> list[Hit]:
    parts = [
        _rows("queue", visible_queues_of(cluster, access).filter(name__icontains=text), "name", "service_type"),
        _gangs(access, cluster, text),
        _rows(
            "node", visible_nodes(access).filter(cluster=cluster, name__icontains=text, gone_at__isnull=True), "name"
        ),
        _rows("tenant", visible_tenants(access).filter(_named(text)), "slug", "", "name"),
        _rows("project", visible_projects(access).filter(_named(text)), "slug", "tenant__slug", "name"),
        _changes(access, cluster, text),
        _reclaims(access, cluster, text),
    ]
    if access.everything:  # the pages of accounts are for them alone
        named = Q(username__icontains=text) | Q(first_name__icontains=text) | Q(last_name__icontains=text)
        parts.append(_rows("user", User.objects.filter(named), "username", "platform_role"))
    first, *others = parts
    return [Hit(*row) for row in first.union(*others, all=True)]


def _named(text: str) -> Q:
    return Q(slug__icontains=text) | Q(name__icontains=text)


def _number(text: str) -> int | None:
    match = _NUMBER.fullmatch(text)
    return int(match[1]) if match else None


def _gangs(access: Access, cluster: Cluster, text: str) -> QuerySet[Any, Any]:
    namespace, slash, name = text.partition("/")
    gangs = visible_gangs(access).filter(cluster=cluster)
    gangs = (
        gangs.filter(namespace__iexact=namespace, name__icontains=name) if slash else gangs.filter(name__icontains=text)
    )
    key = Concat(F("namespace"), Value("/"), F("name"), output_field=CharField())
    return _rows("gang", gangs, "name", "state", key, order=("-submitted_at", "-id"))


def _changes(access: Access, cluster: Cluster, text: str) -> QuerySet[Any, Any]:
    wanted = Q(reason__icontains=text) | Q(created_by__icontains=text)
    if (number := _number(text)) is not None:
        wanted |= Q(pk=number)
    return _rows("change", visible_changes(access).filter(wanted, cluster=cluster), "created_by", "state", "reason")


def _reclaims(access: Access, cluster: Cluster, text: str) -> QuerySet[Any, Any]:
    wanted = Q(reclaimer__icontains=text)
    if (number := _number(text)) is not None:
        wanted |= Q(pk=number)
    rows = visible_reclaims(access).prefetch_related(None).filter(wanted, cluster=cluster)
    return _rows("reclaim", rows, "action", "state", "reclaimer", order=("-pk",))


def _rows(
    kind: str,
    rows: QuerySet[Any],
    name: str,
    note: str = "",
    text: str | Concat = "",
    *,
    order: tuple[str, ...] = ("pk",),
) -> QuerySet[Any, Any]:
    words = Cast(text or name, CharField()) if isinstance(text, str) else text
    chosen = rows.select_related(None).order_by(*order)
    return chosen.values_list(
        Value(kind, output_field=CharField()),
        F("pk"),
        Cast(name, CharField()),
        words,
        Cast(note, CharField()) if note else Value("", output_field=CharField()),
    )[:HITS]
