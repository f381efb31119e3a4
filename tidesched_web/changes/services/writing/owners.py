"""Tenants, projects and business lines."""

from __future__ import annotations

from typing import Any

from django.db.models import ProtectedError, Q
from django.utils.translation import gettext as _

from tidesched_web.accounts.models import BusinessLine, Project, Tenant
from tidesched_web.changes.services.writing.rows import Rows, counted
from tidesched_web.changes.tree_document import parts_of
from tidesched_web.common.errors import DomainError
from tidesched_web.quota.models import CardQuota, ComputeQuota


def write(rows: Rows) -> None:
    """Make and rename; what they may hand out comes with the other figures (`quotas`)."""
    _tenants(rows)
    _projects(rows)
    _lines(rows)


def _tenants(rows: Rows) -> None:
    for key, document in rows.made("tenant"):
        tenant = Tenant(slug=parts_of(key)[0], **_fields(document))
        tenant.save(force_insert=True)
        rows.note_tenant(tenant)
        rows.row_of[key] = tenant
        rows.tell(key, tenant)
    changed = dict(rows.changed("tenant"))
    found = rows.locked(Tenant.objects.filter(slug__in=[parts_of(key)[0] for key in changed])) if changed else []
    for tenant in found:
        key = f"tenant/{tenant.slug}"
        for name, value in _fields(changed[key]).items():
            setattr(tenant, name, value)
        rows.row_of[key] = tenant
        rows.tell(key, tenant)
    counted(found, ["name", "description", "approval_required"])


def _fields(document: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": document["name"],
        "description": document.get("description", ""),
        "approval_required": document["approval_required"],
    }


def _projects(rows: Rows) -> None:
    for key, document in rows.made("project"):
        tenant, slug = parts_of(key)
        project = Project(tenant=rows.tenant(tenant), slug=slug, name=document["name"])
        project.save(force_insert=True)
        rows.row_of[key] = project
        rows.tell(key, project)
    changed = dict(rows.changed("project"))
    wanted = {key: parts_of(key) for key in changed}
    known = rows.projects({(tenant, slug) for tenant, slug in wanted.values()})
    found = rows.locked(Project.objects.filter(pk__in=[project.pk for project in known.values()])) if known else []
    by_pk = {project.pk: project for project in found}
    for key, place in wanted.items():
        project = by_pk[known[place[0], place[1]].pk]
        project.name = changed[key]["name"]
        rows.row_of[key] = project
        rows.tell(key, project)
    counted(found, ["name"])


def _lines(rows: Rows) -> None:
    for key, document in rows.made("business-line"):
        tenant, slug = parts_of(key)
        line = BusinessLine(tenant=rows.tenant(tenant), slug=slug, name=document["name"])
        line.save(force_insert=True)
        rows.row_of[key] = line
        rows.tell(key, line)
    changed = dict(rows.changed("business-line"))
    wanted = {key: parts_of(key) for key in changed}
    known = rows.lines({(tenant, slug) for tenant, slug in wanted.values()})
    found = rows.locked(BusinessLine.objects.filter(pk__in=[line.pk for line in known.values()])) if known else []
    by_pk = {line.pk: line for line in found}
    for key, place in wanted.items():
        line = by_pk[known[place[0], place[1]].pk]
        line.name = changed[key]["name"]
        rows.tell(key, line)
    counted(found, ["name"])


def delete(rows: Rows) -> None:
    """Delete those whose document goes. A quota or queue in another cluster keeps one from going."""
    lines = [parts_of(key) for key in rows.gone("business-line")]
    for place, line in rows.lines({(tenant, slug) for tenant, slug in lines}).items():
        key = f"business-line/{place[0]}/{place[1]}"
        _delete(rows, key, line, Q(pk__in=[]))
    projects = [parts_of(key) for key in rows.gone("project")]
    for place, project in rows.projects({(tenant, slug) for tenant, slug in projects}).items():
        _delete(rows, f"project/{place[0]}/{place[1]}", project, Q(project=project))
    for key in rows.gone("tenant"):
        tenant = rows.tenant(parts_of(key)[0])
        if tenant is not None:
            _delete(rows, key, tenant, Q(tenant=tenant))


def _delete(rows: Rows, key: str, row: Tenant | Project | BusinessLine, quotas: Q) -> None:
    for kind in (CardQuota, ComputeQuota):
        elsewhere = kind._base_manager.filter(quotas).exclude(cluster=rows.cluster).first()
        if elsewhere is not None:
            raise _in_use(key, _("it has a quota in cluster %(cluster)s") % {"cluster": elsewhere.cluster.slug})
    pk = row.pk
    rows.tell(key, row, pk)
    try:
        row.delete()
    except ProtectedError as error:
        names = ", ".join(sorted(str(other) for other in error.protected_objects)[:3])
        raise _in_use(key, names) from None


def _in_use(key: str, why: str) -> DomainError:
    text = _("%(object)s is still in use: %(why)s.") % {"object": key, "why": why}
    fault = {"pointer": "", "object": key, "field": "", "code": "in_use", "detail": text}
    return DomainError("conflict", text, {"errors": [fault]})
