from typing import Any, Final

from django.utils.translation import gettext as _

from tidesched_web.accounts.models import Project, Tenant
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.removal_selectors import removals_of
from tidesched_web.changes.services.applying import carry_out
from tidesched_web.changes.tree_document import key_of
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import Access
from tidesched_web.common.sentences import listed
from tidesched_web.quota.dependent_selectors import clusters_with_quota_of, dependents_of
from tidesched_web.quota.services import delete_owner, has_quotas

# So many queues with gangs are named.
_NAMED: Final = 5


def remove_project(
    *, project: Project, access: Access, reason: str, version: int | None = None, source: str = "console"
) -> QuotaChange | None:
    refuse_queues(project, version)
    clusters = clusters_with_quota_of(project)
    if not clusters:
        delete_owner(owner=project, actor=access.actor, version=version, reason=reason)
        return None
    if len(clusters) > 1:
        raise has_quotas(project, clusters)
    key = key_of("project", project.tenant.slug, project.slug)
    seen = {} if version is None else {key: version}
    return carry_out(cluster=clusters[0], edits={key: None}, access=access, reason=reason, source=source, versions=seen)


def refuse_queues(owner: Tenant | Project, version: int | None = None) -> None:
    """With the change of each cluster that takes the queues away; another ``version`` is stale first of all."""
    found = removals_of(owner)
    if not found or (version is not None and version != owner.version):
        return
    extra: dict[str, Any] = {
        "dependents": [group.to_json() for group in dependents_of(owner)],
        "clusters": [one.cluster.slug for one in found],
        "changes": [{"cluster": one.cluster.slug, "edits": dict(one.edits)} for one in found if not one.in_use],
    }
    in_use = [one for removal in found for one in removal.in_use]
    if in_use:
        named = listed(f"{one.queue.name} ({one.gangs})" for one in in_use[:_NAMED])
        text = _("Gangs run or wait in its queues: %(queues)s. A queue is deleted once its gangs have ended.")
        raise DomainError("in_use", text % {"queues": named}, extra)
    if len(found) == 1:
        extra["edits"] = dict(found[0].edits)
    if found[0].whole:
        text = _(
            "%(name)s has queues in %(cluster)s: the change with these edits deletes it with them. It is reviewed, "
            "approved where that is due, and can be rolled back."
        )
    else:
        text = _(
            "%(name)s has queues or quotas in %(cluster)s: in each of these clusters a change deletes the queues and "
            "takes the quotas back. Then delete it."
        )
    said = text % {"name": owner.name, "cluster": listed(one.cluster.slug for one in found)}
    raise DomainError("in_use", said, extra)
