"""A round looks at one cluster, gives way to a person's question (but not the one after two that gave way), and is
followed by a pause of some times its processor time: whatever waits, it takes a fixed share of one processor.
"""

import datetime as dt
import logging
import time

from django.db import Error as DatabaseError
from django.utils import timezone

from tidesched_web.common import live
from tidesched_web.engine import remedies as engine
from tidesched_web.engine.figures import numbers_of
from tidesched_web.engine.model import BadInput, BrokenInvariant, Reason
from tidesched_web.engine.what_if import Picture
from tidesched_web.jobs.selectors import is_asked
from tidesched_web.scheduling import pictures
from tidesched_web.scheduling.input_selectors import StoredInput, cluster_ids
from tidesched_web.scheduling.remedy_asking import asked_for, take
from tidesched_web.waking import WHAT_IF_QUEUE
from tidesched_web.workloads.remedies import basis
from tidesched_web.workloads.remedy_selectors import due_gangs
from tidesched_web.workloads.remedy_services import drop_stale, keep_remedy

_log = logging.getLogger(__name__)

# No gang is begun after so long; one takes at most ten sessions.
ROUND_SECONDS = 1.0
# The pause after a round, in times of the processor time of the round.
PAUSE = 4.0
# The pause after a round that was asked for by who looks at a gang.
PAUSE_ASKED = 1.0
# A round that found questions of people waiting gives way; after so many in a row one does not.
MOST_YIELDS = 2
# How often a round is asked for.
EVERY_SECONDS = 2
# Gangs are remembered over which the engine failed, until the next session.
MOST_FAILED = 1000

_next: dict[int, float] = {}
_next_asked: dict[int, float] = {}
_failed: dict[tuple[int, str], int] = {}
_yields: dict[int, int] = {}


def round_of_all() -> int:
    now, clusters = time.monotonic(), cluster_ids()
    asked = {one for one in clusters if _next_asked.get(one, 0.0) <= now and asked_for(one)}
    ready = [one for one in clusters if one in asked or _next.get(one, 0.0) <= now]
    for cluster_id in sorted(ready, key=lambda one: (one not in asked, _next.get(one, 0.0), one)):
        since = time.process_time()
        try:
            answered = round_of(cluster_id)
        except (BadInput, BrokenInvariant, DatabaseError) as error:
            _log.warning("no remedies for cluster %s: %s", cluster_id, str(error).strip().split("\n")[0])
            answered = 0
        ended, took = time.monotonic(), time.process_time() - since
        _next[cluster_id] = ended + max(EVERY_SECONDS, PAUSE * took) - 0.1
        _next_asked[cluster_id] = ended + PAUSE_ASKED * took
        if answered:
            return answered
    return 0


def round_of(cluster_id: int, seconds: float = ROUND_SECONDS) -> int:
    drop_stale(cluster_id=cluster_id)
    due = due_gangs(cluster_id, timezone.now(), first=take(cluster_id))
    if not due:
        return 0
    found = pictures.latest(cluster_id)
    if found is None:
        return 0
    stored, picture = found
    reasons = engine.reasons_of(picture)
    deadline, answered, yielded = time.monotonic() + seconds, 0, False
    gives_way = _yields.get(cluster_id, 0) < MOST_YIELDS
    for gang in due:
        reason = reasons.get(gang.key)
        if reason is None or _failed.get((cluster_id, gang.key)) == stored.session_id:
            continue
        if time.monotonic() >= deadline:
            break
        if gives_way and is_asked(WHAT_IF_QUEUE):
            yielded = True
            break
        try:
            answered += _answer(stored, picture, gang.pk, reason, gives_way=gives_way)
        except engine.Interrupted:
            yielded = True
            break
        except (BadInput, BrokenInvariant) as error:
            if len(_failed) >= MOST_FAILED:
                _failed.clear()
            _failed[cluster_id, gang.key] = stored.session_id
            _log.warning("no remedy for gang %s: %s", gang.key, str(error).strip().split("\n")[0])
    _yields[cluster_id] = _yields.get(cluster_id, 0) + 1 if yielded and not answered else 0
    if answered:
        live.publish("gangs", live.EVERYTHING, f"{stored.number}.{int(time.time())}", cluster_id=cluster_id)
    return answered


def _answer(stored: StoredInput, picture: Picture, gang_id: int, reason: Reason, *, gives_way: bool) -> bool:
    answer = engine.remedy(picture, reason, urgent=lambda: gives_way and is_asked(WHAT_IF_QUEUE))
    remedy = answer.remedy
    until = None if remedy else engine.expected_at(picture, reason)
    numbers = numbers_of(reason)
    return keep_remedy(
        gang_id=gang_id,
        basis=basis(str(reason.code), numbers),
        numbers=numbers,
        remedy=remedy,
        starts=answer.starts,
        until=(dt.datetime.fromtimestamp(until[0], dt.UTC), until[1]) if until else None,
        too_large=engine.too_large(picture, reason),
        goes_first=answer.first,
        held_by_services=answer.endless,
        session_id=stored.session_id,
        number=stored.number,
        at=stored.now,
    )


def forget() -> None:
    _next.clear()
    _next_asked.clear()
    _yields.clear()
    _failed.clear()
