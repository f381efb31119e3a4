"""For readers with the same sight, language and zone; what is in use may be so much older. A decision plans anew."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson
import zstandard
from django.core.cache import cache
from django.utils import timezone
from django.utils.translation import get_language

from tidesched_web.changes.impact import answer_in_time, answer_of, answered_about, asked_about
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.selectors import tree_version
from tidesched_web.common.permissions import Access
from tidesched_web.jobs.models import OPEN_JOB_STATES
from tidesched_web.jobs.selectors import job_by_id


def subject_of(change: QuotaChange) -> str:
    return f"change:{change.pk}"


def known_impact(change: QuotaChange, document: dict[str, Any], *, wait: bool = False) -> dict[str, Any] | None:
    """Names everybody's gangs. ``wait``: for a question that is under way, outside of transactions."""
    objects = document.get("objects") or []
    old = change.plan or {}
    kept: dict[str, Any] | None = old.get("impact") if old.get("objects") == objects else None
    if objects and (kept is None or change.state in QuotaChange.OPEN):
        asked = None if wait else answered_about(objects, subject=subject_of(change))
        if asked is None and (wait or kept is None):
            asked = asked_about(objects, subject=subject_of(change))
        if asked is not None and asked.pk > ((kept or {}).get("job") or 0):
            newer = (answer_in_time if wait else answer_of)(asked)
            if kept is None or newer.get("unavailable") in (None, "timeout", "no_worker"):
                return newer
    if kept is None or not kept.get("pending"):
        return kept
    job = job_by_id(kept.get("job") or 0)
    answer = kept if job is None or job.result is None else answer_of(job)
    if answer.get("pending") and (job is None or job.state not in OPEN_JOB_STATES):
        return {**answer, "pending": [], "flood_unavailable": "failed"}
    return answer


SECONDS: Final = 60
# More figures than a person edits by hand: to plan them takes longer than to show any other page.
LARGE: Final = 2_000
# More than the plan of the largest change takes; what is above it is worked out at each look.
MOST_BYTES: Final = 8 * 2**20


def known_plan(change: QuotaChange, access: Access, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    if not is_large(change.edits):
        return make()
    place = _place(change, access)
    kept = cache.get(place)
    if kept is not None:
        found: dict[str, Any] = orjson.loads(zstandard.decompress(kept))
        return found
    made = make()
    try:
        packed = zstandard.compress(orjson.dumps(made), 3)
    except TypeError:  # a figure of more digits than any quota has
        return made
    if len(packed) <= MOST_BYTES:
        cache.set(place, packed, SECONDS)
    return made


def is_large(edits: Mapping[str, Any]) -> bool:
    left = LARGE
    for patch in edits.values():
        left -= _figures(patch)
        if left < 0:
            return True
    return False


def _figures(value: Any) -> int:
    if isinstance(value, Mapping | list):
        return sum(map(_figures, value.values() if isinstance(value, Mapping) else value)) or 1
    return 1


def _place(change: QuotaChange, access: Access) -> str:
    sight = "all" if access.everything else sorted(access.tenant_ids)
    of = [
        change.version,
        change.updated_at.isoformat(),
        # First of all: what is read afterwards is at least as new.
        tree_version(change.cluster),
        change.cluster.version,
        sight,
        get_language(),
        timezone.get_current_timezone_name(),
    ]
    return f"plan:{change.pk}:{hashlib.sha256(orjson.dumps(of)).hexdigest()}"
