from typing import Any

from django.db.models import ProtectedError, Q
from django.utils.translation import gettext as _

from tidesched_web.accounts.models import BusinessLine, Project, Tenant
from tidesched_web.changes.services.writing.rows import Rows, counted
from tidesched_web.changes.tree_document import key_of, parts_of
from tidesched_web.common.errors import DomainError
from tidesched_web.common.sentences import listed
from tidesched_web.quota.models import CardQuota, ComputeQuota

_BATCH = 500


def write(rows: Rows) -> None:
    """Make and rename; what they may hand out comes with the other figures (`quotas`)."""
    _tenants(rows)
    _named(rows, "project", Project)
    _named(rows, "business-line", BusinessLine)


def _tenants(rows: Rows) -> None:
    made = {key: Tenant(slug=parts_of(key)[0], **_fields(document)) for key, document in rows.made("tenant")}
    Tenant.objects.bulk_create(made.values(), batch_size=_BATCH)
    for key, tenant in made.items():
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
    rows.require(changed)
    counted(found, ["name", "description", "approval_required"])


def _fields(document: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": document["name"],
        "description": document.get("description", ""),
        "approval_required": document["approval_required"],
    }


def _named(rows: Rows, kind: str, model: type[Any]) -> None:
    made = {
        key: model(tenant=rows.tenant(tenant), slug=slug, name=document["name"])
        for key, document in rows.made(kind)
        for tenant, slug in [parts_of(key)]
    }
    model._base_manager.bulk_create(made.values(), batch_size=_BATCH)
    for key, row in made.items():
        rows.row_of[key] = row
        rows.tell(key, row)
    changed = {parts_of(key): (key, document) for key, document in rows.changed(kind)}
    pks = {row.pk: place for place, row in rows.below(model, changed).items()}
    found = rows.locked(model._base_manager.filter(pk__in=pks)) if pks else []
    for row in found:
        key, document = changed[pks[row.pk]]
        row.name = document["name"]
        rows.row_of[key] = row
        rows.tell(key, row)
    rows.require(key for key, _document in changed.values())
    counted(found, ["name"])


def delete(rows: Rows) -> None:
    """Delete those whose document goes. A quota or queue in another cluster keeps one from going."""
    for place, line in rows.below(BusinessLine, {parts_of(key) for key in rows.gone("business-line")}).items():
        _delete(rows, key_of("business-line", *place), line, Q(pk__in=[]))
    for place, project in rows.below(Project, {parts_of(key) for key in rows.gone("project")}).items():
        _delete(rows, key_of("project", *place), project, Q(project=project))
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
        names = listed(sorted(str(other) for other in error.protected_objects)[:3])
        raise _in_use(key, names) from None


def _in_use(key: str, why: str) -> DomainError:
    text = _("%(object)s is still in use: %(why)s.") % {"object": key, "why": why}
    fault = {"pointer": "", "object": key, "field": "", "code": "in_use", "detail": text}
    return DomainError("conflict", text, {"errors": [fault]})
