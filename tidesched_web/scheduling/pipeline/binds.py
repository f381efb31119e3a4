"""Binding gangs: all members, or what was bound is taken back as an act of its own that is recorded first."""

from collections.abc import Callable, Iterable, Sequence

import msgspec
from django.db import transaction
from django.utils import timezone

from tidesched_web.clusters.kubernetes.outcomes import Outcome as Answer
from tidesched_web.engine.taken import NotTaken
from tidesched_web.scheduling.models import DecisionKind, DecisionState
from tidesched_web.scheduling.pipeline import decisions, failpoints, memory, planning
from tidesched_web.scheduling.pipeline.decisions import Draft, Outcome
from tidesched_web.scheduling.pipeline.lease import hold_row
from tidesched_web.scheduling.pipeline.sending import BATCH, Route, outcome_of, split_name


class GangBinds(msgspec.Struct, kw_only=True):
    gang: str
    to_send: list[Draft]
    already: list[Draft] = []

    @property
    def required(self) -> int:
        return max((int(draft.detail.get("required", 0)) for draft in (*self.to_send, *self.already)), default=0)


class BindReport(msgspec.Struct):
    failed: int = 0
    open: int = 0
    taken_back: list[str] = []
    refused: dict[str, NotTaken] = {}


def gangs(drafts: Iterable[Draft]) -> list[GangBinds]:
    return [GangBinds(gang=unit[0].gang, to_send=unit) for unit in planning.gangs(drafts)]


def send(units: Sequence[GangBinds], route: Route, *, again: bool = False) -> BindReport:
    """``again``: they were sent before and had no answer; what is bound of a gang without the rest is taken back."""
    report = BindReport()
    by_first = {unit.to_send[0].id: unit for unit in units if unit.to_send}
    for batch in planning.batches([unit.to_send for unit in by_first.values()], BATCH):
        drafts = [draft for unit in batch for draft in unit]
        route.begin(drafts)
        answers = route.send([_call(draft, route) for draft in drafts], between="bind.between_members")
        failpoints.reach("bind.sent")
        outcomes = [outcome_of(draft, answer) for draft, answer in zip(drafts, answers, strict=True)]
        known = [outcome for outcome in outcomes if outcome is not None]
        route.finish(drafts, known)
        report.failed += sum(outcome.state is not DecisionState.DONE for outcome in known)
        report.open += len(outcomes) - len(known)
        states = {outcome.id: outcome for outcome in known}
        for unit in batch:
            _complete_or_take_back(by_first[unit[0].id], states, route, report, again=again)
    if report.refused:
        with transaction.atomic():
            hold_row(route.lease)
            memory.back_off(route.cluster_id, {one.gang: one.why for one in report.refused.values()}, at=route.now)
    return report


def _call(draft: Draft, route: Route) -> Callable[[], Answer]:
    namespace, name = split_name(draft.target)
    return lambda: route.writes.bind_pod(
        namespace,
        name,
        uid=draft.uid,
        node=draft.node,
        card=draft.detail.get("card", ""),
        card_indices=tuple(draft.detail.get("card_indices", ())),
        group=draft.detail.get("group", ""),
    )


def _complete_or_take_back(
    unit: GangBinds, states: dict[int, Outcome], route: Route, report: BindReport, *, again: bool
) -> None:
    ends = {draft.id: states[draft.id].state if draft.id in states else None for draft in unit.to_send}
    bound = [draft for draft in unit.to_send if ends[draft.id] is DecisionState.DONE] + unit.already
    missing = [d for d in unit.to_send if ends[d.id] not in (DecisionState.DONE, DecisionState.SUPERSEDED)]
    undecided = None in ends.values()
    if undecided and route.away:
        return
    said = next((states[draft.id].text for draft in missing if draft.id in states), "no answer")
    why = f"{len(bound)} of {len(bound) + len(missing)} members could be bound ({said})"[:500]
    stands = len(bound) >= unit.required
    if missing:
        report.refused[unit.gang] = NotTaken(unit.gang, tuple(draft.target for draft in missing), why, stands)
    if bound and not stands and (again or not undecided):
        report.taken_back.append(unit.gang)
        take_back(bound, route, reason=why)


def take_back(bound: Sequence[Draft], route: Route, *, reason: str) -> None:
    """By deletion, not by the Eviction API: a disruption budget must not keep half a gang on its cards."""
    drafts = [
        Draft(
            kind=DecisionKind.EVICT,
            gang=draft.gang,
            target=draft.target,
            uid=draft.uid,
            node=draft.node,
            detail={"action": "take_back", "takes_back": draft.id, "reason": reason},
        )
        for draft in bound
    ]
    with transaction.atomic():
        hold_row(route.lease)
        decisions.insert(
            drafts, cluster_id=route.cluster_id, session_id=route.session_id, epoch=route.epoch, at=timezone.now()
        )
    send_take_backs(drafts, route)


def send_take_backs(drafts: Sequence[Draft], route: Route) -> None:
    route.begin(drafts)

    def call(draft: Draft) -> Callable[[], Answer]:
        namespace, name = split_name(draft.target)
        return lambda: route.writes.delete_pod(namespace, name, uid=draft.uid)

    answers = route.send([call(draft) for draft in drafts])
    outcomes = [outcome_of(draft, answer) for draft, answer in zip(drafts, answers, strict=True)]
    route.finish(drafts, [outcome for outcome in outcomes if outcome is not None])
