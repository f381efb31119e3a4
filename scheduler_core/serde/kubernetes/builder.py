"""Objects in, one at a time, in any order; a snapshot out whenever it is asked for.

Each object is decoded once, when it comes in. What depends on other objects (the value of a priority class, the
resource behind a card name, the owner of a gang) is settled when the snapshot is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from scheduler_core.model.errors import BadInput
from scheduler_core.model.pod import Pod
from scheduler_core.model.podgroup import PodGroup
from scheduler_core.model.queue import Queue
from scheduler_core.model.snapshot import Snapshot
from scheduler_core.serde.kubernetes.catalogue import Catalogue
from scheduler_core.serde.kubernetes.classes import Classes
from scheduler_core.serde.kubernetes.founding import FoundingRecord, read_batch_process, read_tf_job
from scheduler_core.serde.kubernetes.gangs import Owners, completed, group_of_job, group_of_pods
from scheduler_core.serde.kubernetes.job import JobRecord, read_job
from scheduler_core.serde.kubernetes.kinds import GROUPS, key_of
from scheduler_core.serde.kubernetes.node import NodeRecord, read_node
from scheduler_core.serde.kubernetes.observed import read_metrics, read_namespace, read_numa
from scheduler_core.serde.kubernetes.pod import PodRecord, read_pod
from scheduler_core.serde.kubernetes.podgroup import DEFAULT_QUEUE, PodGroupRecord, read_pod_group
from scheduler_core.serde.kubernetes.queue import parent_cycle, read_priority_class, read_queue
from scheduler_core.serde.kubernetes.storage import read_claim, read_storage_class, read_volume
from scheduler_core.serde.kubernetes.resource_quota import read_resource_quota
from scheduler_core.serde.kubernetes.workload import read_annotations, read_workload

DEFAULT_SCHEDULERS = ("tidesched", "volcano")


class SnapshotBuilder:
    """Collects Kubernetes objects and builds snapshots of them.

    Args:
        schedulers: pods with one of these ``schedulerName`` are to be scheduled.
        strict: a cycle of queue parents stops the build; otherwise its queues are marked as unusable.
    """

    def __init__(self, schedulers: Iterable[str] = DEFAULT_SCHEDULERS, *, strict: bool = True) -> None:
        self.schedulers = tuple(schedulers)
        self.strict = strict
        self.passed_over: dict[str, int] = {}
        self._records: dict[str, dict[str, Any]] = {kind: {} for kind in GROUPS}
        self._readers: dict[str, Callable[[object], Any]] = {
            "Node": read_node,
            "Pod": read_pod,
            "PriorityClass": read_priority_class,
            "ReplicaSet": read_workload,
            "Deployment": read_workload,
            "Queue": read_queue,
            "ResourceQuota": read_resource_quota,
            "PodGroup": read_pod_group,
            "Namespace": read_namespace,
            "PersistentVolumeClaim": read_claim,
            "PersistentVolume": read_volume,
            "StorageClass": read_storage_class,
            "Numatopology": read_numa,
            "NodeMetrics": read_metrics,
            "Job": read_job,
            "BatchProcess": lambda obj: read_batch_process(obj, self.schedulers[0]),
            "TFJob": lambda obj: read_tf_job(obj, self.schedulers[0]),
        }
        # Pods whose cards and priority are settled; they stay so until card types or classes change.
        self._settled: dict[str, tuple[PodRecord, Pod, str]] = {}
        self._settled_for: object = None
        self._groups_before: dict[str, PodGroup] = {}
        self._keys: dict[str, list[str]] = {}
        self._places: dict[tuple[str, str], tuple[str, str | None]] = {}

    def upsert(self, obj: Mapping[str, Any], *, path: str = "", file: str | None = None) -> None:
        """Take one object in, or its new state. An object of a kind that is not read is counted and passed over.

        Args:
            obj: as the API has it, with ``kind`` and ``apiVersion``.
            path: where it stands in its file, for messages, e.g. ``items[3]``.

        Raises:
            BadInput: it cannot be used; what was known of it before stays.
        """
        try:
            kind = self._kind_of(obj)
            if kind is None:
                return
            record = self._readers.get(kind, read_annotations)(obj)
        except BadInput as error:
            raise _placed(error, path, file) from None
        meta = obj["metadata"]
        key = key_of(kind, meta.get("namespace"), meta["name"])
        records = self._records[kind]
        if key not in records:
            self._keys.pop(kind, None)
        records[key] = record
        if kind == "Queue":
            self._places[kind, key] = (path, file)

    def delete(self, kind: str, namespace: str | None, name: str) -> None:
        """Forget one object; one that is not known is forgotten already."""
        if self._records.get(kind, {}).pop(key_of(kind, namespace, name), None) is not None:
            self._keys.pop(kind, None)

    def has(self, obj: Mapping[str, Any]) -> bool:
        """Whether an object of this kind and name was taken in."""
        meta, kind = obj.get("metadata"), obj.get("kind")
        if not isinstance(meta, Mapping) or not isinstance(kind, str) or self._group_of(obj) != GROUPS.get(kind):
            return False
        return key_of(kind, meta.get("namespace"), str(meta.get("name"))) in self._records[kind]

    def build(self) -> Snapshot:
        """The snapshot of all that was taken in.

        Raises:
            BadInput: ``queue_cycle``, if the builder is strict.

        Complexity: linear in the number of objects; unchanged pods are not decoded or settled again.
        """
        nodes: list[NodeRecord] = self._sorted("Node")
        catalogue = Catalogue(card_type for record in nodes for card_type in record.card_types)
        classes = Classes(self._sorted("PriorityClass"))
        founding = self._founding()
        pods, problems, members = self._pods(founding, catalogue, classes)
        groups = self._groups(founding, members, problems, catalogue, classes)
        queues = self._queues()
        return Snapshot(
            nodes=tuple(record.node for record in nodes),
            pods=tuple(pods),
            pod_groups=groups,
            queues=queues,
            priority_classes=tuple(classes.by_name[name] for name in sorted(classes.by_name)),
            card_types=tuple(catalogue.types[name] for name in sorted(catalogue.types)),
            namespaces=tuple(record.namespace for record in self._sorted("Namespace")),
            claims=tuple(self._sorted("PersistentVolumeClaim")),
            volumes=tuple(self._sorted("PersistentVolume")),
            storage_classes=tuple(self._sorted("StorageClass")),
            resource_quotas=tuple(self._sorted("ResourceQuota")),
            numa=tuple(self._sorted("Numatopology")),
            metrics=tuple(self._sorted("NodeMetrics")),
            schedulers=self.schedulers,
            latest=self._latest(),
            passed_over=dict(sorted(self.passed_over.items())),
            warnings=self._warnings(nodes, catalogue, classes, queues),
        )

    # --- objects ------------------------------------------------------------------------------------------------------

    def _kind_of(self, obj: Mapping[str, Any]) -> str | None:
        if not isinstance(obj, Mapping):
            raise BadInput(
                "malformed_object", f"an object is expected here, not {type(obj).__name__}", value=_plain(obj)
            )
        kind = obj.get("kind")
        if not isinstance(kind, str) or not kind:
            raise BadInput("malformed_object", "the object has no kind", path=".kind", value=_plain(kind))
        group = self._group_of(obj)
        if GROUPS.get(kind) == group:
            return kind
        name = f"{kind}.{group}" if group else kind
        self.passed_over[name] = self.passed_over.get(name, 0) + 1
        return None

    @staticmethod
    def _group_of(obj: Mapping[str, Any]) -> str:
        version = obj.get("apiVersion")
        if not isinstance(version, str) or not version:
            raise BadInput(
                "malformed_object", "the object has no apiVersion", path=".apiVersion", value=_plain(version)
            )
        return version.rpartition("/")[0]

    def _sorted(self, kind: str) -> list[Any]:
        records = self._records[kind]
        keys = self._keys.get(kind)
        if keys is None:
            keys = self._keys[kind] = sorted(records)
        return [records[key] for key in keys]

    # --- pods ---------------------------------------------------------------------------------------------------------

    def _founding(self) -> list[FoundingRecord]:
        """BatchProcesses and TFJobs whose pods nobody has made yet."""
        records = [*self._sorted("BatchProcess"), *self._sorted("TFJob")]
        if not records:
            return []
        owned = {
            (record.owner.kind, record.pod.namespace, record.owner.name)
            for record in self._records["Pod"].values()
            if record.owner is not None
        }
        return [record for record in records if (record.kind, record.namespace, record.name) not in owned]

    def _pods(
        self, founding: list[FoundingRecord], catalogue: Catalogue, classes: Classes
    ) -> tuple[list[Pod], dict[str, str], dict[str, list[PodRecord]]]:
        """All pods by key; what is wrong with one pod of each gang; the records of each gang's members."""
        settled_for = (catalogue.types, classes.by_name)
        if settled_for != self._settled_for:
            self._settled, self._settled_for = {}, settled_for
        records = self._sorted("Pod")
        if founding:
            records = sorted([*records, *(pod for f in founding for pod in f.pods)], key=lambda record: record.pod.key)
        before, settled = self._settled, {}
        pods: list[Pod] = []
        problems: dict[str, str] = {}
        members: dict[str, list[PodRecord]] = {}
        ours = frozenset(self.schedulers)
        for record in records:
            key = f"{record.pod.namespace}/{record.pod.name}"
            known = before.get(key)
            if known is None or known[0] is not record:
                known = (record, *_settle(record, catalogue, classes, ours))
            settled[key] = known
            pod, problem = known[1], known[2]
            pods.append(pod)
            if pod.group:
                gang = f"{pod.namespace}/{pod.group}"
                members.setdefault(gang, []).append(record)
                if problem and not pod.finished:
                    problems.setdefault(gang, f"pod {pod.name}: {problem}")
        self._settled = settled
        return pods, problems, members

    # --- gangs --------------------------------------------------------------------------------------------------------

    def _groups(
        self,
        founding: list[FoundingRecord],
        members: dict[str, list[PodRecord]],
        problems: dict[str, str],
        catalogue: Catalogue,
        classes: Classes,
    ) -> tuple[PodGroup, ...]:
        owners = Owners(
            self._records["Job"],
            self._records["ReplicaSet"],
            self._records["Deployment"],
            {name: record.annotations for name, record in self._records["Namespace"].items()},
        )
        groups: dict[str, PodGroup] = {}
        records: dict[str, PodGroupRecord] = {f.group.group.key: f.group for f in founding} | self._records["PodGroup"]
        for key, record in records.items():
            groups[key] = completed(record, members.get(key, []), owners, catalogue, classes)
        owned = {(group.namespace, group.owner_name) for group in groups.values() if group.owner_kind == "Job"}
        for job in self._sorted("Job"):
            if (job.namespace, job.name) not in owned and not job.ended and job.scheduler in self.schedulers:
                self._add_job_group(job, groups, members, catalogue, classes)
        for key, records_of in members.items():
            if key not in groups:
                groups[key] = group_of_pods(key.split("/", 1)[1], records_of, owners, classes)
        for key, problem in problems.items():
            if not groups[key].problem:
                groups[key] = msgspec.structs.replace(groups[key], problem=problem)
        # A gang that is as it was stays the very same object: readers tell by that what changed.
        before = self._groups_before
        for key, group in groups.items():
            known = before.get(key)
            if known is not None and known == group:
                groups[key] = known
        self._groups_before = groups
        return tuple(groups[key] for key in sorted(groups))

    @staticmethod
    def _add_job_group(
        job: JobRecord,
        groups: dict[str, PodGroup],
        members: Mapping[str, list[PodRecord]],
        catalogue: Catalogue,
        classes: Classes,
    ) -> None:
        """Add the PodGroup that the job's controller would make, unless one of its names stands there already."""
        keys = [f"{job.namespace}/{name}" for name in job.group_names]
        if not any(key in groups for key in keys):
            key = next((key for key in keys if key in members), keys[0])
            groups[key] = group_of_job(job, key.split("/", 1)[1], catalogue, classes)

    # --- queues and the rest ------------------------------------------------------------------------------------------

    def _queues(self) -> tuple[Queue, ...]:
        queues: dict[str, Queue] = {queue.name: queue for queue in self._sorted("Queue")}
        while cycle := parent_cycle(queues.values()):
            text = f"queues are each other's parents: {' -> '.join([*cycle, cycle[0]])}"
            if self.strict:
                path, file = self._places.get(("Queue", cycle[0]), ("", None))
                error = BadInput(
                    "queue_cycle",
                    text,
                    path=".spec.parent",
                    value=cycle[0],
                    hint="give one of them another parent, or none",
                )
                raise _placed(error, path, file)
            for name in cycle:
                queues[name] = msgspec.structs.replace(queues[name], parent="", problem=text)
        if DEFAULT_QUEUE not in queues:
            queues[DEFAULT_QUEUE] = Queue(name=DEFAULT_QUEUE, made=True)
        return tuple(queues[name] for name in sorted(queues))

    def _latest(self) -> float:
        latest = 0.0
        for kind in ("Node", "Pod", "PodGroup"):
            latest = max(latest, max((record.latest for record in self._records[kind].values()), default=0.0))
        for kind in ("Queue", "Job"):
            latest = max(latest, max((record.created for record in self._records[kind].values()), default=0.0))
        latest = max(latest, max((record.at for record in self._records["NodeMetrics"].values()), default=0.0))
        founding = (*self._records["BatchProcess"].values(), *self._records["TFJob"].values())
        return max(latest, max((record.group.latest for record in founding), default=0.0))

    def _warnings(
        self, nodes: list[NodeRecord], catalogue: Catalogue, classes: Classes, queues: tuple[Queue, ...]
    ) -> tuple[str, ...]:
        named = {record.pod.priority_class for record in self._records["Pod"].values() if not record.has_priority}
        named.update(record.group.priority_class for record in self._records["PodGroup"].values())
        named.update(job.priority_class for job in self._records["Job"].values())
        warnings = {warning for record in nodes for warning in record.warnings}
        for name in catalogue.conflicts:
            used = catalogue.types[name].resource
            warnings.add(f"card {name} is counted by different resources on different nodes; {used} is used")
        for name in named - classes.by_name.keys() - {""}:
            warnings.add(f"PriorityClass {name} does not exist; the default value {classes.default} is used")
        for queue in queues:
            if queue.problem:
                warnings.add(f"queue {queue.name}: {queue.problem}")
        return tuple(sorted(warnings))


def _settle(record: PodRecord, catalogue: Catalogue, classes: Classes, ours: frozenset[str]) -> tuple[Pod, str]:
    """The pod with its cards and priority, and what is wrong with it."""
    pod, problem = record.pod, record.problem
    fields: dict[str, Any] = {}
    if record.devices or record.names or record.share:
        card, scalars, wrong = catalogue.request(record.names, record.devices, record.share)
        fields["card"], fields["scalars"] = card, scalars
        problem = problem or wrong
    if not record.has_priority:
        fields["priority"] = classes.value(pod.priority_class)
    if pod.scheduler not in ours:
        fields["group"] = ""
    return (msgspec.structs.replace(pod, **fields) if fields else pod), problem


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, str | int | float | bool) else None


def _placed(error: BadInput, path: str, file: str | None) -> BadInput:
    """The same error with the place of the object in front of the place inside it."""
    inner = error.path or ""
    return BadInput(
        error.code,
        error.message,
        file=file,
        path=f"{path}{inner}" if path else inner.lstrip("."),
        line=error.line,
        value=error.value,
        hint=error.hint,
    )
