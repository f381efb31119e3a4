"""Everything that a session wants from the cluster stands in PostgreSQL first."""

import datetime as dt
import time
from collections.abc import Mapping
from functools import partial

from django.db import transaction
from django.utils import timezone
from msgspec.structs import replace

from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.kubernetes.paths import POD, POD_GROUP
from tidesched_web.clusters.models import Cluster
from tidesched_web.common import log_lines
from tidesched_web.common.failures import described
from tidesched_web.common.live import EVERYTHING, About
from tidesched_web.common.live_hub import MOST_OF_ONE
from tidesched_web.common.progress import progress
from tidesched_web.engine import bridge
from tidesched_web.engine.gangs import lasting_name, spared_until
from tidesched_web.engine.model import BadInput, BrokenInvariant, GangPhase, Snapshot
from tidesched_web.engine.taken import NotTaken, as_taken
from tidesched_web.scheduling.holds import Hold
from tidesched_web.scheduling.models import Session, SessionState
from tidesched_web.scheduling.pipeline import (
    binds,
    evictions,
    failpoints,
    guards,
    memory,
    planning,
    reclaims,
    settling,
    statuses,
    writing,
)
from tidesched_web.scheduling.pipeline.budgets import Budgets
from tidesched_web.scheduling.pipeline.context import ClusterContext
from tidesched_web.scheduling.pipeline.decisions import Draft
from tidesched_web.scheduling.pipeline.lease import hold_row
from tidesched_web.scheduling.pipeline.sending import Paused, Route, supersede
from tidesched_web.scheduling.pipeline.work import Work
from tidesched_web.workloads.gang_rows import uid_of
from tidesched_web.workloads.models import Gang

_Changed = dict[tuple[str, int | str], About | None]

# Older than this the picture is no ground to decide on: watches are heard at least once in half the time.
OLDEST_PICTURE_SECONDS = 60.0


class StalePicture(RuntimeError):
    """The watches have not been heard for too long."""


@log_lines.in_session()
def run(context: ClusterContext, *, trigger: str) -> Session:
    work = Work(context, trigger)
    progress.step("holding the lease")
    _1_hold_the_lease(work)
    progress.step("settling")
    _2_settle(work)
    progress.step("taking the snapshot")
    _3_take_the_snapshot(work)
    progress.step("deciding")
    _4_decide(work)
    progress.step("writing")
    _5_write_then_send(work)
    progress.step("recording")
    _6_record_and_announce(work)
    progress.step("recording what others did")
    _7_record_what_others_did(work)
    return work.session


def _1_hold_the_lease(work: Work) -> None:
    work.context.lease.require()
    failpoints.reach("lease.taken")
    work.cluster = Cluster.objects.get(pk=work.context.cluster_id)
    log_lines.name_session(cluster=work.cluster.slug)
    work.revision, _ = work.context.policy()
    work.hold = guards.hold(work.cluster, work.revision)
    if work.context.foreign_holder:
        work.hold = Hold.FOREIGN
    work.now = _cluster_time(work.context)


def _2_settle(work: Work) -> None:
    """A session that may not send leaves open decisions for one that may. The first one after a change of mode takes
    the figures of the scheduler before out of the queues."""
    since = time.perf_counter()
    if (
        work.hold in (Hold.QUOTA_ONLY, Hold.MODE_CHANGED)
        and not work.cluster.paused
        and guards.mode_changed(work.cluster)
        and work.context.installation_lease.held(work.context.client)
    ):
        statuses.clear_queue_figures(work.context.client, work.context.installation_lease)
    if work.hold is None:
        sessions = Session.objects.filter(cluster_id=work.cluster.pk)
        last = sessions.order_by("-id").values_list("id", "number").first() or (0, 0)
        try:
            settled = settling.settle(work.route(*last))
        except Paused:
            work.hold = Hold.PAUSED
        else:
            if settled:
                work.counts["settled"] = settled
            sessions.filter(state__in=[SessionState.DECIDED, SessionState.SENDING]).update(
                state=SessionState.FAILED, finished_at=timezone.now(), error="Ended early; settled afterwards."
            )
    work.timed("settle", since)


def _3_take_the_snapshot(work: Work) -> None:
    since = time.perf_counter()
    age = work.context.cache.age_seconds()
    if age > OLDEST_PICTURE_SECONDS:
        raise StalePicture(f"the cluster has not been heard for {age:.0f} s")
    work.seen = work.context.cache.snapshot()
    work.now = max(work.now, _cluster_time(work.context))
    work.snapshot = _without_withdrawn(work, work.context.assumed.lay_over(work.seen))
    work.timed("snapshot", since)


