import functools
from collections.abc import Callable
from typing import Any, ClassVar

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.accounts.models import Scope, Tenant
from tidesched_web.accounts.selectors import visible_business_lines, visible_projects, visible_tenants
from tidesched_web.api.body import checked_body, reason_in_address
from tidesched_web.api.idempotency import idempotent
from tidesched_web.api.v1.change_answers import carried_out, preview
from tidesched_web.api.v1.references import referred
from tidesched_web.api.v1.serializers.owners import DeleteInput
from tidesched_web.api.views import ReadView
from tidesched_web.api.writes import expected_version, is_dry_run
from tidesched_web.changes import services
from tidesched_web.changes.tree_document import key_of, parts_of
from tidesched_web.clusters.models import Cluster
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.permissions import require_admin_of, require_administrator
from tidesched_web.quota.owner_selectors import refuse_taken


def kept(method: Callable[..., Response], *, waits: bool = False) -> Callable[..., Response]:
    """`Idempotency-Key` for a POST that is no dry run: a dry run does nothing that could happen twice."""
    run = idempotent(method, waits=waits)

    @functools.wraps(method)
    def answer(view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        return (method if is_dry_run(request) else run)(view, request, *args, **kwargs)

    return answer


class TreeWrites(ReadView):
    """A noun whose rows are documents of a tree: its platform admins write, or its tenants' (`require_writer_of`)."""

    write_scopes = (Scope.QUOTA_WRITE,)
    kind: ClassVar[str]
    versioned: ClassVar[bool] = True

    def known_parameters(self) -> set[str]:
        return {*super().known_parameters(), *(("reason",) if self.action == "destroy" else ())}

    def key_of_row(self, row: Any) -> str:
        return key_of(self.kind, row.name)

    def require_writer_of(self, row: Any) -> None:
        require_administrator(self.access)

    def cluster_of(self, wanted: dict[str, Any]) -> Cluster:
        found: Cluster = referred(visible_clusters(self.access), wanted.pop("cluster"), "/cluster", by="slug")
        return found

    def make(self, cluster: Cluster, key: str, document: dict[str, Any], reason: str, **found: Any) -> Response:
        edits = {key: {name: value for name, value in document.items() if value is not None}}
        refuse_taken(cluster, self.kind, *parts_of(key))
        if is_dry_run(self.request):
            return preview(self, cluster, edits)

        def done() -> Response:
            return self.made(self.visible().get(cluster=cluster, **found))

        return carried_out(self, cluster, edits, reason=reason, done=done)

    def edit(self, row: Any, patch: dict[str, Any], reason: str) -> Response:
        key = self.key_of_row(row)
        seen = self._seen(key)
        if is_dry_run(self.request):
            services.require_versions(row.cluster, seen)
            return preview(self, row.cluster, {key: patch})
        return carried_out(
            self, row.cluster, {key: patch}, reason=reason, done=lambda: self.changed(row), versions=seen
        )

    def remove(self, row: Any) -> Response:
        key = self.key_of_row(row)
        seen = self._seen(key)
        body, in_address = checked_body(DeleteInput, self.request), reason_in_address(self.request)
        if is_dry_run(self.request):
            services.require_versions(row.cluster, seen)
            return preview(self, row.cluster, {key: None})
        reason = body.get("reason") or in_address
        return carried_out(
            self,
            row.cluster,
            {key: None},
            reason=reason,
            done=lambda: Response(status=status.HTTP_204_NO_CONTENT),
            versions=seen,
        )

    def _seen(self, key: str) -> dict[str, int]:
        seen = expected_version(self.request, needed=self.versioned and not is_dry_run(self.request))
        return {} if seen is None else {key: seen}

    def writable(self) -> Any:
        row = self.get_object()
        self.require_writer_of(row)
        return row


def queue_owner(view: ReadView, wanted: dict[str, Any]) -> dict[str, Any]:
    """``tenant``, ``project`` and ``business_line`` of a body (ids or slugs) as the slugs of a document."""
    found: dict[str, Any] = {}
    tenant = wanted.pop("tenant", None)
    owner: Tenant | None = None
    if tenant is not None:
        owner = referred(visible_tenants(view.access), tenant, "/tenant", by="slug")
    for name, rows in (
        ("project", visible_projects(view.access)),
        ("business_line", visible_business_lines(view.access)),
    ):
        named = wanted.pop(name, None)
        if named is None:
            continue
        among = rows if owner is None else rows.filter(tenant=owner)
        row = referred(among, named, f"/{name}", by="slug")
        found[name] = row.slug
        owner = row.tenant
    if owner is not None:
        found["tenant"] = owner.slug
    require_admin_of(view.access, owner.pk if owner else None)
    return found
