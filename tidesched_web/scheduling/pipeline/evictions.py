"""Every member of a reclaim passes a dry run before the first is evicted: a budget's no then costs nobody anything.

Evictions are not atomic: a no in the middle leaves a partial reclaim and an alert; the evicted members end their gang
through its controller, and the next session decides anew.
"""

from collections.abc import Callable, Sequence

import msgspec
from django.db import transaction

from tidesched_web.clusters.kubernetes.outcomes import Outcome as Answer
from tidesched_web.clusters.kubernetes.outcomes import OutcomeKind
from tidesched_web.scheduling.models import AlertSeverity, DecisionState
from tidesched_web.scheduling.pipeline import alerts, decisions, failpoints, memory, planning, reclaims
from tidesched_web.scheduling.pipeline.budgets import Budgets
from tidesched_web.scheduling.pipeline.decisions import Draft, Outcome
from tidesched_web.scheduling.pipeline.lease import hold_row
from tidesched_web.scheduling.pipeline.sending import BATCH, Route, outcome_of, split_name


class EvictionReport(msgspec.Struct):
    failed: int = 0
    open: int = 0
    cancelled: set[int] = set()


def units(drafts: Sequence[Draft]) -> list[list[Draft]]:
    """The evictions of one reclaim belong together: without one of its gangs the reclaimer would not fit."""
    by_reclaim: dict[tuple[int | None, str], list[Draft]] = {}
    for draft in drafts:
        key = (draft.reclaim_id, "" if draft.reclaim_id is not None else draft.gang)
        by_reclaim.setdefault(key, []).append(draft)
    return list(by_reclaim.values())


def send(groups: Sequence[list[Draft]], route: Route, *, budgets: Budgets | None = None) -> EvictionReport:
    """A reclaim that goes beyond ``budgets`` as a whole is cancelled (None: it has begun already)."""
    report = EvictionReport()
    for batch in planning.batches(list(groups), BATCH):
        drafts = [draft for group in batch for draft in group]
        route.begin(drafts)
        answers = route.send([_call(draft, route, dry_run=True) for draft in drafts])
        failpoints.reach("evict.dry_run_done")
        route.require_server()
        rehearsed = dict(zip((draft.id for draft in drafts), answers, strict=True))
        passed = []
        for group in batch:
            refused = next((draft for draft in group if not _passes(rehearsed[draft.id])), None)
            answer = rehearsed[refused.id] if refused is not None else None
            if refused is None and budgets is not None and (over := budgets.forbids(group)) is not None:
                refused, answer = over[0], Answer(OutcomeKind.REFUSED, "DisruptionBudget", over[1])
            if refused is not None and answer is not None:
                _cancel(group, refused, answer, route)
                report.cancelled |= {draft.reclaim_id for draft in group if draft.reclaim_id is not None}
                report.failed += len(group)
            else:
                passed.append(group)
        _evict(passed, route, report)
    return report


def _call(draft: Draft, route: Route, *, dry_run: bool) -> Callable[[], Answer]:
    namespace, name = split_name(draft.target)
    return lambda: route.writes.evict_pod(namespace, name, uid=draft.uid, dry_run=dry_run)


def _announce(draft: Draft, route: Route) -> Callable[[], Answer]:
    namespace, name = split_name(draft.target)
    message = f"TideSched: {draft.detail.get('action', 'evict')} for {draft.detail.get('reclaimer') or 'others'}"
    return lambda: route.writes.announce_disruption(
        namespace, name, uid=draft.uid, message=message, now=route.now.timestamp()
    )


def _passes(answer: Answer) -> bool:
    return answer.kind in (OutcomeKind.DONE, OutcomeKind.GONE)


def _cancel(group: Sequence[Draft], refused: Draft, answer: Answer, route: Route) -> None:
    text = f"Dry run: {refused.target} may not be evicted: {answer.reason} {answer.message}".strip()
    outcomes = [
        Outcome(draft.id, DecisionState.FAILED if draft is refused else DecisionState.SUPERSEDED, text)
        for draft in group
    ]
    with transaction.atomic():
        hold_row(route.lease)
        decisions.mark(group, outcomes)
        reclaims.settle([draft.reclaim_id for draft in group], at=route.now)
        memory.forget_promises(route.cluster_id, [draft.target for draft in group])
        if answer.kind is not OutcomeKind.UNREACHABLE:
            why = f"may not be evicted: {answer.reason} {answer.message}".strip()[:200]
            memory.spare(route.cluster_id, refused.gang, why, at=route.now, of_budget=answer.of_budget)


def _evict(groups: Sequence[list[Draft]], route: Route, report: EvictionReport) -> None:
    drafts = [draft for group in groups for draft in group]
    if not drafts:
        return
    route.require()  # the pause switch may have been pressed during the dry run
    reclaims.begin({draft.reclaim_id for draft in drafts if draft.reclaim_id is not None})
    # Best effort: who sees a pod end then knows why. What cannot be said must not keep a pod from leaving.
    route.send([_announce(draft, route) for draft in drafts])
    route.require_server()
    answers = route.send([_call(draft, route, dry_run=False) for draft in drafts], between="evict.between_members")
    failpoints.reach("evict.sent")
    outcomes = [_outcome(draft, answer) for draft, answer in zip(drafts, answers, strict=True)]
    known = [outcome for outcome in outcomes if outcome is not None]
    report.failed += sum(outcome.state is not DecisionState.DONE for outcome in known)
    report.open += len(outcomes) - len(known)
    route.finish(drafts, known)
    states = {outcome.id: outcome for outcome in known}
    with transaction.atomic():
        reclaims.settle([draft.reclaim_id for draft in drafts], at=route.now)
        reclaims.note_ended(
            (draft.reclaim_id, draft.target)
            for draft, answer in zip(drafts, answers, strict=True)
            if draft.reclaim_id is not None and answer.kind is OutcomeKind.GONE
        )
        for group in groups:
            if all(draft.id in states for draft in group):
                _alert_if_partial(group, states, route)


def _outcome(draft: Draft, answer: Answer) -> Outcome | None:
    if answer.kind is OutcomeKind.GONE:
        return Outcome(draft.id, DecisionState.DONE, "It had left already.")
    return outcome_of(draft, answer)


def _alert_if_partial(group: Sequence[Draft], states: dict[int, Outcome], route: Route) -> None:
    stayed = [draft for draft in group if states[draft.id].state is not DecisionState.DONE]
    if not stayed or len(stayed) == len(group):
        return
    alerts.raise_alert(
        cluster_id=route.cluster_id,
        key="partial_reclaim",  # one open alert says enough; one for each would never end
        severity=AlertSeverity.WARNING,
        code="partial_reclaim",
        message=f"{len(stayed)} of {len(group)} pods were not evicted: {states[stayed[0].id].text}"[:500],
        numbers={"reclaim": group[0].reclaim_id, "stayed": [draft.target for draft in stayed][:20]},
        session_id=route.session_id,
    )
