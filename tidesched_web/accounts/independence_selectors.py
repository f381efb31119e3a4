"""Who is independent of whom: the accounts behind an account, and since when its rights are what they are.

An account stands behind another where it made the account, gave its platform role or a tenant's admin role, or made a
link by which the account's password was set; and where it stands behind one that does.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Q

from tidesched_web.accounts.models import AccessLink, Membership, PlatformRole, TenantRole, User

# Longer chains than this are followed no further; each step is one more level of invitations.
_MOST_STEPS = 100
Makers = dict[int, set[int]]


@dataclass(frozen=True)
class Standing:
    """What an account owes its rights to. ``admin_since``: when each tenant's admin role was given."""

    username: str
    behind: frozenset[int]
    platform_since: dt.datetime | None
    admin_since: Mapping[int, dt.datetime]
    account_since: dt.datetime


def standing_of(user_id: int) -> Standing | None:
    """The standing of an active account; None where there is none."""
    return standings_of([user_id]).get(user_id)


def standings_of(user_ids: Iterable[int]) -> dict[int, Standing]:
    """The standings of active accounts. Two queries, and three for each level of invitations above them."""
    users = {user.pk: user for user in User.objects.filter(pk__in=list(user_ids), is_active=True)}
    since: dict[int, dict[int, dt.datetime]] = defaultdict(dict)
    roles = Membership.objects.filter(user_id__in=users, role=TenantRole.ADMIN)
    for user, tenant, given_at, created_at in roles.values_list("user_id", "tenant_id", "given_at", "created_at"):
        since[user][tenant] = given_at or created_at
    makers = _makers_above(set(users))
    return {
        pk: Standing(
            username=user.get_username(),
            behind=frozenset(_closure(pk, makers)),
            platform_since=(
                (user.role_given_at or user.date_joined) if user.platform_role == PlatformRole.ADMIN else None
            ),
            admin_since=since[pk],
            account_since=user.date_joined,
        )
        for pk, user in users.items()
    }


def approver_candidates(tenant_ids: Iterable[int], *, platform_only: bool) -> list[int]:
    """Active accounts that administer the platform, or each of these tenants: at most a hundred."""
    admins = Q(platform_role=PlatformRole.ADMIN)
    wanted = sorted(set(tenant_ids))
    if wanted and not platform_only:
        of_first = Membership.objects.filter(tenant_id=wanted[0], role=TenantRole.ADMIN)
        admins |= Q(pk__in=of_first.values("user_id"))
    return list(User.objects.filter(admins, is_active=True).order_by("username").values_list("pk", flat=True)[:100])


def _closure(user: int, makers: Makers) -> set[int]:
    found: set[int] = set()
    level = {user}
    while level:
        level = {maker for one in level for maker in makers.get(one, ())} - found - {user}
        found |= level
    return found


def _makers_above(users: set[int]) -> Makers:
    """Who made whom, from these accounts upwards."""
    found: Makers = {}
    level = users
    for _step in range(_MOST_STEPS):
        if not level:
            break
        makers = _one_level(level)
        found |= {user: makers.get(user, set()) for user in level}
        level = {maker for above in makers.values() for maker in above} - found.keys()
    return found


def _one_level(users: set[int]) -> Makers:
    makers: Makers = defaultdict(set)
    for user, inviter, giver in User.objects.filter(pk__in=users).values_list(
        "pk", "invited_by_id", "role_given_by_id"
    ):
        makers[user] |= {inviter, giver}
    roles = Membership.objects.filter(user_id__in=users, role=TenantRole.ADMIN)
    links = AccessLink.objects.filter(user_id__in=users, used_at__isnull=False)
    for rows in (roles.values_list("user_id", "given_by_id"), links.values_list("user_id", "made_by_id")):
        for user, maker in rows:
            makers[user].add(maker)
    return {user: {maker for maker in above if maker is not None} for user, above in makers.items()}
