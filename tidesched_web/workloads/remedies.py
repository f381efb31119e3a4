import datetime as dt
from collections.abc import Mapping
from typing import Any

from tidesched_web.workloads.models import Gang, GangRemedy

# Older than this it is not shown, whatever its figures: the gangs that it names may have changed.
KEPT = dt.timedelta(minutes=5)
_FIGURES = ("resource", "requested", "field", "limit", "short")


def basis(code: str, numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {"code": code} | {name: numbers[name] for name in _FIGURES if numbers.get(name) is not None}


def holds(found: GangRemedy, code: str, numbers: Mapping[str, Any], now: dt.datetime) -> bool:
    """More quota is counted from what was missing; other help still helps where less is missing."""
    then, today = dict(found.basis), basis(code, numbers)
    was, now_missing = then.pop("short", None), today.pop("short", None)
    if now - found.worked_out_at > KEPT or then != today or (was is None) != (now_missing is None):
        return False
    if found.goes_first and any(holder.get("gang") == found.goes_first for holder in numbers.get("holders", ())):
        return False
    if was is None or was == now_missing:
        return True
    if found.remedy is None:
        return bool(now_missing > was)
    return found.remedy.get("change") != "quota" and bool(now_missing < was)


def remedy_of(gang: Gang, now: dt.datetime) -> GangRemedy | None:
    """Through `remedy_selectors.with_remedies`: the end of a gang that is over is no remedy any more."""
    found: GangRemedy | None = getattr(gang, "worked_out", None)
    if found is None or not gang.needs:
        return None
    ends = (found.remedy or {}).get("change") == "gang_ends"
    if ends and not gang.named_holds:  # type: ignore[attr-defined]
        return None
    return found if holds(found, gang.reason_code, gang.reason_numbers or {}, now) else None