def _without_withdrawn(work: Work, snapshot: Snapshot) -> Snapshot:
    """Gangs whose promise a person has withdrawn wait, and rest until its time is over."""
    rows = Gang.objects.filter(cluster=work.cluster, gone_at__isnull=True, withdrawn_until__gt=work.now)
    uids = set(rows.values_list("uid", flat=True)) if work.hold is None else set()
    if not uids:
        return snapshot
    waits = (GangPhase.PENDING, GangPhase.INQUEUE)
    work.withdrawn = {
        group.key: group for group in snapshot.pod_groups if uid_of(group) in uids and group.phase in waits
    }
    rests = {"phase": GangPhase.PENDING, "backing_off": "its promise was withdrawn"}
    groups = (replace(group, **rests) if group.key in work.withdrawn else group for group in snapshot.pod_groups)
    return replace(snapshot, pod_groups=tuple(groups))


def _4_decide(work: Work) -> None:
    since = time.perf_counter()
    _, policy = work.context.policy()
    work.memory_in = memory.load(work.cluster.pk)
    try:
        work.result, work.memory_out = bridge.decide(
            work.snapshot, policy, now=work.now.timestamp(), memory=work.memory_in, workspace=work.context.workspace
        )
    except (BadInput, BrokenInvariant) as error:
        writing.write_failed(work, described(error))
        raise
    work.timings |= {f"engine.{name}": round(ms, 3) for name, ms in work.result.timings_ms.items()}
    work.timed("decide", since)
    if work.hold is None:
        work.breach = guards.breach(work.cluster, work.result, work.snapshot, now=work.now)
    failpoints.reach("session.decided", acts=work.acts)


def _5_write_then_send(work: Work) -> None:
    since = time.perf_counter()
    events = work.context.events.due(work.result, work.snapshot) if work.hold is None else []
    resting = work.context.refusals.names(POD_GROUP.plural)
    work.plan = planning.make(work.result, work.snapshot, new_events=events, resting=resting, withdrawn=work.withdrawn)
    with transaction.atomic():
        hold_row(work.context.lease)
        writing.write(work)
        failpoints.reach("session.before_commit", acts=work.acts)
    work.timed("write", since)
    failpoints.reach("session.committed", acts=work.acts)
    if work.sends:
        progress.step("sending")
        since = time.perf_counter()
        _send(work)
        work.timed("send", since)


def _send(work: Work) -> None:
    """Evictions first: their grace is what everybody waits for. Statuses last: they tell of the rest."""
    session, route, context = work.session, work.route(work.session.pk, work.session.number), work.context
    Session.objects.filter(pk=session.pk).update(state=SessionState.SENDING)
    plan = work.plan
    try:
        units = evictions.units(plan.evictions)
        evicted = evictions.send(units, route, budgets=Budgets(work.snapshot) if units else None)
        if evicted.cancelled:
            stay = {draft.gang for draft in plan.evictions if draft.reclaim_id in evicted.cancelled}
            names = {lasting_name(group) for group in work.snapshot.pod_groups if group.key in stay}
            memory.not_evicted(work.cluster.pk, names)
        made = context.pod_groups.send(work.snapshot, route, revisions=context.cache.revisions())
        bound = binds.send(binds.gangs(plan.binds), route)
        if bound.refused:
            work.result = as_taken(work.result, work.snapshot, bound.refused)
        told = _still_true(work, evicted.cancelled, bound.refused)
        failed = statuses.send(told, route, told=context.events.note)
        unsure = {outcome.queue for outcome in work.result.podgroups if outcome.name in bound.refused}
        context.aside.run(partial(_show, work, route, unsure))
        route.require_server()
    except Paused:
        # What stands half-way is settled by the session after the pause; the rest is not sent at all.
        work.counts["held"] = str(Hold.PAUSED)
        return
    work.counts |= {
        "failed": evicted.failed + bound.failed + failed,
        "unanswered": evicted.open + bound.open,
        "taken_back": bound.taken_back,
        **({"pod_groups": made} if made else {}),
    }


def _show(work: Work, route: Route, unsure: set[str]) -> None:
    """Levels, which the next session brings again. ``unsure``: queues whose figures count binds that were refused."""
    context, result, snapshot = work.context, work.result, work.snapshot
    context.nominations.send(result, snapshot, route)
    resting = context.refusals.names(f"{POD.plural}/status")
    context.pod_reasons.send(result, route, pods=work.seen.pods, shown=context.cache.waits, resting=resting)
    context.gang_counts.send(snapshot, route, pods=work.seen.pods, shown=context.cache.gang_counts)
    context.queue_statuses.send(result, snapshot, route, stateless=context.cache.stateless_queues(), but=unsure)


def _still_true(work: Work, cancelled: set[int], refused: Mapping[str, NotTaken]) -> list[Draft]:
    plan = work.plan
    gone = {index for index, row in enumerate(work.reclaims) if row.pk in cancelled}
    over = [draft for draft in plan.events if draft.detail.get("reclaim") in gone] if gone else []
    if over:
        supersede(over, "The reclaim was cancelled.")
    unbound = {gang for gang, one in refused.items() if not one.stands}
    untrue = [draft for draft in (*plan.statuses, *plan.events) if draft.gang in unbound and draft not in over]
    if untrue:
        supersede(untrue, "Its binds were refused.")
    return [draft for draft in (*plan.statuses, *plan.events) if draft not in over and draft not in untrue]


