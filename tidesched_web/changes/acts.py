"""Whether the edits are the caller's to make is asked when it is done (`authority`), since that needs the tree."""

from enum import StrEnum
from typing import Final

from django.utils.translation import gettext as _

from tidesched_web.accounts.models import Scope
from tidesched_web.changes.ceiling_requests import request_refusal
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.changes.second_person import administers_all_of, approval_refusal, decides_about, is_author
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import Access


class Act(StrEnum):
    APPLY = "apply"
    EDIT = "edit"
    APPROVE = "approve"
    REJECT = "reject"
    CANCEL = "cancel"
    RETRY = "retry"
    ROLL_BACK = "rollback"


DRAFT, WAITING, APPROVED, FAILED = ChangeState.DRAFT, ChangeState.WAITING, ChangeState.APPROVED, ChangeState.FAILED
_OPEN: Final = (DRAFT, WAITING, APPROVED, FAILED)
# In which states, and whether its intent has to be written for that (or must not be).
_WHEN: Final = {
    Act.APPLY: ((DRAFT, APPROVED, FAILED), False),
    Act.EDIT: (_OPEN, False),
    Act.APPROVE: ((DRAFT, WAITING), False),
    Act.REJECT: (_OPEN, False),
    Act.CANCEL: (_OPEN, False),
    Act.RETRY: ((FAILED,), True),
    Act.ROLL_BACK: ((ChangeState.APPLYING, ChangeState.APPLIED, FAILED), True),
}


def allowed_actions(change: QuotaChange, access: Access) -> list[Act]:
    return [act for act in Act if refusal(change, access, act) is None]


def require_act(change: QuotaChange, access: Access, act: Act) -> None:
    refused = refusal(change, access, act)
    if refused is not None:
        raise refused


def refusal(change: QuotaChange, access: Access, act: Act) -> DomainError | None:
    return _not_a_writer(access) or _not_now(change, act) or _not_by(change, access, act)


def _not_a_writer(access: Access) -> DomainError | None:
    if not access.administers and not access.admin_of:
        return DomainError("permission_denied", _("Only platform admins and tenant admins may change quota."))
    if not access.has_scope((Scope.QUOTA_WRITE,)):
        return DomainError("missing_scope", _("This token lacks the scope %(scope)s.") % {"scope": Scope.QUOTA_WRITE})
    return None


def _not_now(change: QuotaChange, act: Act) -> DomainError | None:
    states, written = _WHEN[act]
    extra = {"state": change.state}
    if written and change.committed_at is None and change.state in states:
        text = _("Nothing of it was written: apply it again, or cancel it.")
        return DomainError("conflict", text, extra)
    if not written and change.committed_at is not None:
        text = _("Change %(number)d is written already: it can only be rolled back.")
        return DomainError("conflict", text % {"number": change.pk}, extra)
    if change.state not in states:
        text = _("Change %(number)d is in state “%(state)s”.")
        figures = {"number": change.pk, "state": ChangeState(change.state).label}
        return DomainError("conflict", text % figures, extra)
    if act == Act.APPROVE and change.state == DRAFT and not (change.plan or {}).get("approval", {}).get("due"):
        return DomainError("conflict", _("No approval is due for this draft: it can be applied."), extra)
    if act == Act.APPROVE and change.state == DRAFT and change.asks_beyond:
        return DomainError("conflict", _("Its author has not asked for the approval yet."), extra)
    return None


def _not_by(change: QuotaChange, access: Access, act: Act) -> DomainError | None:
    own = is_author(change, access)
    match act:
        case Act.EDIT if not own and not (access.administers and change.author_id is None):
            return DomainError("permission_denied", _("Only its author may edit a draft; make one of your own."))
        case Act.CANCEL if not own and not access.administers:
            return DomainError("permission_denied", _("Only its author or a platform admin may cancel a change."))
        case Act.APPROVE | Act.REJECT if not administers_all_of(change, access):
            return DomainError("not_found", _("You see no change %(number)d.") % {"number": change.pk})
        case Act.APPROVE | Act.REJECT if change.platform_only and not access.administers:
            return DomainError("permission_denied", _("Only a platform admin may decide about this change."))
        case Act.APPROVE:
            return approval_refusal(change, access)
        case Act.APPLY | Act.ROLL_BACK if said := request_refusal(change, access):
            return DomainError("permission_denied", said)
    return None


def agrees_by_applying(change: QuotaChange, access: Access) -> bool:
    """It is so for each second person whose approval would count; for all others it waits for a new approval."""
    return change.state == APPROVED and decides_about(change, access) and approval_refusal(change, access) is None
