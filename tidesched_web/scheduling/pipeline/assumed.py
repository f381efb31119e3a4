"""Own writes that the watch cache has not shown yet, laid over its snapshot so that nothing is decided twice.

An assumption ends when the cache shows what was written, or another object, and `EXPIRE_SECONDS` after the write at the
latest: then the cache is believed again.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from tidesched_web.engine.model import GangCondition, GangPhase, Pod, PodGroup, Snapshot
from tidesched_web.scheduling.models import DecisionKind
from tidesched_web.scheduling.pipeline import timing
from tidesched_web.scheduling.pipeline.decisions import Draft

EXPIRE_SECONDS = 30.0


class _Assumption(msgspec.Struct):
    draft: Draft
    at: float  # the cluster's clock, seconds since the epoch
    expires: float  # monotonic


class Assumed:
    def __init__(self) -> None:
        self._pods: dict[tuple[str, DecisionKind], _Assumption] = {}
        self._groups: dict[str, _Assumption] = {}

    def __len__(self) -> int:
        return len(self._pods) + len(self._groups)

    def is_bound(self, pod: str) -> bool:
        return (pod, DecisionKind.BIND) in self._pods

    def add(self, draft: Draft, *, at: float) -> None:
        assumption = _Assumption(draft, at, timing.monotonic() + EXPIRE_SECONDS)
        if draft.kind is DecisionKind.STATUS:
            self._groups[draft.target] = assumption
        elif draft.kind in (DecisionKind.BIND, DecisionKind.EVICT):
            self._pods[draft.target, draft.kind] = assumption

    def lay_over(self, snapshot: Snapshot) -> Snapshot:
        if not (self._pods or self._groups):
            return snapshot
        now = timing.monotonic()
        self._pods = {key: one for key, one in self._pods.items() if one.expires > now}
        self._groups = {key: one for key, one in self._groups.items() if one.expires > now}
        return msgspec.structs.replace(
            snapshot, pods=self._over_pods(snapshot.pods), pod_groups=self._over_groups(snapshot.pod_groups)
        )

    def _over_pods(self, pods: Sequence[Pod]) -> Sequence[Pod]:
        if not self._pods:
            return pods
        wanted = {key for key, _ in self._pods}
        laid, shown = [], set()
        for pod in pods:
            if pod.key in wanted:
                shown.add(pod.key)
                pod = self._over_pod(pod)  # noqa: PLW2901
            laid.append(pod)
        for key in [key for key in self._pods if key[0] not in shown]:
            del self._pods[key]
        return tuple(laid)

    def _over_pod(self, pod: Pod) -> Pod:
        for kind in (DecisionKind.BIND, DecisionKind.EVICT):
            assumption = self._pods.get((pod.key, kind))
            if assumption is None:
                continue
            change = _missing(pod, assumption)
            if change is None:
                del self._pods[pod.key, kind]
            else:
                pod = msgspec.structs.replace(pod, **change)
        return pod

    def _over_groups(self, groups: Sequence[PodGroup]) -> Sequence[PodGroup]:
        if not self._groups:
            return groups
        laid, shown = [], set()
        for group in groups:
            assumption = self._groups.get(group.key)
            if assumption is not None:
                shown.add(group.key)
                detail = assumption.draft.detail
                phase = GangPhase(detail["phase"])
                if group.uid != assumption.draft.uid or group.phase is phase:
                    del self._groups[group.key]
                else:
                    conditions = msgspec.convert(detail["conditions"], tuple[GangCondition, ...])
                    group = msgspec.structs.replace(group, phase=phase, conditions=conditions)  # noqa: PLW2901
            laid.append(group)
        for key in [key for key in self._groups if key not in shown]:
            del self._groups[key]
        return tuple(laid)


def _missing(pod: Pod, assumption: _Assumption) -> dict[str, Any] | None:
    """What the cache's pod lacks of the write; None when nothing, or when it is another pod of the same name."""
    draft = assumption.draft
    if (draft.uid and pod.uid != draft.uid) or pod.finished:
        return None
    if draft.kind is DecisionKind.BIND:
        if pod.node:
            return None
        return {"node": draft.node, "card_indices": tuple(draft.detail.get("card_indices", ()))}
    if pod.deleted is not None:
        return None
    return {"deleted": assumption.at}
