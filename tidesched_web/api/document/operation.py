"""What people read of an operation, and who may call it where the view's scopes alone do not say it."""

from __future__ import annotations

from dataclasses import dataclass

PLATFORM_ADMIN = "platform admins"
TENANT_ADMIN = "admins of the tenant, and platform admins"
PLATFORM_SIGHT = "platform admins and auditors"


@dataclass(frozen=True, slots=True)
class Operation:
    """``scopes``: where the act asks for more than its view does."""

    summary: str
    description: str
    role: str = ""
    scopes: tuple[str, ...] = ()
