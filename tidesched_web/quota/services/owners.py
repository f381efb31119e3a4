from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from tidesched_web.accounts.models import BusinessLine, Project, Tenant
from tidesched_web.audit import services as audit
from tidesched_web.clusters.models import Cluster
from tidesched_web.common.errors import DomainError, require_room
from tidesched_web.common.locking import lock_row
from tidesched_web.common.sentences import listed
from tidesched_web.common.shown_names import require_seen
from tidesched_web.common.validation import check_fields, check_version
from tidesched_web.quota.dependent_selectors import clusters_with_quota_of, dependents_of, edits_without_quota

Owner = Tenant | Project | BusinessLine
_O = TypeVar("_O", Tenant, Project, BusinessLine)


def create_tenant(*, slug: str, actor: str, name: str = "", description: str = "", reason: str = "") -> Tenant:
    """A new tenant; its slug is its name in addresses, labels and files, and stays."""
    return _create(
        Tenant(slug=slug, name=name or slug, description=description),
        actor=actor,
        reason=reason,
        after={"slug": slug, "name": name or slug, "description": description},
    )


def create_project(*, tenant: Tenant, slug: str, actor: str, name: str = "", reason: str = "") -> Project:
    return _create(
        Project(tenant=tenant, slug=slug, name=name or slug),
        actor=actor,
        reason=reason,
        after={"tenant": tenant.slug, "slug": slug, "name": name or slug},
    )


def create_business_line(
    *, tenant: Tenant | None, slug: str, actor: str, name: str = "", reason: str = ""
) -> BusinessLine:
    return _create(
        BusinessLine(tenant=tenant, slug=slug, name=name or slug),
        actor=actor,
        reason=reason,
        after={"tenant": tenant.slug if tenant else None, "slug": slug, "name": name or slug},
    )


_KIND: dict[type[Any], str] = {Tenant: "tenant", Project: "project", BusinessLine: "business_line"}


def _about(row: Owner) -> dict[str, Any]:
    if isinstance(row, Tenant):
        return {"kind": "tenant", "label": row.slug, "tenant_ids": [row.pk]}
    place = row.tenant.slug if row.tenant else "platform"
    return {"kind": _KIND[type(row)], "label": f"{place}/{row.slug}", "tenant_ids": [row.tenant_id]}


def _create(row: _O, *, actor: str, reason: str, after: dict[str, Any]) -> _O:
    check_fields(row)
    require_seen(row.name)
    if not isinstance(row, Tenant):
        text = _("There are %(limit)d of this kind below it already, the most that there may be: delete some first.")
        beside = type(row)._base_manager.filter(tenant=row.tenant)
        require_room(beside, settings.KEPT_OBJECTS_OF_TENANT, text)
    with transaction.atomic():
        try:
            with transaction.atomic():
                row.save(force_insert=True)
        except IntegrityError:
            text = _("%(slug)s is there already.") % {"slug": row.slug}
            raise DomainError.for_field("/slug", text, code="already_exists") from None
        _record(row, verb="create", actor=actor, reason=reason, after=after, **_about(row))
    return row


@transaction.atomic
def update_owner(
    *,
    owner: Owner,
    actor: str,
    name: str | None = None,
    description: str | None = None,
    version: int | None = None,
    reason: str = "",
) -> bool:
    locked = lock_row(type(owner), owner.pk)
    check_version(locked, version)
    wanted = {"name": name, "description": description}
    after = {key: value for key, value in wanted.items() if value is not None and value != getattr(locked, key)}
    if not after:
        return False
    before = {key: getattr(locked, key) for key in after}
    for key, value in after.items():
        setattr(locked, key, value)
        setattr(owner, key, value)
    check_fields(locked)
    if "name" in after:
        require_seen(locked.name)
    locked.version += 1
    locked.save(update_fields=[*after, "version", "updated_at"])
    owner.version = locked.version
    _record(locked, verb="update", actor=actor, reason=reason, before=before, after=after, **_about(locked))
    return True


@transaction.atomic
def delete_owner(*, owner: Owner, actor: str, version: int | None = None, reason: str = "") -> None:
    locked = lock_row(type(owner), owner.pk)
    check_version(locked, version)
    found = dependents_of(locked)
    refuse_dependents(found)
    if not isinstance(locked, BusinessLine) and (clusters := clusters_with_quota_of(locked)):
        raise has_quotas(locked, clusters)
    about, pk = _about(locked), locked.pk
    before = {"slug": locked.slug, "name": locked.name, "with": {group.kind: group.count for group in found}}
    if isinstance(locked, Tenant):
        Project.objects.filter(tenant=locked).delete()
        BusinessLine.objects.filter(tenant=locked).delete()
    locked.delete()
    locked.pk = pk
    _record(locked, verb="delete", actor=actor, reason=reason, before=before, **about)


def _record(
    row: Owner,
    *,
    kind: str,
    verb: str,
    actor: str,
    label: str,
    tenant_ids: Iterable[int | None],
    reason: str,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Last in the transaction: it locks the head of the chain."""
    audit.append(
        chain=audit.PLATFORM_CHAIN,
        actor=actor,
        action=f"{kind}.{verb}",
        object_type=kind,
        object_id=row.pk,
        object_label=label,
        tenant_ids=[tenant for tenant in tenant_ids if tenant is not None],
        reason=reason,
        before=before,
        after=after,
    )


def has_quotas(row: Tenant | Project, clusters: list[Cluster]) -> DomainError:
    """What promises cards is taken back by a change, with its plan and approval, before its holder can go."""
    names = listed(cluster.slug for cluster in clusters)
    text = _(
        "%(name)s has quotas in %(clusters)s. Take them back by a change first: it is reviewed, approved where that is "
        "due, and can be rolled back. Then delete it."
    )
    extra = {"clusters": [cluster.slug for cluster in clusters], "edits": edits_without_quota(row)}
    return DomainError("in_use", text % {"name": row.name, "clusters": names}, extra)


def refuse_dependents(found: list[Any]) -> None:
    """Refuse a deletion while something hangs on the object that does not simply go along."""
    blocking = [group for group in found if group.blocks]
    if blocking:
        text = _("Something still depends on it: %(what)s.")
        names = listed(name for group in blocking for name in group.names)
        raise DomainError("in_use", text % {"what": names}, {"dependents": [group.to_json() for group in found]})
