"""One session of one cluster, step by step. Everything that it wants from the cluster stands in PostgreSQL first."""

from __future__ import annotations

import datetime as dt
import logging
import time
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.kubernetes.writes import ClusterWrites
from tidesched_web.clusters.models import Cluster, PolicyRevision
from tidesched_web.common.locking import lock_lease
from tidesched_web.engine import bridge
from tidesched_web.engine.model import BadInput, BrokenInvariant, Memory, Result, Snapshot
from tidesched_web.engine.version import engine_version
from tidesched_web.scheduling.models import (
    AlertSeverity,
    DecisionState,
    ReclaimState,
    Session,
    SessionState,
)
from tidesched_web.scheduling.pipeline import (
    alerts,
    binds,
    decisions,
    evictions,
    failpoints,
    guards,
    memory,
    planning,
    reclaims,
    settling,
    statuses,
    timing,
)
from tidesched_web.scheduling.pipeline.context import ClusterContext
from tidesched_web.scheduling.pipeline.guards import Breach, Hold
from tidesched_web.scheduling.pipeline.lease import LeaseLost
from tidesched_web.scheduling.pipeline.planning import Plan
from tidesched_web.scheduling.pipeline.sending import Paused, Route

_log = logging.getLogger(__name__)

# Older than this the picture is no ground to decide on: watches are heard at least once in half the time.
OLDEST_PICTURE_SECONDS = 60.0


class StalePicture(RuntimeError):
    """The watches have not been heard for too long."""


class _Run:
    """The values that the steps of one session hand on."""

    def __init__(self, context: ClusterContext, trigger: str) -> None:
        self.context = context
        self.trigger = trigger
        self.started_at = timezone.now()
        self.timings: dict[str, float] = {}
        self.counts: dict[str, Any] = {}
        self.cluster: Cluster
        self.revision: PolicyRevision
        self.hold: Hold | None = None
        self.now: dt.datetime
        self.snapshot: Snapshot
        self.memory_in: Memory | None = None
        self.result: Result
        self.memory_out: Memory
        self.breach: Breach | None = None
        self.plan: Plan
        self.session: Session
        self.reclaims: list[Any] = []

    def timed(self, name: str, since: float) -> None:
        self.timings[name] = round((time.perf_counter() - since) * 1000, 3)

    @property
    def sends(self) -> bool:
        return self.hold is None and self.breach is None

    @property
    def acts(self) -> bool:
        """True where it wants to bind or to evict."""
        return bool(self.result.binds or self.result.evictions)

    def route(self, session_id: int) -> Route:
        lease = self.context.lease
        return Route(
            cluster_id=self.cluster.pk,
            session_id=session_id,
            epoch=lease.epoch,
            now=self.now,
            lease=lease,
            writes=ClusterWrites(self.context.client, session=str(session_id), epoch=lease.epoch),
            assumed=self.context.assumed,
        )


def run(context: ClusterContext, *, trigger: str) -> Session:
    """Run one session.

    Raises:
        LeaseLost: somebody else goes on from what is in the tables. CannotSettle, StalePicture, NoPolicy: not now.
    """
    work = _Run(context, trigger)
    _1_hold_the_lease(work)
    _2_settle(work)
    _3_take_the_snapshot(work)
    _4_decide(work)
    _5_write_then_send(work)
    _6_record_and_announce(work)
    return work.session


def _1_hold_the_lease(work: _Run) -> None:
    work.context.lease.require()
    failpoints.reach("lease.taken")
    work.cluster = Cluster.objects.get(pk=work.context.cluster_id)
    work.revision, _ = work.context.policy()
    work.hold = guards.hold(work.cluster, work.revision)
    if work.context.foreign_holder:
        work.hold = Hold.FOREIGN
    work.now = _cluster_time(work.context)


def _2_settle(work: _Run) -> None:
    """Finish or cancel what an earlier session left open. A session that may not send leaves it for one that may."""
    since = time.perf_counter()
    if work.hold is None:
        last = Session.objects.filter(cluster_id=work.cluster.pk).aggregate(last=Max("id"))["last"] or 0
        try:
            settled = settling.settle(work.route(last))
        except Paused:
            work.hold = Hold.PAUSED
        else:
            if settled.found:
                work.counts["settled"] = settled.found
            Session.objects.filter(
                cluster_id=work.cluster.pk, state__in=[SessionState.DECIDED, SessionState.SENDING]
            ).update(state=SessionState.FAILED, finished_at=timezone.now(), error="Ended early; settled afterwards.")
    work.timed("settle", since)


