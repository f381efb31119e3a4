"""Which roles the claims of a person give. No database."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidesched_web.accounts.models import TENANT_ROLES, PlatformRole, RuleRole, SignInRule, TenantRole

_PLATFORM = {RuleRole.PLATFORM_ADMIN: PlatformRole.ADMIN, RuleRole.AUDITOR: PlatformRole.AUDITOR}
_HIGHER = (PlatformRole.ADMIN, TenantRole.ADMIN)


@dataclass
class Roles:
    """``platform`` is "" for none; ``tenants`` by number. The rules name who stands behind each."""

    platform: str = ""
    tenants: dict[int, str] = field(default_factory=dict)
    platform_rule: SignInRule | None = None
    tenant_rules: dict[int, SignInRule] = field(default_factory=dict)


def roles_of(claims: Mapping[str, Any], rules: Iterable[SignInRule]) -> Roles:
    """The highest role of all rules that hold, on the platform and in each tenant."""
    found = Roles()
    for rule in rules:
        if not holds(rule, claims):
            continue
        if rule.tenant_id is None:
            role = _PLATFORM[RuleRole(rule.role)]
            if found.platform not in _HIGHER:
                found.platform, found.platform_rule = role, rule
        elif found.tenants.get(rule.tenant_id) not in _HIGHER:
            found.tenants[rule.tenant_id] = TENANT_ROLES[RuleRole(rule.role)]
            found.tenant_rules[rule.tenant_id] = rule
    return found


def holds(rule: SignInRule, claims: Mapping[str, Any]) -> bool:
    """A claim inside another is named with a dot: ``realm_access.roles``."""
    said: Any = claims.get(rule.claim)
    if said is None:
        said = claims
        for step in rule.claim.split("."):
            said = said.get(step) if isinstance(said, Mapping) else None
    return rule.value in (said if isinstance(said, list) else [said])


def settled(held: str, given: str, wanted: str) -> tuple[str, str]:
    """The role from now on, and what of it the rules give: what a person gave by hand, the rules leave alone."""
    return (wanted, wanted) if held in ("", given) else (held, "")
