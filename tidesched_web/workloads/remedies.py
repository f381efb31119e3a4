"""When what was worked out for a waiting gang still holds: while the figures that it rests on are the same.

A remedy is worked out outside of the sessions (`scheduling.remedies`): the gang may meanwhile wait for another reason.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from tidesched_web.workloads.models import Gang, GangRemedy

# Older than this it is not shown, whatever its figures: the gangs that it names may have changed.
KEPT = dt.timedelta(minutes=15)


def basis(code: str, numbers: Mapping[str, Any], remedy: Mapping[str, Any] | None) -> dict[str, Any]:
    """The figures that an answer rests on.

    More quota is counted from the quota and from what it lacks; for all other answers it is what the gang asks for.
    """
    names: tuple[str, ...] = ("resource", "requested", "field")
    if remedy is not None and remedy.get("change") == "quota":
        names += ("limit", "short")
    return {"code": code} | {name: numbers[name] for name in names if numbers.get(name) is not None}


def holds(found: GangRemedy, code: str, numbers: Mapping[str, Any], now: dt.datetime) -> bool:
    """Whether an answer is still one to this reason."""
    return now - found.worked_out_at <= KEPT and found.basis == basis(code, numbers, found.remedy)


def remedy_of(gang: Gang, now: dt.datetime) -> GangRemedy | None:
    """What was worked out for a gang (read with ``worked_out``), where the gang waits and it still holds."""
    found: GangRemedy | None = getattr(gang, "worked_out", None)
    if found is None or not gang.needs:
        return None
    return found if holds(found, gang.reason_code, gang.reason_numbers or {}, now) else None
