"""Who may open a page that changes something; the services do not ask, so every such view asks here first."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import Http404

from tidesched_web.common.permissions import Access
from tidesched_web.console.page import Page


def manages(access: Access, tenant_id: int | None) -> bool:
    """Whether the reader is an admin of this tenant, or of the platform; what has no tenant is the platform's."""
    return access.administers or (tenant_id is not None and tenant_id in access.admin_of)


def need_admin_of(this: Page, tenant_id: int | None) -> None:
    """Only for admins of the tenant and of the platform."""
    if not manages(this.access, tenant_id):
        raise PermissionDenied


def need_administrator(this: Page) -> None:
    """Only for platform admins."""
    if not this.access.administers:
        raise PermissionDenied


def need_whole_sight(this: Page) -> None:
    """Only for who sees everything; to others the page is not there."""
    if not this.access.everything:
        raise Http404


def need_writer(this: Page) -> None:
    """Only for who may change any quota: platform admins and tenant admins."""
    if not this.access.administers and not this.access.admin_of:
        raise PermissionDenied
