"""Deleting a project that has quotas: a change of its cluster's tree, with plan, approval and rollback."""

from __future__ import annotations

from tidesched_web.accounts.models import Project
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.services.applying import carry_out
from tidesched_web.changes.tree_document import key_of
from tidesched_web.common.permissions import Access
from tidesched_web.quota.dependent_selectors import clusters_with_quota_of
from tidesched_web.quota.services import delete_project, has_quotas


def remove_project(
    *, project: Project, access: Access, reason: str, version: int | None = None, source: str = "console"
) -> QuotaChange | None:
    """Delete a project: at once where it has no quota (None), else by the change that is returned.

    Raises:
        DomainError: ``in_use`` (409) while it has queues, or quotas in several clusters, with the way out.
    """
    clusters = clusters_with_quota_of(project)
    if not clusters:
        delete_project(project=project, actor=access.actor, version=version, reason=reason)
        return None
    if len(clusters) > 1:
        raise has_quotas(project, clusters)
    key = key_of("project", project.tenant.slug, project.slug)
    seen = {} if version is None else {key: version}
    return carry_out(cluster=clusters[0], edits={key: None}, access=access, reason=reason, source=source, versions=seen)
