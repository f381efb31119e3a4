"""The PodGroups of a snapshot: those of the input, and those that controllers would make; kept up to what changed."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from scheduler_core.model.edition import Edition, Series
from scheduler_core.model.podgroup import PodGroup, RolePods
from scheduler_core.serde.kubernetes import annotations as keys
from scheduler_core.serde.kubernetes.catalogue import Catalogue
from scheduler_core.serde.kubernetes.classes import Classes
from scheduler_core.serde.kubernetes.gangs import (
    OTHERS,
    Owners,
    completed,
    group_of_job,
    group_of_pods,
    minimal_pods,
    revision,
)
from scheduler_core.serde.kubernetes.job import JobRecord
from scheduler_core.serde.kubernetes.podgroup import PodGroupRecord
from scheduler_core.serde.kubernetes.settled import SettledPods, settle


# A session does not ask for them; who tries out whether an admitted Job would start does.
def with_pods_to_come(
    group: PodGroup, job: JobRecord | None, catalogue: Catalogue, classes: Classes, schedulers: frozenset[str]
) -> PodGroup:
    """The gang of a Job that has no pods yet, with those that it will have; as it is where they cannot be known. A pod
    without a priority of its own has that of the gang, as a controller would give it."""
    if job is None or not job.templates or group.unsupported or group.problem:
        return group
    least = {task.name: count for task, count in minimal_pods(job, classes)}
    found = []
    for task, record in zip(job.tasks, job.templates, strict=True):
        pod, problem = settle(record, catalogue, classes, schedulers)
        if problem or record.unsupported or pod.scheduler not in schedulers:
            return group
        fields: dict[str, Any] = {"group": group.name}
        if not record.has_priority and not pod.priority_class:
            fields |= {"priority": group.priority, "priority_class": group.priority_class}
        if task.replicas:
            whole = msgspec.structs.replace(pod, **fields)
            found.append(RolePods(task.name, task.replicas, least.get(task.name, 0), whole))
    return msgspec.structs.replace(group, to_come=tuple(found))


Owner = tuple[str, str]  # namespace and name of a Job
# An owner of OTHERS by nothing but its kind: a PodGroup does not say the version of its owner.
_BELOW = {kind: known for (_, kind), known in OTHERS.items()}


class Groups:
    """PodGroups by name. A gang has the PodGroup of the input; else the one that a Job would get that has none yet;
    else one for the pods that name it. A Job whose PodGroup has another name than it would give is known by the
    PodGroup's owner."""

    def __init__(self, schedulers: Iterable[str]) -> None:
        self._schedulers = frozenset(schedulers)
        self._groups: dict[str, PodGroup] = {}
        # What the next edition has anew.
        self._changes: dict[str, PodGroup | None] = {}
        self._series: Series[PodGroup] = Series()
        # Names that a Job's PodGroup may have, and the Jobs of each name.
        self._names: dict[str, tuple[str, ...]] = {}
        self._jobs_of: dict[str, dict[str, None]] = {}
        # The Job above each PodGroup of the input, and the PodGroups below each Job.
        self._owner: dict[str, Owner] = {}
        self._owned: dict[Owner, dict[str, None]] = {}
        # Gangs by the workload right above their pods (OTHERS), and PodGroups that are not what they would be now.
        self._below: dict[tuple[str, str], dict[str, None]] = {}
        self.revisions: dict[str, PodGroup] = {}

    def edition(self) -> Edition[PodGroup]:
        """All of them, by name."""
        changes, self._changes = self._changes, {}
        return self._series.change(changes)

    def update(
        self, stale: Iterable[str] | None, stale_jobs: Iterable[str], records: Mapping[str, PodGroupRecord],
        pods: SettledPods, owners: Owners, catalogue: Catalogue, classes: Classes,
    ) -> None:  # fmt: skip
        """Look at some gangs again, and at those that depend on these Jobs. ``stale``: gangs whose PodGroup or members
        have changed; None = all. ``records``: the PodGroups of the input."""
        self._records, self._pods, self._from = records, pods, owners
        self._catalogue, self._classes = catalogue, classes
        touched: dict[str, None] = {}
        for key in stale_jobs:
            self._index_job(key, touched)
        everything = (self._groups, records, pods.gangs(), self._jobs_of)
        for key in stale if stale is not None else (key for part in everything for key in part):
            touched[key] = None
        found: dict[str, PodGroup | None] = {}
        jobs: dict[str, None] = {}
        for key in self._with_kin(touched):
            record = records.get(key)
            if record is not None:
                # Who owns the pods only matters where the PodGroup names no owner.
                members = [] if record.group.owner_kind else pods.members(key)
                job = min(self._jobs_of.get(key, ()), default="")
                found[key] = self._with_pods_to_come(completed(record, members, job, owners, catalogue, classes))
            self._revise(key, record)
            self._note_owner(key, found.get(key), jobs)
        for job in jobs:
            touched.update(dict.fromkeys(self._names.get(job, ())))
        for key in self._with_kin(touched):
            if key not in found and key not in records:
                found[key] = self._made(key)
        self._note(found)

    def below(self, owners: Iterable[tuple[str, str]]) -> list[str]:
        """The gangs whose pods are right below these owners, each a kind of OTHERS and its namespace/name."""
        return [key for owner in owners for key in self._below.get(owner, ())]

    def _revise(self, key: str, record: PodGroupRecord | None) -> None:
        self.revisions.pop(key, None)
        if record is not None and keys.MADE_FOR in record.group.annotations:
            made = revision(record.group, self._pods.first(key), self._from, self._classes)
            if made is not None:
                self.revisions[key] = made

    def _index_below(self, key: str, group: PodGroup | None, *, known: bool) -> None:
        if group is None or group.owner_kind not in _BELOW:
            return
        owner = (_BELOW[group.owner_kind], f"{group.namespace}/{group.owner_name}")
        if known:
            self._below.setdefault(owner, {})[key] = None
        elif owner in self._below:
            self._below[owner].pop(key, None)
            if not self._below[owner]:
                del self._below[owner]

    def _note(self, found: Mapping[str, PodGroup | None]) -> None:
        changes = self._changes
        for key, group in found.items():
            before = self._groups.get(key)
            if group is None:
                if before is not None:
                    self._index_below(key, before, known=False)
                    del self._groups[key]
                    changes[key] = None
                continue
            unknown = self._classes.problem(group.priority_class)
            problem = group.problem or unknown or self._pods.problem(key)
            field = group.unsupported or self._pods.unsupported(key)
            told = group
            if unknown or problem != group.problem or field != group.unsupported:
                spared = False if unknown else group.preemptable
                told = msgspec.structs.replace(group, problem=problem, unsupported=field, preemptable=spared)
            # A gang that is as it was stays the very same object.
            if before is None or before != told:
                self._index_below(key, before, known=False)
                self._index_below(key, told, known=True)
                self._groups[key] = changes[key] = told

    def _with_kin(self, keys: Iterable[str]) -> list[str]:
        """The gangs and all that a Job may have to choose among, together."""
        found: dict[str, None] = {}
        waiting = list(keys)
        while waiting:
            key = waiting.pop()
            if key not in found:
                found[key] = None
                for job in self._jobs_of.get(key, ()):
                    waiting += self._names[job]
        return sorted(found)

    def _index_job(self, job: str, touched: dict[str, None]) -> None:
        """Note the names that the PodGroup of a Job may have; all it had a say in is touched."""
        for key in self._names.pop(job, ()):
            touched[key] = None
            del self._jobs_of[key][job]
            if not self._jobs_of[key]:
                del self._jobs_of[key]
        record: JobRecord | None = self._from.jobs.get(job)
        if record is not None:
            self._names[job] = tuple(f"{record.namespace}/{name}" for name in record.group_names)
            for key in self._names[job]:
                touched[key] = None
                self._jobs_of.setdefault(key, {})[job] = None
        namespace, _, name = job.partition("/")
        touched.update(self._owned.get((namespace, name), {}))

    def _note_owner(self, key: str, group: PodGroup | None, jobs: dict[str, None]) -> None:
        """Who owns a PodGroup of the input; Jobs that have gained or lost one are added to ``jobs``."""
        owner = (group.namespace, group.owner_name) if group is not None and group.owner_kind == "Job" else None
        before = self._owner.get(key)
        if before == owner:
            return
        if before is not None:
            del self._owner[key], self._owned[before][key]
            if not self._owned[before]:
                del self._owned[before]
            jobs["/".join(before)] = None
        if owner is not None:
            self._owner[key] = owner
            self._owned.setdefault(owner, {})[key] = None
            jobs["/".join(owner)] = None

    def _made(self, key: str) -> PodGroup | None:
        """What a controller would make under a name: for a Job, else for pods; None where no object has the name."""
        name = key.split("/", 1)[1]
        for job in sorted(self._jobs_of.get(key, ())):
            if self._chosen(job) == key:
                made = group_of_job(self._from.jobs[job], name, self._catalogue, self._classes)
                return self._with_pods_to_come(made)
        members = self._pods.members(key)
        return group_of_pods(name, members, self._from, self._classes) if members else None

    def _with_pods_to_come(self, group: PodGroup) -> PodGroup:
        if not group.waits_for_admission or self._pods.has_members(group.key):
            return group
        job = self._from.jobs.get(f"{group.namespace}/{group.owner_name}")
        return with_pods_to_come(group, job, self._catalogue, self._classes, self._schedulers)

    def _chosen(self, job: str) -> str | None:
        """The name of the PodGroup that the controller of a Job would make; None where it would make none."""
        record = self._from.jobs[job]
        if record.ended or record.scheduler not in self._schedulers or (record.namespace, record.name) in self._owned:
            return None
        keys = self._names[job]
        if any(key in self._records or self._taken(key, job) for key in keys):
            return None
        return next((key for key in keys if self._pods.has_members(key)), keys[0])

    def _taken(self, key: str, job: str) -> bool:
        """Whether a Job that comes first makes a PodGroup of that name."""
        return any(other < job and self._chosen(other) == key for other in self._jobs_of[key])
