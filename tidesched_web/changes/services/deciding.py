from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from tidesched_web.changes.acts import Act, require_act
from tidesched_web.changes.authority import require_writer
from tidesched_web.changes.documents import REPLACE
from tidesched_web.changes.models import CarryState, ChangeObject, ChangeState, QuotaChange
from tidesched_web.changes.second_person import is_author
from tidesched_web.changes.selectors import read_tree
from tidesched_web.changes.services.applying import apply_due
from tidesched_web.changes.services.drafting import draft
from tidesched_web.changes.services.planning import after_of, require_fresh, require_sound, work_out
from tidesched_web.changes.services.recording import agreed_by, locked, move, tell
from tidesched_web.changes.services.reviewed import Reviewed, require_reviewed
from tidesched_web.changes.services.reviewing import require_same_impact
from tidesched_web.changes.tree_document import Documents, Edits, inverse, kind_of
from tidesched_web.common.errors import DomainError
from tidesched_web.common.locking import lock_tree
from tidesched_web.common.permissions import Access
from tidesched_web.waking import wake_changes


def approve(*, change: QuotaChange, access: Access, reason: str = "", seen: Reviewed | None = None) -> QuotaChange:
    """One that its author asked to apply is applied now, or at its hour. Approved again: no effect."""
    require_writer(access)
    if change.state == ChangeState.WAITING:
        require_same_impact(change, access, seen)
    with transaction.atomic():
        version = lock_tree(change.cluster_id)
        change = locked(change)
        done = change.committed_at is not None or change.state == ChangeState.APPROVED
        require_reviewed(change, seen, done=done)
        if done:
            return change
        require_act(change, access, Act.APPROVE)
        plan = work_out(change.cluster, change.edits, access=access, base=change.base, version=version)
        require_fresh(plan)
        require_sound(plan, access=access)
        if not change.reason:
            text = _("Say why: the reason goes into the audit log.")
            raise DomainError.for_field("/reason", text, code="reason_required")
        move(change, ChangeState.APPROVED, **agreed_by(access, timezone.now(), reason))
        tell(change, "approve", actor=access.actor, reason=change.approved_reason)
        transaction.on_commit(wake_changes, robust=True)
    if change.apply_at is not None and change.apply_at <= timezone.now():
        change = apply_due(change.pk) or locked_now(change)
    return change


def locked_now(change: QuotaChange) -> QuotaChange:
    return QuotaChange.objects.select_related("cluster").get(pk=change.pk)


def reject(*, change: QuotaChange, access: Access, reason: str, seen: Reviewed | None = None) -> QuotaChange:
    return _close(change, access, ChangeState.REJECTED, reason, seen)


def cancel(*, change: QuotaChange, access: Access, reason: str = "", seen: Reviewed | None = None) -> QuotaChange:
    return _close(change, access, ChangeState.CANCELLED, reason, seen)


def _close(change: QuotaChange, access: Access, state: ChangeState, reason: str, seen: Reviewed | None) -> QuotaChange:
    require_writer(access)
    reason = reason.strip()
    with transaction.atomic():
        # The tree first, although nothing in it is written: the rights depend on whose objects these are now.
        version = lock_tree(change.cluster_id)
        change = locked(change)
        require_reviewed(change, seen, done=change.state == state)
        if change.state == state:
            return change
        require_act(change, access, Act.REJECT if state == ChangeState.REJECTED else Act.CANCEL)
        if state == ChangeState.REJECTED:
            if not reason:
                text = _("Say why: its author has to know.")
                raise DomainError.for_field("/reason", text, code="reason_required")
            work_out(change.cluster, change.edits, access=access, version=version)
        was_asked = change.state != ChangeState.DRAFT
        unseen = change.author_id is not None and not is_author(change, access)
        move(change, state, closed_by=access.actor[:200], closed_reason=reason, closed_unseen=unseen)
        if was_asked or state == ChangeState.REJECTED:
            verb = "reject" if state == ChangeState.REJECTED else "cancel"
            tell(change, verb, actor=access.actor, reason=reason)
    return change


def note_seen(*, change: QuotaChange, access: Access) -> None:
    if change.closed_unseen and is_author(change, access):
        change.closed_unseen = False
        QuotaChange.objects.filter(pk=change.pk).update(closed_unseen=False)


def retry(*, change: QuotaChange, access: Access, seen: Reviewed | None = None) -> QuotaChange:
    require_writer(access)
    with transaction.atomic():
        version = lock_tree(change.cluster_id)
        change = locked(change)
        done = change.state == ChangeState.APPLYING
        require_reviewed(change, seen, done=done)
        if done:
            return change
        require_act(change, access, Act.RETRY)
        # Rights only: whether the edits could be made anew does not matter, they are made.
        work_out(change.cluster, change.edits, access=access, version=version)
        rows = ChangeObject.objects.filter(change=change, state=CarryState.FAILED)
        rows.update(state=CarryState.QUEUED, reason="")
        move(change, ChangeState.APPLYING, error="", failure=None, claimed_until=None)
        tell(change, "retry", actor=access.actor)
        transaction.on_commit(wake_changes, robust=True)
    return change


def roll_back(*, change: QuotaChange, access: Access, reason: str = "", seen: Reviewed | None = None) -> QuotaChange:
    """A draft that leads back to what was there before ``change``, with a review of its own. Asked again: the same."""
    require_writer(access)
    change = locked_now(change)
    require_reviewed(change, seen)
    require_act(change, access, Act.ROLL_BACK)
    now = read_tree(change.cluster)
    # What it made and was deleted since is gone already.
    edits = {key: patch for key, patch in undoing(change).items() if patch is not None or key in now}
    if not edits:
        raise DomainError("conflict", _("Nothing of it is left to roll back."), {"state": change.state})
    said = reason.strip() or _("Roll back change %(number)d.") % {"number": change.pk}
    return draft(
        cluster=change.cluster, edits=edits, access=access, reason=said, source="rollback", rolls_back=change, once=True
    )


def undoing(change: QuotaChange) -> Edits:
    before: Documents = {key: document for key, document in change.base.items() if document is not None}
    after = after_of(before, change.edits)
    edits = inverse(before, after, change.edits)
    for key, patch in edits.items():
        if kind_of(key) == "priority-class" and patch is not None and "value" in patch and key in after:
            patch[REPLACE] = True
    return edits
