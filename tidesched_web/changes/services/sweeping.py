import logging

from django.conf import settings
from django.db import connection
from django.utils import timezone

from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.changes.services.applying import apply_due
from tidesched_web.changes.services.carrying import carry
from tidesched_web.changes.services.forecasting import follow

_log = logging.getLogger(__name__)


# Over, one way or the other; what they did stands in the audit log.
_OVER = (ChangeState.APPLIED, ChangeState.REJECTED, ChangeState.CANCELLED, ChangeState.ROLLED_BACK)
_PRUNED_AT_ONCE = 200


# Of these the cluster was changed. Drafts that came to nothing go before them.
_WRITTEN = (ChangeState.APPLIED, ChangeState.ROLLED_BACK)

# Each author's newest come first, so that no account makes the history of the others go by changes of its own.
_BEYOND = """
SELECT id FROM (
    SELECT id, row_number() OVER (ORDER BY written DESC, place_of_author, id DESC) AS place FROM (
        SELECT id, state = ANY(%s) AS written,
               row_number() OVER (PARTITION BY author_id, state = ANY(%s) ORDER BY id DESC) AS place_of_author
        FROM changes_quotachange WHERE state = ANY(%s)
    ) AS counted
) AS ranked WHERE place > %s ORDER BY place DESC LIMIT %s
"""


def prune() -> None:
    """Those that were never applied go first, then the oldest ones of those who made the most."""
    limits = [settings.RETENTION_CHANGES, _PRUNED_AT_ONCE]
    with connection.cursor() as cursor:
        written, over = ([str(state) for state in states] for states in (_WRITTEN, _OVER))
        cursor.execute(_BEYOND, [written, written, over, *limits])
        QuotaChange.objects.filter(pk__in=[row[0] for row in cursor.fetchall()]).delete()


def sweep() -> int:
    """Apply what is due and carry what is written; returns how many changes were moved. May run in several workers."""
    moved = 0
    due = QuotaChange.objects.filter(state=ChangeState.APPROVED, apply_at__lte=timezone.now(), committed_at=None)
    for pk in due.order_by("apply_at", "pk").values_list("pk", flat=True):
        try:
            moved += apply_due(pk) is not None
        except Exception:  # noqa: BLE001 - one change that fails must not keep the others from being looked at
            _log.exception("change %s could not be applied; it is tried again", pk)
    for pk in QuotaChange.objects.filter(state=ChangeState.APPLYING).order_by("pk").values_list("pk", flat=True):
        try:
            moved += carry(pk)
        except Exception:  # noqa: BLE001 - one change that fails must not keep the others from being looked at
            _log.exception("change %s could not be carried to its cluster; it is tried again", pk)
    try:
        follow()
    except Exception:  # noqa: BLE001 - what came of earlier changes is compared again by the next sweep
        _log.exception("forecasts could not be compared; they are tried again")
    return moved
