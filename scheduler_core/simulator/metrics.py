"""What a replay measures; :class:`Report` is its JSON form."""

import math
from typing import Any

import msgspec

from scheduler_core.model.decision import Result
from scheduler_core.model.pod import Pod
from scheduler_core.simulator.changes import Cause, Change
from scheduler_core.simulator.usage import Usage
from scheduler_core.simulator.workload import OwnerKind
from scheduler_core.simulator.world import World

_HOUR = 3600.0


class Report(msgspec.Struct, kw_only=True):
    """The numbers of one replay; ``docs/replay.md`` defines each of them."""

    sessions: int
    binds: int
    reclaims: int
    evictions: dict[str, int]
    gangs_broken: int
    gangs_partial_steps: int
    quota_violations: int
    card_hours: dict[str, float]
    saturated_hours: float
    saturated_stretch_hours: float
    saturated_5min_hours: float
    saturated_5min_stretch_hours: float
    allocation: dict[str, dict[str, float]]
    promise_s: dict[str, dict[str, float | None]]
    wait_s: dict[str, dict[str, float | None]]
    refused_writes: int
    seed: int
    scale: float


class Metrics:
    """Counts a replay from the world's changes and the sessions' results. ``reclaims``: how many there were so far."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._usage = Usage(world)
        self._start = world.t
        self._steps = 0
        self.reclaims = self._binds = self._broken = self._partial_steps = self._violations = 0
        self._evictions = {"inference": 0, "training": 0}
        self._sums = dict.fromkeys(self._usage.capacity, 0)
        self._peaks = dict.fromkeys(self._usage.capacity, 0)
        # Gang -> how many of its pods are bound and not leaving; only gangs of more than one.
        self._standing: dict[str, int] = {}
        self._partial: set[str] = set()
        self._arrived: dict[str, float] = {}
        self._promised: dict[str, list[float]] = {"inference": [], "training": []}
        self._waited: dict[str, list[float]] = {"inference": [], "training": []}
        self._unpromised: set[str] = set()
        self._unstarted: set[str] = set()
        world.subscribe(self._heard)

    # --- what is seen -------------------------------------------------------------------------------------------------

    def decided(self, result: Result) -> None:
        """Count what a session wants, and the nodes that it names to those who wait."""
        self.reclaims += len(result.reclaims)
        self._broken += len({eviction.gang for eviction in result.evictions})
        for promise in result.pipelined:
            self._promise(promise.pod)

    def stepped(self) -> None:
        """Sample the cluster as it is after a session."""
        usage = self._usage
        self._steps += 1
        for card, taken in usage.taken.items():
            self._sums[card] += taken
            self._peaks[card] = max(self._peaks[card], taken)
        for queue in sorted(usage.touched):
            quota = self._world.queues[queue].card_quota
            if quota is not None:
                self._violations += sum(milli > quota.get(card, 0) for card, milli in usage.charged[queue].items())
        usage.touched.clear()
        self._partial_steps += len(self._partial)

    def _heard(self, change: Change) -> None:
        if change.kind == "Pod":
            self._pod(change)
        elif change.cause is Cause.SUBMITTED and change.kind == "Job":
            self._arrived[change.key] = self._world.t
        elif change.verb == "delete" and change.kind == "Job":
            self._arrived.pop(change.key, None)

    def _pod(self, change: Change) -> None:
        pod, cause = change.value, change.cause
        if cause is Cause.MADE:
            state = self._world.workloads[f"{pod.namespace}/{pod.owner.name}"]
            if state.version == 0:
                self._unpromised.add(pod.key)
                self._unstarted.add(pod.key)
        elif cause is Cause.BOUND:
            self._binds += 1
            self._promise(pod.key)
            self._stand(pod.group_key, 1)
        elif cause is Cause.STARTED:
            if pod.key in self._unstarted:
                self._unstarted.discard(pod.key)
                self._note(self._waited, pod)
        elif cause in (Cause.EVICTED, Cause.KILLED) and pod.node:
            if cause is Cause.EVICTED:
                kind = self._service_type(pod.group_key)
                self._evictions[kind] = self._evictions.get(kind, 0) + 1
            self._stand(pod.group_key, -1)
        elif cause is Cause.FINISHED or (
            change.verb == "delete" and pod.node and pod.deleted is None and not pod.finished
        ):
            self._stand(pod.group_key, -1)
        if change.verb == "delete":
            self._unpromised.discard(pod.key)
            self._unstarted.discard(pod.key)

    def _promise(self, pod: str) -> None:
        if pod in self._unpromised:
            self._unpromised.discard(pod)
            self._note(self._promised, self._world.pods[pod])

    def _note(self, samples: dict[str, list[float]], pod: Pod) -> None:
        gang = pod.group_key
        # The pods of a Job are made late, when it is admitted; it arrived with its submission.
        arrived = self._arrived.get(gang, pod.created)
        samples.setdefault(self._service_type(gang), []).append(self._world.t - arrived)

    def _service_type(self, gang: str) -> str:
        state = self._world.workloads.get(gang)
        return state.workload.service_type if state is not None else "unknown"

    def _stand(self, gang: str, change: int) -> None:
        state = self._world.workloads.get(gang)
        if state is None or state.workload.owner_kind is not OwnerKind.JOB:
            return
        standing = self._standing.get(gang, 0) + change
        if standing:
            self._standing[gang] = standing
        else:
            self._standing.pop(gang, None)
        if 0 < standing < state.workload.min_member:
            self._partial.add(gang)
        else:
            self._partial.discard(gang)

    # --- what comes out -----------------------------------------------------------------------------------------------

    def report(self, *, sessions: int, refused: int, seed: int, scale: float) -> Report:
        """The numbers; call once, at the end."""
        usage = self._usage
        usage.close()
        saturation = usage.saturation
        capacity = sum(usage.capacity.values()) / 1000
        hours = {
            "total": capacity * (self._world.t - self._start) / _HOUR,
            **usage.hours(),
            "lost": usage.lost_seconds / _HOUR,
        }
        return Report(
            sessions=sessions,
            binds=self._binds,
            reclaims=self.reclaims,
            evictions=self._evictions,
            gangs_broken=self._broken,
            gangs_partial_steps=self._partial_steps,
            quota_violations=self._violations,
            card_hours={name: round(value, 3) for name, value in hours.items()},
            saturated_hours=round(saturation.together / _HOUR, 3),
            saturated_stretch_hours=round(saturation.longest / _HOUR, 3),
            saturated_5min_hours=round(saturation.steady.together / _HOUR, 3),
            saturated_5min_stretch_hours=round(saturation.steady.longest / _HOUR, 3),
            allocation={
                card: {
                    "mean": round(self._sums[card] / max(1, self._steps) / milli, 4),
                    "max": round(self._peaks[card] / milli, 4),
                    "saturated_hours": round(saturation.seconds[card] / _HOUR, 3),
                }
                for card, milli in sorted(usage.capacity.items())
            },
            promise_s={"inference": _percentiles(self._promised["inference"])},
            wait_s={kind: _percentiles(self._waited[kind]) for kind in ("inference", "training")},
            refused_writes=refused,
            seed=seed,
            scale=scale,
        )


def _percentiles(samples: list[float]) -> dict[str, float | None]:
    """Nearest-rank percentiles; None where nothing was measured."""
    ordered = sorted(samples)
    return {
        f"p{percent}": round(ordered[math.ceil(len(ordered) * percent / 100) - 1], 3) if ordered else None
        for percent in (50, 99)
    }


def report_to_json(report: Report) -> dict[str, Any]:
    document = msgspec.to_builtins(report)
    assert isinstance(document, dict)
    return document
