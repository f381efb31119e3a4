from collections.abc import Callable, Mapping
from typing import Any, Protocol

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.accounts.models import Project, Tenant
from tidesched_web.api.v1.references import referred
from tidesched_web.api.v1.serializers.changes import ChangeDocument
from tidesched_web.api.views import ReadView
from tidesched_web.api.writes import expected_version, is_dry_run
from tidesched_web.changes import services
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.changes.selectors import visible_changes
from tidesched_web.changes.tree_document import key_of
from tidesched_web.clusters.models import Cluster
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import Access

Edits = Mapping[str, Any]


class Asked(Protocol):
    access: Access

    def get_serializer_context(self) -> dict[str, Any]:
        """What the document of a change needs."""


def _at_object(errors: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [error | {"pointer": error["field"]} if "field" in error else error for error in errors]


def preview(view: ReadView, cluster: Cluster, edits: Edits, *, whole: bool = False) -> Response:
    """What the edits would do; nothing is done. ``whole``: pointers lead into a change, not into one object."""
    try:
        plan = services.check(cluster=cluster, edits=edits, access=view.access, well_formed=True)
    except DomainError as error:
        if not whole and "errors" in error.extra:
            error.extra["errors"] = _at_object(error.extra["errors"])
        raise
    errors = plan["errors"] if whole else _at_object(plan["errors"])
    return Response({"dry_run": True, "plan": plan | {"errors": errors}})


def carried_out(
    view: ReadView,
    cluster: Cluster,
    edits: Edits,
    *,
    reason: str,
    done: Callable[[], Response],
    versions: Mapping[str, int] | None = None,
) -> Response:
    try:
        change = services.carry_out(
            cluster=cluster, edits=edits, access=view.access, reason=reason, source="api", versions=versions
        )
    except DomainError as error:
        if "errors" in error.extra:
            error.extra["errors"] = _at_object(error.extra["errors"])
        raise
    return accepted(view, change) if change.state == ChangeState.WAITING else done()


def accepted(view: Asked, change: QuotaChange) -> Response:
    row = visible_changes(view.access).get(pk=change.pk)
    document = ChangeDocument(row, context=view.get_serializer_context()).data
    headers = {"Location": document["url"], "ETag": f'"{row.version}"'}
    return Response(document, status=status.HTTP_202_ACCEPTED, headers=headers)


def quota_patch(
    view: ReadView, request: Request, holder: Tenant | Project, *, quota: Any, reason: str, fields: Mapping[str, Any]
) -> Response:
    """PATCH of what a tenant or project may hand out: ``quota`` as rows like in its document, or by cluster."""
    by_cluster = _by_cluster(view, quota)
    if len(by_cluster) != 1:
        text = "Change the quota of one cluster at a time: each has a tree and a history of its own."
        raise DomainError.for_field("/quota", text, code="against_rules")
    cluster, limits = next(iter(by_cluster.items()))
    if isinstance(holder, Tenant):
        key = key_of("tenant", holder.slug)
    else:
        key = key_of("project", holder.tenant.slug, holder.slug)
    edits = {key: {**fields, "quota": limits}}
    seen = expected_version(request, needed=not is_dry_run(request))
    if is_dry_run(request):
        services.require_versions(cluster, {} if seen is None else {key: seen})
        return preview(view, cluster, edits)
    return carried_out(
        view,
        cluster,
        edits,
        reason=reason,
        done=lambda: view.changed(holder),
        versions={} if seen is None else {key: seen},
    )


def _by_cluster(view: ReadView, quota: Any) -> dict[Cluster, Any]:
    found: dict[Cluster, Any] = {}
    if isinstance(quota, Mapping):
        for slug, limits in quota.items():
            found[_cluster(view, slug)] = limits
        return found
    for row in quota:
        if not isinstance(row, Mapping) or "cluster" not in row or "service_type" not in row:
            raise DomainError.for_field("/quota", "Each row needs cluster and service_type.")
        figures = {"card_quota": row.get("cards", row.get("card_quota"))}
        figures |= {name: row[name] for name in ("cpu_milli", "memory_bytes") if name in row}
        found.setdefault(_cluster(view, row["cluster"]), {})[row["service_type"]] = figures
    return found


def _cluster(view: ReadView, named: int | str) -> Cluster:
    found: Cluster = referred(visible_clusters(view.access), named, "/quota", by="slug")
    return found
