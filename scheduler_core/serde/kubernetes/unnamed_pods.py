"""Pods of Volcano Jobs that do not name their PodGroup: they belong to the one of the Job."""

from collections.abc import Iterable, Mapping

import msgspec

from scheduler_core.serde.kubernetes.job import JobRecord
from scheduler_core.serde.kubernetes.pod import VOLCANO_BATCH, PodRecord
from scheduler_core.serde.kubernetes.podgroup import PodGroupRecord


class UnnamedPods:
    """Which of the pods they are, and which PodGroup each belongs to as of the last look. The Job's own controller
    writes the name on its pods, so a cluster has none of them; files written by hand do."""

    def __init__(self) -> None:
        self._job_of: dict[str, str] = {}
        self._group_of: dict[str, str] = {}

    def renew(
        self, stale: Iterable[str], pods: Mapping[str, PodRecord], groups: Mapping[str, PodGroupRecord],
        jobs: Mapping[str, JobRecord],
    ) -> list[str]:  # fmt: skip
        """Look at pods that came, changed or went; returns those whose PodGroup is another one now. O(stale) where
        there are none, else O(pods + PodGroups)."""
        for key in stale:
            record = pods.get(key)
            if record is not None and record.job:
                self._job_of[key] = record.job
            elif self._job_of.pop(key, None) is not None:
                self._group_of.pop(key, None)
        if not self._job_of:
            return []
        owned, named = _owned(groups), _named(pods)
        moved = []
        for key, job in self._job_of.items():
            group = _group(job, pods[key], groups, jobs, owned, named)
            if self._group_of.get(key, "") != group:
                self._group_of[key] = group
                moved.append(key)
        return moved

    def concerns(self, key: str, record: PodRecord | None) -> bool:
        """Whether a pod is one of them, or was until now: it has to wait for the others."""
        return key in self._job_of or (record is not None and bool(record.job))

    def settled(self, key: str, record: PodRecord | None) -> PodRecord | None:
        group = self._group_of.get(key)
        if record is None or not group:
            return record
        return msgspec.structs.replace(record, pod=msgspec.structs.replace(record.pod, group=group))


def _owned(groups: Mapping[str, PodGroupRecord]) -> dict[str, str]:
    """Of each Job the first PodGroup, by name, that says it is owned by it."""
    found: dict[str, str] = {}
    for _, record in sorted(groups.items()):
        if record.owner is not None and record.owner.kind == "Job":
            found.setdefault(f"{record.group.namespace}/{record.owner.name}", record.group.name)
    return found


def _named(pods: Mapping[str, PodRecord]) -> dict[str, str]:
    """Of each Job the first PodGroup, by name, that other pods of it name."""
    found: dict[str, str] = {}
    for record in pods.values():
        owner = record.owner
        if record.job or owner is None or owner.kind != "Job" or not owner.api_version.startswith(VOLCANO_BATCH):
            continue
        job = f"{record.pod.namespace}/{owner.name}"
        found[job] = min(found.get(job, record.pod.group), record.pod.group)
    return found


def _group(
    job: str, record: PodRecord, groups: Mapping[str, PodGroupRecord], jobs: Mapping[str, JobRecord],
    owned: Mapping[str, str], named: Mapping[str, str],
) -> str:  # fmt: skip
    """The name of the Job's PodGroup; empty where there is neither the Job nor a PodGroup of it."""
    if job in owned:
        return owned[job]
    namespace, _, name = job.partition("/")
    known, uid = jobs.get(job), record.owner.uid if record.owner is not None else ""
    of_job: tuple[str, ...] = known.group_names if known is not None else ()
    names: dict[str, None] = dict.fromkeys([*of_job, *((f"{name}-{uid}",) if uid else ()), name])
    for candidate in names:
        if f"{namespace}/{candidate}" in groups:
            return candidate
    if job in named:
        return named[job]
    first: str = of_job[0] if of_job else ""
    return first
