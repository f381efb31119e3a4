"""Plugin ``cdp``: a pod that has just been placed is left alone for a while.

Extension points: preemptable, reclaimable, unified_evictable.
Annotation (or label) ``volcano.sh/cooldown-time`` of the pod, such as ``10m``: it is no victim until so long after it
was scheduled (condition PodScheduled; where the pod has none, after it started, else after it was made). A value that
is no duration protects no pod.
Source: volcano-semantics 4.12. On purpose: it has a say in gangpreempt and gangreclaim too, upstream's has not
(``compatibility: volcano`` decides as upstream)."""

from collections.abc import Sequence
from typing import ClassVar

from scheduler_core.algorithms.durations import parse_duration
from scheduler_core.framework.combine import Opinion
from scheduler_core.framework.plugin import Plugin
from scheduler_core.model.pod import Pod
from scheduler_core.model.rules import Rule

COOLDOWN = "volcano.sh/cooldown-time"


class Cdp(Plugin):
    name: ClassVar[str] = "cdp"

    def preemptable(self, evictor: int, candidates: Sequence[int]) -> Opinion:
        """All candidates whose cool-down is over."""
        tasks, now = self.session.tasks, self.session.now
        refused: dict[int, str] = {}
        for task in candidates:
            pod = tasks.pod(task)
            wait = _cooldown(pod)
            if wait and now < _scheduled(pod) + wait:
                refused[task] = Rule.COOLDOWN_LEFT.text(seconds=f"{_scheduled(pod) + wait - now:.0f}")
        return Opinion(frozenset(task for task in candidates if task not in refused), refused)

    reclaimable = preemptable

    def unified_evictable(self, evictor: int, candidates: Sequence[int]) -> Opinion:
        """The same; upstream's plugin has no say here."""
        return Opinion(None) if self.session.compat else self.preemptable(evictor, candidates)


def _scheduled(pod: Pod) -> float:
    if pod.scheduled is not None:
        return pod.scheduled
    return pod.created if pod.started is None else pod.started


def _cooldown(pod: Pod) -> float:
    """Seconds, 0 for none."""
    text = pod.annotations.get(COOLDOWN) or pod.labels.get(COOLDOWN)
    try:
        return parse_duration(text) if text else 0.0
    except ValueError:
        return 0.0
