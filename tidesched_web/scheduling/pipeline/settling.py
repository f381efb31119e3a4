"""The gang is the unit. Binds: none made → decided anew; some → finished, or taken back. Evictions of a reclaim: none
made → cancelled; some → finished. What is only shown is decided anew anyway.
"""

from collections.abc import Callable, Sequence

from django.db import transaction

from tidesched_web.clusters.kubernetes.outcomes import Outcome as Answer
from tidesched_web.clusters.kubernetes.outcomes import OutcomeKind
from tidesched_web.scheduling.models import DecisionKind, DecisionState
from tidesched_web.scheduling.pipeline import binds, decisions, evictions, failpoints, memory, planning, reclaims
from tidesched_web.scheduling.pipeline.binds import GangBinds
from tidesched_web.scheduling.pipeline.decisions import Draft, Outcome
from tidesched_web.scheduling.pipeline.lease import hold_row
from tidesched_web.scheduling.pipeline.sending import Route, split_name, supersede


class CannotSettle(RuntimeError):
    """The cluster did not say how an open decision stands, so nothing new may be decided."""


def settle(route: Route) -> int:
    reclaims.settle(reclaims.begun(route.cluster_id), at=route.now)
    drafts = [decisions.as_draft(row) for row in decisions.open_decisions(route.cluster_id)]
    if not drafts:
        return 0
    told = [draft for draft in drafts if draft.kind in (DecisionKind.STATUS, DecisionKind.EVENT)]
    supersede(told, "The session ended before this was told; decided anew.")
    acts = [draft for draft in drafts if draft.kind in (DecisionKind.BIND, DecisionKind.EVICT)]
    pods = _ask(acts, route)
    failpoints.reach("settle.before_send")
    _settle_evictions([draft for draft in acts if draft.kind is DecisionKind.EVICT], pods, route)
    _settle_binds([draft for draft in acts if draft.kind is DecisionKind.BIND], pods, route)
    return len(drafts)


def _ask(drafts: Sequence[Draft], route: Route) -> dict[str, Answer]:
    def call(target: str) -> Callable[[], Answer]:
        namespace, name = split_name(target)
        return lambda: route.writes.get_pod(namespace, name)

    targets = sorted({draft.target for draft in drafts})
    answers = dict(zip(targets, route.send([call(target) for target in targets]), strict=True))
    for target, answer in answers.items():
        if answer.kind not in (OutcomeKind.DONE, OutcomeKind.GONE):
            raise CannotSettle(f"{target}: {answer.reason} {answer.message}".strip())
    return answers


def _is_other(draft: Draft, answer: Answer) -> bool:
    """The pod that was meant is gone (another one may have its name)."""
    if answer.body is None:
        return True
    return bool(draft.uid) and answer.body["metadata"].get("uid") != draft.uid


def _settle_binds(drafts: Sequence[Draft], pods: dict[str, Answer], route: Route) -> None:
    to_finish: list[GangBinds] = []
    for unit in planning.gangs(drafts):
        outcomes: list[Outcome] = []
        bound: list[Draft] = []
        unbound: list[Draft] = []
        for draft in unit:
            pod = pods[draft.target]
            if _is_other(draft, pod):
                outcomes.append(Outcome(draft.id, DecisionState.SUPERSEDED, "The pod is gone."))
                continue
            assert pod.body is not None
            node = pod.body["spec"].get("nodeName", "")
            if node == draft.node:
                bound.append(draft)
                outcomes.append(Outcome(draft.id, DecisionState.DONE, "Found bound."))
            elif node:
                outcomes.append(Outcome(draft.id, DecisionState.FAILED, f"The pod is bound to {node}."))
            else:
                unbound.append(draft)
        route.finish(unit, outcomes)
        gang = GangBinds(gang=unit[0].gang, to_send=unbound, already=bound)
        earlier = _bound_before(gang, route)
        if not unbound:
            if bound and len(bound) + len(earlier) < gang.required:
                binds.take_back([*earlier, *bound], route, reason="The rest of the gang is gone.")
            continue
        gang = GangBinds(gang=gang.gang, to_send=unbound, already=[*earlier, *bound])
        if not gang.already or len(gang.already) >= gang.required:
            supersede(unbound, "Not bound when the session ended; decided anew.")
        else:
            to_finish.append(gang)
    binds.send(to_finish, route, again=True)
    failpoints.reach("settle.after_send")


def _bound_before(gang: GangBinds, route: Route) -> list[Draft]:
    sample = [*gang.to_send, *gang.already]
    return decisions.done_binds(route.cluster_id, gang.gang, sessions={draft.session_id for draft in sample})


def _settle_evictions(drafts: Sequence[Draft], pods: dict[str, Answer], route: Route) -> None:
    take_backs = [draft for draft in drafts if "takes_back" in draft.detail]
    if take_backs:
        gone = [draft for draft in take_backs if _leaves(draft, pods[draft.target])]
        route.finish(gone, [Outcome(draft.id, DecisionState.DONE, "Found leaving.") for draft in gone])
        binds.send_take_backs([draft for draft in take_backs if draft not in gone], route)
    to_finish: list[list[Draft]] = []
    for unit in evictions.units([draft for draft in drafts if "takes_back" not in draft.detail]):
        gone = [draft for draft in unit if _leaves(draft, pods[draft.target])]
        stay = [draft for draft in unit if not _leaves(draft, pods[draft.target])]
        outcomes = [Outcome(draft.id, DecisionState.DONE, "Found leaving.") for draft in gone]
        begun = bool(gone) or decisions.any_done(unit)
        if begun:
            route.finish(unit, outcomes)
            if stay:
                to_finish.append(stay)
            else:
                reclaims.settle([unit[0].reclaim_id], at=route.now)
            continue
        with transaction.atomic():
            hold_row(route.lease)
            cancelled = [Outcome(draft.id, DecisionState.SUPERSEDED, "Nothing was evicted yet.") for draft in stay]
            decisions.mark(unit, cancelled)
            reclaims.settle([unit[0].reclaim_id], at=route.now)
            memory.forget_promises(route.cluster_id, [draft.target for draft in stay])
    evictions.send(to_finish, route)


def _leaves(draft: Draft, answer: Answer) -> bool:
    if _is_other(draft, answer):
        return True
    assert answer.body is not None
    return bool(answer.body["metadata"].get("deletionTimestamp"))