def _follow_clock(work: Work) -> None:
    if work.cluster.simulated:
        anchor = work.context.clock.anchor()
        virtual, wall = (dt.datetime.fromtimestamp(at, dt.UTC) for at in (anchor.virtual, anchor.wall_at))
        clusters.note_clock(cluster=work.cluster, virtual=virtual, wall=wall, rate=anchor.rate)


def _6_record_and_announce(work: Work) -> None:
    since = time.perf_counter()
    session, context, result = work.session, work.context, work.result
    owners = context.owners()
    queue_ids = {name: owner.id for name, owner in owners.items()}
    wall = timezone.now()
    try:
        with transaction.atomic():
            hold_row(context.lease)
            gangs = context.gangs.record(
                snapshot=work.snapshot,
                result=result,
                sent=work.sends,
                session_id=session.pk,
                number=session.number,
                at=work.now,
                wall_at=wall,
                queue_ids=queue_ids,
                reclaim_of=_reclaim_of(work),
                spared=spared_until(work.memory_out, work.now),
            )
            queues = context.usage.record_queues(
                work.snapshot, result, sent=work.sends, queue_ids=queue_ids, at=work.now, wall_at=wall
            )
            tide = context.usage.record_tide(work.snapshot, result, at=work.now, wall_at=wall)
            nodes = context.inventory.record(work.snapshot, ratios=_ratios(work.cluster), wall_at=wall)
            followed = reclaims.follow(
                work.snapshot, cluster_id=session.cluster_id, at=work.now, before_session=session.pk
            )
            failpoints.reach("record.before_commit", acts=work.acts)
            work.timed("record", since)
            _finish(work)
    except Exception:
        context.load()  # what the recorders remember is not in the tables
        raise
    failpoints.reach("session.finished", acts=work.acts)
    _follow_clock(work)
    _announce(work, gangs=gangs, usage=len(queues) + tide, nodes=nodes, reclaims=len(followed))


def _7_record_what_others_did(work: Work) -> None:
    if work.context.observer is None:
        return
    if work.context.observer.record(work):
        work.context.announce({("reclaims", EVERYTHING): None}, version=work.session.number)


def _announce(work: Work, *, gangs: int, usage: int, nodes: int, reclaims: int) -> None:
    session, context = work.session, work.context
    changed: _Changed = {("sessions", session.pk): About("session", str(session.number), "done")}
    if usage:
        changed["usage", EVERYTHING] = None
    if nodes:
        changed["nodes", EVERYTHING] = None
    changed |= _gangs(work, gangs) | _reclaims(work, reclaims)
    context.announce(changed, version=session.number)


def _gangs(work: Work, number: int) -> _Changed:
    written = work.context.gangs.written
    if not number or number > MOST_OF_ONE or number != len(written):  # of gangs that are gone there is nothing to name
        return {("gangs", EVERYTHING): None} if number else {}
    return {("gangs", row.pk): About("gang", row.key, str(row.state), _whose(work, row.queue_name)) for row in written}


def _reclaims(work: Work, earlier: int) -> _Changed:
    if earlier or len(work.reclaims) > MOST_OF_ONE:
        return {("reclaims", EVERYTHING): None}
    return {
        ("reclaims", row.pk): About("reclaim", row.reclaimer, str(row.state), _whose(work, row.queue_name))
        for row in work.reclaims
    }


def _whose(work: Work, queue: str) -> frozenset[int]:
    """Whose members see what happens in the queue; empty for one of the platform's."""
    owner = work.context.owners().get(queue)
    return frozenset() if owner is None or owner.tenant_id is None else frozenset({owner.tenant_id})


def _ratios(cluster: Cluster) -> dict[str, float]:
    return {"inference": float(cluster.overcommit_inference), "training": float(cluster.overcommit_training)}


def _finish(work: Work) -> None:
    session, result = work.session, work.result
    held = str(work.hold) if work.hold else work.breach.rule if work.breach else None
    session.counts = {
        "nodes": len(work.snapshot.nodes),
        "pods": len(work.snapshot.pods),
        "gangs": len(work.snapshot.pod_groups),
        "binds": len(result.binds),
        "evictions": len(result.evictions),
        "pipelined": len(result.pipelined),
        "reclaims": len(result.reclaims),
        "waiting": len(result.reasons),
        **({"held": held} if held else {}),
        **work.counts,
    }
    session.timings_ms = work.timings
    session.finished_at = timezone.now()
    if work.sends:
        session.state = SessionState.DONE
    session.save(update_fields=["counts", "timings_ms", "finished_at", "state"])


def _reclaim_of(work: Work) -> dict[str, int]:
    return {
        victim.gang: row.pk
        for row, reclaim in zip(work.reclaims, work.result.reclaims, strict=False)
        for victim in reclaim.victims
    }


def _cluster_time(context: ClusterContext) -> dt.datetime:
    return dt.datetime.fromtimestamp(context.clock.now(), dt.UTC)
