"""Tenants, projects and business lines: who the cards are for."""

from __future__ import annotations

from django.db import transaction

from tidesched_web.accounts.models import BusinessLine, Project, Tenant
from tidesched_web.common.validation import check_fields
from tidesched_web.quota.services.recording import record


@transaction.atomic
def ensure_tenant(*, slug: str, actor: str, name: str = "", description: str = "", reason: str = "") -> Tenant:
    """The tenant of this slug, made where it is missing."""
    wanted = Tenant(slug=slug, name=name or slug, description=description)
    check_fields(wanted)
    tenant, created = Tenant.objects.get_or_create(
        slug=slug, defaults={"name": wanted.name, "description": description}
    )
    if created:
        after = {"slug": slug, "name": tenant.name}
        record(
            tenant,
            kind="tenant",
            verb="create",
            actor=actor,
            label=slug,
            tenant_ids=[tenant.pk],
            reason=reason,
            after=after,
        )
    return tenant


@transaction.atomic
def ensure_project(*, tenant: Tenant, slug: str, actor: str, name: str = "", reason: str = "") -> Project:
    """The tenant's project of this slug, made where it is missing."""
    wanted = Project(tenant=tenant, slug=slug, name=name or slug)
    check_fields(wanted)
    project, created = Project.objects.get_or_create(tenant=tenant, slug=slug, defaults={"name": wanted.name})
    if created:
        label, after = f"{tenant.slug}/{slug}", {"tenant": tenant.slug, "slug": slug, "name": project.name}
        record(
            project,
            kind="project",
            verb="create",
            actor=actor,
            label=label,
            tenant_ids=[tenant.pk],
            reason=reason,
            after=after,
        )
    return project


@transaction.atomic
def ensure_business_line(
    *, tenant: Tenant | None, slug: str, actor: str, name: str = "", reason: str = ""
) -> BusinessLine:
    """A business line of a tenant, or of the platform where ``tenant`` is None; made where it is missing."""
    wanted = BusinessLine(tenant=tenant, slug=slug, name=name or slug)
    check_fields(wanted)
    line, created = BusinessLine.objects.get_or_create(tenant=tenant, slug=slug, defaults={"name": wanted.name})
    if created:
        owner = tenant.slug if tenant else None
        record(
            line,
            kind="business_line",
            verb="create",
            actor=actor,
            label=f"{owner or 'platform'}/{slug}",
            tenant_ids=[tenant.pk if tenant else None],
            reason=reason,
            after={"tenant": owner, "slug": slug, "name": line.name},
        )
    return line
