"""Author and approver are two persons where neither made the other's account, gave it its role or set its password,
directly or through accounts in between, nor one tenant admin has invited both. A platform admin who made a tenant
admin's account decides where no independent account can, and where the admin could write the same change without any
approval.
"""

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Final

from django.utils.translation import gettext as _

from tidesched_web.accounts.independence_selectors import Standing, approver_candidates, demand_approval, standings_of
from tidesched_web.changes.models import QuotaChange
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import Access
from tidesched_web.common.sentences import listed

MADE_BY_AUTHOR: Final = "made_by_author"
AUTHOR_MADE_BY_APPROVER: Final = "author_made_by_approver"
SAME_MAKER: Final = "same_maker"
YOUNGER: Final = "younger_than_change"
# How many names of those who could decide a refusal says.
_NAMED = 5


class People:
    def __init__(self, user_ids: Iterable[int | None] = ()) -> None:
        self._known = standings_of(pk for pk in user_ids if pk is not None)
        self._candidates: dict[tuple[frozenset[int], bool], list[int]] = {}

    def standing(self, user_id: int | None) -> Standing | None:
        if user_id is not None and user_id not in self._known:
            self._known |= standings_of([user_id])
        return self._known.get(user_id or 0)

    def candidates(self, change: QuotaChange) -> list[Standing]:
        key = frozenset(change.tenant_ids), change.platform_only
        if key not in self._candidates:
            found = self._candidates[key] = approver_candidates(change.tenant_ids, platform_only=change.platform_only)
            self._known |= standings_of(set(found) - self._known.keys())
        known = (self._known[pk] for pk in self._candidates[key] if pk in self._known)
        return [one for one in known if decides_about(change, rights_of(one))]


def rights_of(standing: Standing) -> Access:
    admin_of = frozenset(standing.admin_since)
    platform = standing.platform_since is not None
    return Access(
        actor=standing.username,
        everything=platform,
        administers=platform,
        tenant_ids=admin_of,
        admin_of=admin_of,
        user_id=standing.user_id,
    )


def is_author(change: QuotaChange, access: Access) -> bool:
    return access.user_id is not None and access.user_id == change.author_id


def administers_all_of(change: QuotaChange, access: Access) -> bool:
    return access.administers or access.admin_of.issuperset(change.tenant_ids)


def decides_about(change: QuotaChange, access: Access) -> bool:
    return access.administers or (administers_all_of(change, access) and not change.platform_only)


def approval_refusal(change: QuotaChange, access: Access, people: People | None = None) -> DomainError | None:
    if access.user_id is None or is_author(change, access):
        return DomainError("permission_denied", _("A change is approved by another person than its author."))
    people = people or People([access.user_id, change.author_id])
    standing = people.standing(access.user_id)
    if standing is None or not standing.active:
        return DomainError("permission_denied", _("This account is switched off."))
    causes = list(_causes(change, access, standing, people))
    author = people.standing(change.author_id)
    if causes == [AUTHOR_MADE_BY_APPROVER] and access.administers and author and author.platform_since is None:
        others = independent(change, people) if _is_demanded(change) else []
        return _refused(change, causes[0], others) if others else None
    return _refused(change, causes[0]) if causes else None


def independent(change: QuotaChange, people: People) -> list[Standing]:
    return [
        one
        for one in people.candidates(change)
        if one.user_id != change.author_id and not any(_causes(change, rights_of(one), one, people))
    ]


def _causes(change: QuotaChange, access: Access, standing: Standing, people: People) -> Iterator[str]:
    author = people.standing(change.author_id)
    if author is not None:
        if author.user_id in standing.behind:
            yield MADE_BY_AUTHOR
        if standing.user_id in author.behind:
            yield AUTHOR_MADE_BY_APPROVER
        if not standing.inviters.isdisjoint(author.inviters):
            yield SAME_MAKER
    since = _since(change, access, standing)
    if since is None or since > change.created_at:
        yield YOUNGER


def _since(change: QuotaChange, access: Access, standing: Standing) -> dt.datetime | None:
    if standing.platform_since is not None and (access.administers or access.limited_to is not None):
        return max(standing.platform_since, standing.account_since)
    given = [standing.admin_since.get(tenant) for tenant in change.tenant_ids]
    if not given or None in given:
        return None
    return max(standing.account_since, *(at for at in given if at is not None))


def _is_demanded(change: QuotaChange) -> bool:
    return change.cluster.approval_required or demand_approval(change.tenant_ids)


def _refused(change: QuotaChange, cause: str, others: Iterable[Standing] = ()) -> DomainError:
    texts = {
        MADE_BY_AUTHOR: _(
            "Your approval does not count here: %(author)s made your account or gave you your role, directly or "
            "through an invitation. It takes a person who has nothing from the author."
        ),
        AUTHOR_MADE_BY_APPROVER: _(
            "Your approval does not count here: you made the account of %(author)s, gave it its role or made a link to "
            "it, directly or through an invitation. It takes a person who neither gave the author anything nor has "
            "anything from the author."
        ),
        SAME_MAKER: _(
            "Your approval does not count here: the same tenant admin invited you and %(author)s. It takes a platform "
            "admin, or a person whom another admin invited."
        ),
        YOUNGER: _(
            "Your approval does not count here: your account or your role is younger than this change. It takes a "
            "person who had the role before the change was made."
        ),
    }
    text = texts[cause] % {"author": change.created_by} if cause != YOUNGER else texts[cause]
    names = [one.username for one in others][:_NAMED]
    if names:
        text += " " + _("These can decide: %(names)s.") % {"names": listed(names)}
    return DomainError("approver_not_independent", text, {"cause": cause})
