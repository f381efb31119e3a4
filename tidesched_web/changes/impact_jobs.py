import time
from typing import Any

from tidesched_web.changes.impact_day import Day
from tidesched_web.changes.policy_trial import PolicyTrial
from tidesched_web.engine.edits import Edit, read_edit
from tidesched_web.engine.flood import flood
from tidesched_web.engine.model import BadInput, BrokenInvariant
from tidesched_web.engine.what_if import LISTS, Picture, Trial, cut, impact, try_out
from tidesched_web.jobs.running import Running
from tidesched_web.scheduling import pictures
from tidesched_web.scheduling.input_selectors import StoredInput, input_of_session
from tidesched_web.waking import WORK_QUEUE

Row = dict[str, Any]

VERSION = 2
# Up to this size the flood is tried out at once; in larger clusters another process does it while the rest is read.
FLOOD_AT_ONCE_PODS = 5_000
# So old a snapshot is no longer called the present.
STALE_SECONDS = 60.0


def impact_now(running: Running) -> Row:
    """Kind ``impact``: in the process of the queue ``what-if``, then, for the flood of a large cluster, in another."""
    try:
        if running.checkpoint is None:
            return _first(running)
        return _at_flood(running, running.checkpoint)
    except (BadInput, BrokenInvariant) as error:
        return _unavailable("bad_policy" if running.params["policy"] else "failed", str(error))


def impact_of_a_day(running: Running) -> Row:
    try:
        text = running.params["policy"]
        return PolicyTrial(running, text).run() if text else Day(running, _edit(running)).run()
    except (BadInput, BrokenInvariant) as error:
        return _unavailable("bad_policy" if running.params["policy"] else "failed", str(error))


def _first(running: Running) -> Row:
    since, worked_since = time.perf_counter(), time.process_time()
    cluster_id = running.job.cluster_id
    assert cluster_id is not None
    found = pictures.latest(cluster_id)
    if found is None:
        return _unavailable("no_snapshot", "No session of this cluster has been recorded yet.")
    stored, picture = found
    took = {"load": _ms(since)}
    since = time.perf_counter()
    trial = try_out(picture, _edit(running))
    lists = impact(trial)
    took["decide"] = _ms(since)
    # On a machine that is busy with other things it is less than the time that passed.
    took["processor"] = round((time.process_time() - worked_since) * 1000, 1)
    told: Row = {**_head(stored, picture), **cut(lists), "flood": None, "card_hours": None, "pending": ["flood"]}
    if trial.same:
        # The flood of an edit that changes nothing takes no gang that it would not take anyhow.
        return {**told, **cut({name: [] for name in LISTS}), "pending": [], "elapsed_ms": took}
    if len(picture.snapshot.pods) <= FLOOD_AT_ONCE_PODS:
        return _with_flood(told, trial, took)
    told["elapsed_ms"] = took
    raise running.hand_over(worker=WORK_QUEUE, checkpoint={"session": stored.session_id, "result": told}, result=told)


def _at_flood(running: Running, checkpoint: Row) -> Row:
    told = checkpoint["result"]
    assert running.job.cluster_id is not None
    running.report(0.5, now=True)
    stored = input_of_session(running.job.cluster_id, checkpoint["session"])
    if stored is None:
        return {**told, "pending": [], "flood_unavailable": "no_snapshot"}
    picture = pictures.Loaded(running.job.cluster_id).read(stored)
    trial = try_out(picture, _edit(running))
    running.report(0.7, now=True)
    return _with_flood(told, trial, told["elapsed_ms"])


def _with_flood(told: Row, trial: Trial, took: Row) -> Row:
    since = time.perf_counter()
    found = flood(trial)
    lists = cut({name: found[name] for name in ("reclaimed_at_flood", "spared_at_flood")})
    counts = {**told["counts"], **lists.pop("counts")}
    elapsed = {**took, "flood": _ms(since)}
    return {**told, **lists, "flood": found["flood"], "counts": counts, "pending": [], "elapsed_ms": elapsed}


def _head(stored: StoredInput, picture: Picture) -> Row:
    age = pictures.age_seconds(stored)
    return {
        "version": VERSION,
        "session": stored.number,
        "session_id": stored.session_id,
        "at": stored.started_at.isoformat(),
        "cluster_time": stored.now.isoformat(),
        "age_seconds": round(age, 1),
        "stale": age > STALE_SECONDS,
        "pods": len(picture.snapshot.pods),
        "gangs": len(picture.snapshot.pod_groups),
    }


def _edit(running: Running) -> Edit:
    return read_edit(running.params["objects"], running.params["policy"])


def _unavailable(code: str, detail: str) -> Row:
    return {"unavailable": code, "detail": detail}


def _ms(since: float) -> float:
    return round((time.perf_counter() - since) * 1000, 1)
