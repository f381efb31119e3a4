from collections.abc import Iterable
from dataclasses import dataclass, field

from tidesched_web.common.errors import DomainError


@dataclass(frozen=True)
class Access:
    """The rights of one caller: a user, or a user through a token that may do less.

    ``everything`` is the sight of a platform admin or auditor; ``administers`` the right to change the platform.
    ``user_id`` says who it is, whatever they came with: two people have to be two accounts.
    ``scopes`` is None in a browser session: all that the user may. ``limited_to`` is the tenant of a token for one.
    """

    actor: str
    everything: bool = False
    administers: bool = False
    tenant_ids: frozenset[int] = frozenset()
    admin_of: frozenset[int] = field(default=frozenset())
    scopes: frozenset[str] | None = None
    limited_to: int | None = None
    user_id: int | None = None

    def has_scope(self, wanted: Iterable[str]) -> bool:
        return self.scopes is None or "admin" in self.scopes or not self.scopes.isdisjoint(wanted)

    def sees_all_of(self, tenant_ids: Iterable[int]) -> bool:
        return self.everything or self.tenant_ids.issuperset(tenant_ids)


def require_scope(access: Access, *wanted: str) -> None:
    if not access.has_scope(wanted):
        raise DomainError(
            "missing_scope",
            f"This token lacks the scope {' or '.join(wanted)}.",
            {"required_scopes": list(wanted), "token_scopes": sorted(access.scopes or ())},
        )


def require_platform_admin(access: Access) -> None:
    if not access.administers:
        raise DomainError("permission_denied", "Only a platform admin may do this.")
    require_scope(access, "admin")


def require_admin_of(access: Access, tenant_id: int | None) -> None:
    """A token needs the scope of what it does besides (the view asks for it)."""
    if access.administers or (tenant_id is not None and tenant_id in access.admin_of):
        return
    raise DomainError("permission_denied", "Only an admin of the tenant, or a platform admin, may do this.")


def require_administrator(access: Access) -> None:
    """Refuse everybody but platform admins, whatever the scopes: the view has asked for the one that is needed."""
    if not access.administers:
        raise DomainError("permission_denied", "Only a platform admin may do this.")
