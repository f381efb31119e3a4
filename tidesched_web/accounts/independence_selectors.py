"""Behind an account is who made it, gave it an admin's role or made its password's link, and who is behind them."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db import connection
from django.db.models import Q

from tidesched_web.accounts.models import Membership, PlatformRole, Tenant, TenantRole, User

Makers = dict[int, set[int]]

# Who is directly behind the account `above.id`, and whether by an invitation of a tenant's admin.
_MADE = """
    SELECT invited_by_id AS maker, false AS invites FROM accounts_user WHERE id = above.id
    UNION ALL
    SELECT role_given_by_id, false FROM accounts_user WHERE id = above.id
    UNION ALL
    SELECT given_by_id, false FROM accounts_membership WHERE user_id = above.id AND role = 'admin'
    UNION ALL
    SELECT link.made_by_id, link.tenant_id IS NOT NULL AND person.platform_role <> 'admin'
    FROM accounts_accesslink link JOIN accounts_user person ON person.id = link.made_by_id
    WHERE link.user_id = above.id AND link.used_at IS NOT NULL
"""
# A chain is followed to its end: one that was cut would be a way around the rule.
_ABOVE = f"""
WITH RECURSIVE above(id) AS (
    SELECT unnest(%s::bigint[])
    UNION
    SELECT made.maker FROM above JOIN LATERAL ({_MADE}) made ON made.maker IS NOT NULL
)
SELECT DISTINCT above.id, made.maker, made.invites
FROM above JOIN LATERAL ({_MADE}) made ON made.maker IS NOT NULL
"""  # noqa: S608 - both are texts of this module


@dataclass(frozen=True)
class Standing:
    """``inviters``: those of ``behind`` who invited it as a tenant's admin, or invited who did."""

    user_id: int
    username: str
    active: bool
    behind: frozenset[int]
    inviters: frozenset[int]
    platform_since: dt.datetime | None
    admin_since: Mapping[int, dt.datetime]
    account_since: dt.datetime


def standings_of(user_ids: Iterable[int]) -> dict[int, Standing]:
    users = {user.pk: user for user in User.objects.filter(pk__in=list(user_ids))}
    if not users:
        return {}
    since: dict[int, dict[int, dt.datetime]] = defaultdict(dict)
    roles = Membership.objects.filter(user_id__in=users, role=TenantRole.ADMIN)
    for user, tenant, given_at, created_at in roles.values_list("user_id", "tenant_id", "given_at", "created_at"):
        since[user][tenant] = given_at or created_at
    makers, inviters = _makers_above(set(users))
    return {
        pk: Standing(
            user_id=pk,
            username=user.get_username(),
            active=user.is_active,
            behind=frozenset(_closure(pk, makers)),
            inviters=frozenset(_closure(pk, inviters)),
            platform_since=(
                (user.role_given_at or user.date_joined) if user.platform_role == PlatformRole.ADMIN else None
            ),
            admin_since=since[pk],
            account_since=user.date_joined,
        )
        for pk, user in users.items()
    }


def demand_approval(tenant_ids: Iterable[int]) -> bool:
    return Tenant.objects.filter(pk__in=list(tenant_ids), approval_required=True).exists()


def approver_candidates(tenant_ids: Iterable[int], *, platform_only: bool) -> list[int]:
    admins = Q(platform_role=PlatformRole.ADMIN)
    wanted = sorted(set(tenant_ids))
    if wanted and not platform_only:
        of_first = Membership.objects.filter(tenant_id=wanted[0], role=TenantRole.ADMIN)
        admins |= Q(pk__in=of_first.values("user_id"))
    found = User.objects.filter(admins, is_active=True).order_by("username")
    return list(found.values_list("pk", flat=True))


def _closure(user: int, makers: Makers) -> set[int]:
    found: set[int] = set()
    level = {user}
    while level:
        level = {maker for one in level for maker in makers.get(one, ())} - found - {user}
        found |= level
    return found


def _makers_above(users: set[int]) -> tuple[Makers, Makers]:
    """One query, upwards from these accounts to the end of each chain."""
    found: Makers = defaultdict(set)
    invited: Makers = defaultdict(set)
    with connection.cursor() as cursor:
        for user, maker, invites in cursor.execute(_ABOVE, [sorted(users)]).fetchall():
            found[user].add(maker)
            if invites:
                invited[user].add(maker)
    return found, invited
