"""A tenant's admin may **ask** for a higher quota of the tenant, and nothing else of it: such a change is never applied
by its author, only with a platform admin's approval. The rule is here alone.
"""

from collections.abc import Iterable, Mapping

from django.utils.translation import gettext as _

from tidesched_web.accounts.selectors import access_of
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.changes.tree_document import Difference, Document, differences, kind_of, restricted, unescaped
from tidesched_web.common import reader_zone
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import Access

# Asked quota for which the cluster itself has no room, now or under a tide plan: it may be sent, and approved once
# there is room.
NO_ROOM = frozenset({"exceeds_hardware", "exceeds_at_moment"})
_COMPUTE = frozenset({"cpu_milli", "memory_bytes"})


def asked_for(before: Mapping[str, Document], after: Mapping[str, Document], keys: Iterable[str]) -> list[Difference]:
    tenants = [key for key in keys if kind_of(key) == "tenant" and key in before and key in after]
    found = differences(restricted(before, tenants), restricted(after, tenants))
    return [one for one in found if _is_raised(before[one.object], one)]


def _is_raised(tenant: Document, found: Difference) -> bool:
    match [unescaped(step) for step in found.field.split("/")[1:]]:
        case ["quota", service_type, "card_quota", card]:
            cards = tenant.get("quota", {}).get(service_type, {}).get("card_quota")
            held = None if cards is None else cards.get(card, 0)
        case ["quota", service_type, name] if name in _COMPUTE:
            held = tenant.get("quota", {}).get(service_type, {}).get(name)
        case _:
            return False
    return held is not None and isinstance(found.after, int) and found.after > held


def require_granted(change: QuotaChange, asked: Iterable[Difference]) -> None:
    """Refuse to write quota that was asked for without the approval of one who has the right to set it, still."""
    if not list(asked):
        return
    approver = change.approver
    if change.state == ChangeState.APPROVED and approver is not None and access_of(approver).administers:
        return
    text = _("This asks for more than the tenant has: only the approval of a platform admin can write it.")
    raise DomainError("permission_denied", text)


def request_refusal(change: QuotaChange, access: Access) -> str:
    """A request that was approved is applied at its hour; another hour is a platform admin's to choose."""
    if not change.platform_only or access.administers:
        return ""
    if change.committed_at is not None:
        return _("Only a platform admin may roll back what only platform admins set.")
    if change.state == ChangeState.APPROVED:
        if change.apply_at is None:
            return _("It is approved: only a platform admin may apply it.")
        text = _(
            "It is approved for %(hour)s and is applied then. A platform admin may apply it at another hour; its "
            "author may send it for another hour, which takes a new approval."
        )
        return text % {"hour": reader_zone.named(change.apply_at)}
    return ""
