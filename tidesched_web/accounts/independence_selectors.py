"""Who is independent of whom: the accounts behind an account, and since when its rights are what they are.

An account is behind another where it made the account, gave its platform role or a tenant's admin role, or made a
link by which the account's password was set; and where it is behind one that does.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Q

from tidesched_web.accounts.models import AccessLink, Membership, PlatformRole, Tenant, TenantRole, User

# Longer chains than this are followed no further; each step is one more level of invitations.
_MOST_STEPS = 100
_MOST_CANDIDATES = 500
Makers = dict[int, set[int]]


@dataclass(frozen=True)
class Standing:
    """What an account owes its rights to. ``admin_since``: when each tenant's admin role was given.

    ``inviters`` are those of ``behind`` that invited it as an admin of a tenant, or invited who did: they made links by
    which its password was set, and are no platform admins.
    """

    user_id: int
    username: str
    active: bool
    behind: frozenset[int]
    inviters: frozenset[int]
    platform_since: dt.datetime | None
    admin_since: Mapping[int, dt.datetime]
    account_since: dt.datetime


def standings_of(user_ids: Iterable[int]) -> dict[int, Standing]:
    """The standings of accounts. Two queries, and three for each level of invitations above them."""
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
    """Whether one of these tenants demands that a second person approves changes of its quota."""
    return Tenant.objects.filter(pk__in=list(tenant_ids), approval_required=True).exists()


def approver_candidates(tenant_ids: Iterable[int], *, platform_only: bool) -> list[int]:
    """Active accounts that administer the platform, or the first of these tenants: so many of them, by name."""
    admins = Q(platform_role=PlatformRole.ADMIN)
    wanted = sorted(set(tenant_ids))
    if wanted and not platform_only:
        of_first = Membership.objects.filter(tenant_id=wanted[0], role=TenantRole.ADMIN)
        admins |= Q(pk__in=of_first.values("user_id"))
    found = User.objects.filter(admins, is_active=True).order_by("username")
    return list(found.values_list("pk", flat=True)[:_MOST_CANDIDATES])


def _closure(user: int, makers: Makers) -> set[int]:
    found: set[int] = set()
    level = {user}
    while level:
        level = {maker for one in level for maker in makers.get(one, ())} - found - {user}
        found |= level
    return found


def _makers_above(users: set[int]) -> tuple[Makers, Makers]:
    """Who made whom, from these accounts upwards, and of those who invited whom as an admin of a tenant."""
    found: Makers = {}
    invited: Makers = {}
    level = users
    for _step in range(_MOST_STEPS):
        if not level:
            break
        makers, inviters = _one_level(level)
        found |= {user: makers.get(user, set()) for user in level}
        invited |= inviters
        level = {maker for above in makers.values() for maker in above} - found.keys()
    return found, invited


def _one_level(users: set[int]) -> tuple[Makers, Makers]:
    makers: Makers = defaultdict(set)
    inviters: Makers = defaultdict(set)
    for user, inviter, giver in User.objects.filter(pk__in=users).values_list(
        "pk", "invited_by_id", "role_given_by_id"
    ):
        makers[user] |= {inviter, giver}
    roles = Membership.objects.filter(user_id__in=users, role=TenantRole.ADMIN)
    for user, giver in roles.values_list("user_id", "given_by_id"):
        makers[user].add(giver)
    links = AccessLink.objects.filter(user_id__in=users, used_at__isnull=False)
    for user, maker, tenant, role in links.values_list("user_id", "made_by_id", "tenant_id", "made_by__platform_role"):
        makers[user].add(maker)
        if tenant is not None and maker is not None and role != PlatformRole.ADMIN:
            inviters[user].add(maker)
    return {user: {maker for maker in above if maker is not None} for user, above in makers.items()}, dict(inviters)
