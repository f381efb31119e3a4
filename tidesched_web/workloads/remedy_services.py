import datetime as dt
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from tidesched_web.workloads.models import GangRemedy
from tidesched_web.workloads.remedies import KEPT


def keep_remedy(
    *,
    gang_id: int,
    basis: dict[str, Any],
    numbers: dict[str, Any],
    remedy: dict[str, Any] | None,
    starts: bool,
    until: tuple[dt.datetime, str] | None,
    too_large: list[dict[str, Any]],
    goes_first: str = "",
    held_by_services: float = 0.0,
    session_id: int,
    number: int,
    at: dt.datetime,
) -> bool:
    values = {
        "basis": basis,
        "numbers": {name: value for name, value in numbers.items() if name not in ("holders", "nodes")},
        "remedy": remedy,
        "starts": starts,
        "until": until[0] if until else None,
        "until_why": until[1] if until else "",
        "too_large": too_large,
        "goes_first": goes_first[:320],
        "held_by_services": held_by_services,
        "session_id": session_id,
        "number": number,
        "at": at,
        "worked_out_at": timezone.now(),
    }
    try:
        with transaction.atomic():
            GangRemedy.objects.update_or_create(gang_id=gang_id, defaults=values)
    except IntegrityError:
        return False
    return True


def drop_stale(*, cluster_id: int) -> None:
    over = Q(gang__needs=False) | Q(worked_out_at__lt=timezone.now() - KEPT)
    GangRemedy.objects.filter(over, gang__cluster_id=cluster_id).delete()
