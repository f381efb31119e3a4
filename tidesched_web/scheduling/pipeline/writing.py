from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from tidesched_web.common import log_lines
from tidesched_web.engine import bridge
from tidesched_web.engine.version import engine_version
from tidesched_web.scheduling.holds import GUARD_CODE, GUARD_KEY
from tidesched_web.scheduling.models import AlertSeverity, DecisionState, ReclaimState, Session, SessionState
from tidesched_web.scheduling.pipeline import alerts, decisions, guards, memory, reclaims
from tidesched_web.scheduling.pipeline.work import Work


def write(work: Work) -> None:
    """Session, memory, reclaims with their audit entries, decisions and the input: one transaction."""
    if work.breach is not None and guards.use_release(work.cluster.pk, _next_number(work.cluster.pk), work.breach):
        work.breach = None
    result = work.result
    state = SessionState.STOPPED if work.breach else SessionState.DRY_RUN if work.hold else SessionState.DECIDED
    session = work.session = _session(
        work,
        state=state,
        decided_at=timezone.now(),
        finished_at=None if work.sends else timezone.now(),
        result_hash=bridge.result_hash(result),
        error=work.breach.message if work.breach else "",
    )
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
            key=GUARD_KEY,
            severity=AlertSeverity.CRITICAL,
            code=GUARD_CODE,
            message=work.breach.message,
            numbers=work.breach.numbers(),
            session_id=session.pk,
        )


def write_failed(work: Work, error: str) -> None:
    with transaction.atomic():
        session = _session(
            work, state=SessionState.FAILED, finished_at=timezone.now(), result_hash="", error=error[:4000]
        )
        alerts.raise_alert(
            cluster_id=work.cluster.pk,
            key="session_failed",
            severity=AlertSeverity.CRITICAL,
            code="session_failed",
            message=f"A session could not decide: {error}"[:500],
            session_id=session.pk,
        )


def _session(work: Work, **fields: Any) -> Session:
    session = Session.objects.create(
        cluster=work.cluster,
        number=_next_number(work.cluster.pk),
        epoch=work.context.lease.epoch,
        mode=work.cluster.mode,
        trigger=work.trigger,
        now=work.now,
        started_at=work.started_at,
        policy=work.revision,
        engine_version=engine_version(),
        **fields,
    )
    log_lines.name_session(number=session.number)
    session.input_id = work.context.inputs.write(session.pk, work.snapshot, work.memory_in)
    session.save(update_fields=["input_id"])
    return session


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