def _3_take_the_snapshot(work: _Run) -> None:
    since = time.perf_counter()
    age = work.context.cache.age_seconds()
    if age > OLDEST_PICTURE_SECONDS:
        raise StalePicture(f"the cluster has not been heard for {age:.0f} s")
    work.snapshot = work.context.assumed.lay_over(work.context.cache.snapshot())
    work.now = max(work.now, _cluster_time(work.context))
    work.timed("snapshot", since)


def _4_decide(work: _Run) -> None:
    since = time.perf_counter()
    _, policy = work.context.policy()
    work.memory_in = memory.load(work.cluster.pk)
    try:
        work.result, work.memory_out = bridge.decide(
            work.snapshot,
            policy,
            now=work.now.timestamp(),
            memory=work.memory_in,
            workspace=work.context.workspace,
        )
    except (BadInput, BrokenInvariant) as error:
        _write_failed(work, f"{type(error).__name__}: {error}")
        raise
    work.timings |= {f"engine.{name}": round(ms, 3) for name, ms in work.result.timings_ms.items()}
    work.timed("decide", since)
    if work.hold is None:
        work.breach = guards.breach(work.cluster, work.result, work.snapshot, now=work.now)
    failpoints.reach("session.decided", acts=work.acts)


def _5_write_then_send(work: _Run) -> None:
    since = time.perf_counter()
    events = work.context.events.new(work.result.events) if work.hold is None else []
    work.plan = planning.make(work.result, work.snapshot, new_events=events)
    with transaction.atomic():
        _hold_row(work.context)
        _write(work)
        failpoints.reach("session.before_commit", acts=work.acts)
    work.timed("write", since)
    failpoints.reach("session.committed", acts=work.acts)
    if work.sends:
        since = time.perf_counter()
        _send(work)
        work.timed("send", since)


def _hold_row(context: ClusterContext) -> None:
    """Keep the lease row against takers until the transaction ends."""
    held = context.lease
    if not lock_lease(held.cluster_id, held.epoch, idle_seconds=timing.LEASE_SECONDS):
        held.lose()
        raise LeaseLost(f"the lease of cluster {held.cluster_id} was taken by somebody else")


def _write(work: _Run) -> None:
    """Session, memory, reclaims with their audit entries, decisions and the input: one transaction."""
    if work.breach is not None and guards.use_release(work.cluster.pk, _next_number(work.cluster.pk)):
        work.breach = None
    result = work.result
    state = SessionState.STOPPED if work.breach else SessionState.DRY_RUN if work.hold else SessionState.DECIDED
    session = work.session = Session.objects.create(
        cluster=work.cluster,
        number=_next_number(work.cluster.pk),
        epoch=work.context.lease.epoch,
        state=state,
        mode=work.cluster.mode,
        trigger=work.trigger,
        now=work.now,
        started_at=work.started_at,
        decided_at=timezone.now(),
        finished_at=None if work.sends else timezone.now(),
        policy=work.revision,
        engine_version=engine_version(),
        result_hash=bridge.result_hash(result),
        error=work.breach.message if work.breach else "",
    )
    stored = work.context.inputs.write(session, work.snapshot, work.memory_in)
    session.input_id = stored.pk
    session.save(update_fields=["input_id"])
    owners = work.context.owners()
    drafts = list(work.plan)
    if work.sends:
        memory.store(work.cluster.pk, session.pk, work.memory_out)
        work.reclaims = reclaims.write(result, work.snapshot, session, owners=owners, state=ReclaimState.DECIDED)
        for draft in drafts:
            if draft.reclaim is not None:
                draft.reclaim_id = work.reclaims[draft.reclaim].pk
        decisions.insert(
            drafts, cluster_id=work.cluster.pk, session_id=session.pk, epoch=session.epoch, at=timezone.now()
        )
        reclaims.append_to_audit(work.reclaims, result.reclaims, owners)
        return
    if _begins_a_dry_spell(session):
        decisions.insert(
            drafts,
            cluster_id=work.cluster.pk,
            session_id=session.pk,
            epoch=session.epoch,
            at=timezone.now(),
            state=DecisionState.SUPERSEDED,
            outcome=f"Not sent: {work.breach.rule if work.breach else work.hold}.",
        )
    if work.breach:
        alerts.raise_alert(
            cluster_id=work.cluster.pk,
            key=guards.GUARD_KEY,
            severity=AlertSeverity.CRITICAL,
            code="eviction_budget",
            message=work.breach.message,
            numbers=work.breach.numbers(),
            session_id=session.pk,
        )


def _send(work: _Run) -> None:
    """Evictions first: their grace is what everybody waits for. Statuses last: they tell of the rest."""
    session, route = work.session, work.route(work.session.pk)
    Session.objects.filter(pk=session.pk).update(state=SessionState.SENDING)
    plan = work.plan
    try:
        evicted = evictions.send(evictions.units(plan.evictions), route)
        bound = binds.send(binds.gangs(plan.binds), route)
        failed = statuses.send([*plan.statuses, *plan.events], route)
        work.context.queue_statuses.send(work.result, work.snapshot, route)
    except Paused:
        # What stands half-way is settled by the session after the pause; the rest is not sent at all.
        work.counts["held"] = str(Hold.PAUSED)
        return
    work.counts |= {
        "failed": evicted.failed + bound.failed + failed,
        "unanswered": evicted.open + bound.open,
        "taken_back": bound.taken_back,
    }


def _follow_clock(work: _Run) -> None:
    """Let the pages know what time it is in a simulated cluster."""
    if work.cluster.simulated:
        anchor = work.context.clock.anchor()
        virtual, wall = (dt.datetime.fromtimestamp(at, dt.UTC) for at in (anchor.virtual, anchor.wall_at))
        clusters.note_clock(cluster=work.cluster, virtual=virtual, wall=wall, rate=anchor.rate)


def _6_record_and_announce(work: _Run) -> None:
    since = time.perf_counter()
    session, context, result = work.session, work.context, work.result
    owners = context.owners()
    queue_ids = {name: owner.id for name, owner in owners.items()}
    wall = timezone.now()
    try:
        with transaction.atomic():
            _hold_row(context)
            gangs = context.gangs.record(
                snapshot=work.snapshot,
                result=result,
                sent=work.sends,
                session_id=session.pk,
                at=work.now,
                wall_at=wall,
                queue_ids=queue_ids,
                reclaim_of=_reclaim_of(work),
            )
            queues = context.usage.record_queues(result, queue_ids=queue_ids, at=work.now, wall_at=wall)
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
    cluster_id = session.cluster_id
    _follow_clock(work)
    changed = {
        "gangs": gangs,
        "usage": len(queues) + tide,
        "nodes": nodes,
        "reclaims": len(followed) + len(work.reclaims),
    }
    topics = {topic: cluster_id for topic, n in changed.items() if n}
    context.announce({"sessions": session.pk, **topics}, version=session.number)


def _ratios(cluster: Cluster) -> dict[str, float]:
    return {"inference": float(cluster.overcommit_inference), "training": float(cluster.overcommit_training)}


def _finish(work: _Run) -> None:
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


def _write_failed(work: _Run, error: str) -> None:
    """A session that could not decide: kept with its input, so that it can be run again."""
    with transaction.atomic():
        session = Session.objects.create(
            cluster=work.cluster,
            number=_next_number(work.cluster.pk),
            epoch=work.context.lease.epoch,
            state=SessionState.FAILED,
            mode=work.cluster.mode,
            trigger=work.trigger,
            now=work.now,
            started_at=work.started_at,
            finished_at=timezone.now(),
            policy=work.revision,
            engine_version=engine_version(),
            result_hash="",
            error=error[:4000],
        )
        stored = work.context.inputs.write(session, work.snapshot, work.memory_in)
        Session.objects.filter(pk=session.pk).update(input_id=stored.pk)
        alerts.raise_alert(
            cluster_id=work.cluster.pk,
            key="session_failed",
            severity=AlertSeverity.CRITICAL,
            code="session_failed",
            message=f"A session could not decide: {error}"[:500],
            session_id=session.pk,
        )


def _reclaim_of(work: _Run) -> dict[str, int]:
    return {
        victim.gang: row.pk
        for row, reclaim in zip(work.reclaims, work.result.reclaims, strict=False)
        for victim in reclaim.victims
    }


def _next_number(cluster_id: int) -> int:
    return (Session.objects.filter(cluster_id=cluster_id).aggregate(last=Max("number"))["last"] or 0) + 1


def _begins_a_dry_spell(session: Session) -> bool:
    """Of many sessions in a row that send nothing only the first keeps its decisions; they would all be the same."""
    before = (
        Session.objects.filter(cluster_id=session.cluster_id, pk__lt=session.pk)
        .order_by("-id")
        .values_list("state", flat=True)
        .first()
    )
    return before not in (SessionState.DRY_RUN, SessionState.STOPPED)


def _cluster_time(context: ClusterContext) -> dt.datetime:
    return dt.datetime.fromtimestamp(context.clock.now(), dt.UTC)
