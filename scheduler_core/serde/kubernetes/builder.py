"""Objects in, one at a time, in any order; a snapshot out whenever it is asked for. Each object is decoded once, when
it comes in. What depends on other objects (the value of a priority class, the resource behind a card name, the owner of
a gang) is settled when the snapshot is built."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from scheduler_core.model.edition import Series
from scheduler_core.model.errors import BadInput
from scheduler_core.model.finding import Finding, Severity, unreadable
from scheduler_core.model.node import Node
from scheduler_core.model.podgroup import PodGroup
from scheduler_core.model.queue import Queue
from scheduler_core.model.snapshot import Snapshot
from scheduler_core.serde.kubernetes.catalogue import Catalogue
from scheduler_core.serde.kubernetes.classes import Classes
from scheduler_core.serde.kubernetes.decode import decode
from scheduler_core.serde.kubernetes.disruption import read_disruption_budget
from scheduler_core.serde.kubernetes.founding import FoundingRecord, read_batch_process, read_tf_job
from scheduler_core.serde.kubernetes.gangs import OTHERS, Owners
from scheduler_core.serde.kubernetes.groups import Groups
from scheduler_core.serde.kubernetes.job import read_job
from scheduler_core.serde.kubernetes.kinds import BATCH_JOB, GROUPS, key_of, kind_in
from scheduler_core.serde.kubernetes.node import NodeRecord, read_node
from scheduler_core.serde.kubernetes.observed import read_metrics, read_namespace, read_numa
from scheduler_core.serde.kubernetes.pod import PodRecord, read_pod
from scheduler_core.serde.kubernetes.podgroup import DEFAULT_QUEUE, PodGroupRecord, read_pod_group
from scheduler_core.serde.kubernetes.queue import (
    parent_cycle,
    read_priority_class,
    read_queue,
    tree_findings,
)
from scheduler_core.serde.kubernetes.records import Records
from scheduler_core.serde.kubernetes.resource_quota import read_resource_quota
from scheduler_core.serde.kubernetes.settled import SettledPods
from scheduler_core.serde.kubernetes.stand_ins import node_of, stand_in
from scheduler_core.serde.kubernetes.storage import read_claim, read_storage_class, read_volume
from scheduler_core.serde.kubernetes.unnamed_pods import UnnamedPods
from scheduler_core.serde.kubernetes.workload import read_annotations, read_unsized, read_workload

DEFAULT_SCHEDULERS = ("tidesched", "volcano")
_OF_GANGS = ("Pod", "PodGroup")
DUPLICATE = "duplicate_object"
# Gangs that are looked at together while their objects come in.
_GANGS = 16


class SnapshotBuilder:
    """Collects Kubernetes objects and builds snapshots of them. ``schedulers``: pods with one of these
    ``schedulerName`` are to be scheduled."""

    def __init__(self, schedulers: Iterable[str] = DEFAULT_SCHEDULERS) -> None:
        self.schedulers = tuple(schedulers)
        self.passed_over: dict[str, int] = {}
        self._records = Records()
        self._readers: dict[str, Callable[[object], Any]] = {
            "Node": read_node,
            "Pod": read_pod,
            "PriorityClass": read_priority_class,
            "ReplicaSet": read_workload,
            "Deployment": read_workload,
            "StatefulSet": read_workload,
            "DaemonSet": read_unsized,
            BATCH_JOB: read_unsized,
            "Queue": read_queue,
            "ResourceQuota": read_resource_quota,
            "PodDisruptionBudget": read_disruption_budget,
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
        self.findings: dict[tuple[str, str], Finding] = {}
        # Unreadable pods that have a node, and the nodes that are closed for new pods because of them.
        self._unreadable: dict[str, str] = {}
        self._closed: frozenset[str] = frozenset()
        self._nodes: Series[Node] = Series()
        self._node_records: dict[str, NodeRecord] = {}
        self._node_warnings: set[str] = set()
        self._catalogue, self._classes = Catalogue(()), Classes(())
        self._pods, self._groups = SettledPods(self.schedulers), Groups(self.schedulers)
        self._unnamed = UnnamedPods()
        self._founded: tuple[dict[str, PodRecord], dict[str, PodGroupRecord]] = ({}, {})
        self._namespace_notes: dict[str, Mapping[str, str]] = {}
        self._built = False
        # Gangs that objects came of since the last snapshot: those that were not looked at, those that were,
        # and those of them of which more has come.
        self._coming: dict[str, None] = {}
        self._seen: dict[str, None] = {}
        self._again: dict[str, None] = {}

    def upsert(self, obj: Mapping[str, Any], *, path: str = "") -> None:
        """Take one object in, or its new state. An object of a kind that is not read is counted and passed over.
        ``obj``: as the API has it, with ``kind`` and ``apiVersion``. ``path``: where it is in its file, for messages,
        e.g. ``items[3]``. Raises BadInput: it cannot be used; what was known of it before stays."""
        try:
            kind = self._kind_of(obj)
            if kind is None:
                return
            record = self._readers.get(kind, read_annotations)(obj)
        except BadInput as error:
            raise _placed(error, path) from None
        meta = obj["metadata"]
        self._put(kind, key_of(kind, meta.get("namespace"), meta["name"]), record)

    def take(self, obj: Mapping[str, Any], *, path: str = "") -> Finding | None:
        """Take one object in; one that cannot be read hurts only what depends on it: the part that can be read stands
        for it, with a problem, and the finding is kept until it can be read or is gone."""
        try:
            self.upsert(obj)
        except BadInput as error:
            return self.leave_aside(obj, error, path)
        return None

    def leave_aside(self, obj: object, error: BadInput, path: str) -> Finding:
        """Keep that an object cannot be used. ``path``: where it is, for one without a name."""
        kind, key = self._named(obj)
        finding = unreadable(error, f"{kind} {key}" if kind else path or "object")
        if kind and isinstance(obj, Mapping) and error.code != DUPLICATE:
            record = stand_in(obj, error, self._readers.get(kind, read_annotations))
            self.delete(kind, *_parts_of(key))
            if record is not None:
                self._put(kind, key, record)
                if kind == "Pod" and record.unsized and record.pod.node and not record.pod.finished:
                    self._unreadable[key] = record.pod.node
        elif not kind and (node := node_of(obj)):
            self._unreadable[path] = node
        self.findings[kind, f"{key} {path}" if error.code == DUPLICATE else key if kind else path] = finding
        return finding

    def _named(self, obj: object) -> tuple[str, str]:
        """Kind and name of an object, empty where they cannot be read."""
        if not isinstance(obj, Mapping) or not isinstance(meta := obj.get("metadata"), Mapping):
            return "", ""
        name, space, version, kind = meta.get("name"), meta.get("namespace"), obj.get("apiVersion"), obj.get("kind")
        kind = kind_in(version.rpartition("/")[0] if isinstance(version, str) else GROUPS.get(str(kind), ""), str(kind))
        if kind is None or not isinstance(name, str) or not name or not isinstance(space, str | None):
            return "", ""
        return kind, key_of(kind, space, name)

    def _put(self, kind: str, key: str, record: Any) -> None:
        self.findings.pop((kind, key), None)
        self._unreadable.pop(key, None) if kind == "Pod" else None
        self._records.put(kind, key, record)
        if kind in _OF_GANGS:
            self._settle_at_once(kind, key)

    def delete(self, kind: str, namespace: str | None, name: str) -> None:
        """Forget one object; one that is not known is forgotten already."""
        if kind in GROUPS:
            key = key_of(kind, namespace, name)
            self.findings.pop((kind, key), None)
            self._records.drop(kind, key)
            if kind == "Pod":
                self._unreadable.pop(key, None)
            if kind in _OF_GANGS:
                self._settle_at_once(kind, key)

    def has(self, obj: object) -> bool:
        """Whether an object of this kind and name was taken in, or left aside."""
        kind, key = self._named(obj)
        return bool(kind) and (key in self._records[kind] or (kind, key) in self.findings)

    def revisions(self) -> dict[str, PodGroup]:
        """What PodGroups that TideSched made for workloads would be if it made them now, where they differ from that.
        By namespace/name, as of the last build."""
        return dict(self._groups.revisions)

    def build(self) -> Snapshot:
        """The snapshot of all that was taken in.
        Complexity: linear in the number of objects that changed since the last build, and a copy of each list where
        some did; the lists of nodes, pods and PodGroups know how they differ from those of earlier snapshots."""
        records = self._records
        queues = self._queues()
        settled_by = (self._catalogue.types, self._classes.by_name)
        self._change_nodes()
        if records.take_stale("PriorityClass"):
            self._classes = Classes(records.sorted("PriorityClass"))
        catalogue, classes = self._catalogue, self._classes
        anew = settled_by != (catalogue.types, classes.by_name)
        self._change_gangs(anew=anew)
        self._built = True
        return Snapshot(
            nodes=self._nodes.edition,
            pods=self._pods.edition(),
            pod_groups=self._groups.edition(),
            queues=queues,
            priority_classes=tuple(classes.by_name[name] for name in sorted(classes.by_name)),
            card_types=tuple(catalogue.types[name] for name in sorted(catalogue.types)),
            namespaces=tuple(record.namespace for record in records.sorted("Namespace")),
            claims=tuple(records.sorted("PersistentVolumeClaim")),
            volumes=tuple(records.sorted("PersistentVolume")),
            storage_classes=tuple(records.sorted("StorageClass")),
            resource_quotas=tuple(records.sorted("ResourceQuota")),
            disruption_budgets=tuple(records.sorted("PodDisruptionBudget")),
            numa=tuple(records.sorted("Numatopology")),
            metrics=tuple(records.sorted("NodeMetrics")),
            schedulers=self.schedulers,
            latest=records.latest,
            passed_over=dict(sorted(self.passed_over.items())),
            warnings=self._warnings(),
            findings=self._findings_of(queues),
        )

    # --- objects ------------------------------------------------------------------------------------------------------

    def _kind_of(self, obj: Mapping[str, Any]) -> str | None:
        if not isinstance(obj, Mapping):
            decode(obj, dict)
        kind = obj.get("kind")
        if not isinstance(kind, str) or not kind:
            hint = "add kind, for example Pod"
            raise BadInput("malformed_object", "the object has no kind", path=".kind", value=_plain(kind), hint=hint)
        group = self._group_of(obj)
        if (known := kind_in(group, kind)) is not None:
            return known
        name = f"{kind}.{group}" if group else kind
        self.passed_over[name] = self.passed_over.get(name, 0) + 1
        return None

    @staticmethod
    def _group_of(obj: Mapping[str, Any]) -> str:
        version = obj.get("apiVersion")
        if not isinstance(version, str) or not version:
            said, hint = "the object has no apiVersion", "add apiVersion, for example v1"
            raise BadInput("malformed_object", said, path=".apiVersion", value=_plain(version), hint=hint)
        return version.rpartition("/")[0]

    # --- what changed -------------------------------------------------------------------------------------------------

    def _change_nodes(self) -> None:
        """Nodes, and the card types that they have."""
        before, self._closed = self._closed, frozenset(self._unreadable.values())
        for node in before ^ self._closed:
            self._records.touch("Node", node)
        stale = self._records.take_stale("Node")
        if not stale:
            return
        changes: dict[str, Node | None] = {}
        others = False
        for key in stale:
            old, new = self._node_records.pop(key, None), self._records["Node"].get(key)
            if new is not None:
                self._node_records[key] = new
            if old is None or new is None:
                changes[key] = None if new is None else self._open_or_closed(new.node)
                others = True
            else:
                if old.node != new.node or (key in before) != (key in self._closed):
                    changes[key] = self._open_or_closed(new.node)
                others |= old.card_types != new.card_types or old.warnings != new.warnings
        self._nodes.change(changes)
        if others:
            nodes: list[NodeRecord] = self._records.sorted("Node")
            self._catalogue = Catalogue(card_type for record in nodes for card_type in record.card_types)
            self._node_warnings = {warning for record in nodes for warning in record.warnings}

    def _open_or_closed(self, node: Node) -> Node:
        """Without room for pods where a pod runs of which nobody can say what it takes."""
        return msgspec.structs.replace(node, pods=0) if node.name in self._closed else node

    def _change_gangs(self, *, anew: bool) -> None:
        """Pods and PodGroups; all of them where what settles them has changed."""
        records, catalogue, classes = self._records, self._catalogue, self._classes
        pods: dict[str, PodRecord] = records["Pod"]
        groups: dict[str, PodGroupRecord] = records["PodGroup"]
        stale_pods = dict.fromkeys(records.take_stale("Pod"))
        stale = dict.fromkeys(records.take_stale("PodGroup"))
        founding_pods, founding_groups = self._founding()
        if founding_pods or founding_groups or self._founded != ({}, {}):
            # They come after what was made by the same name.
            before_pods, before_groups = self._founded
            stale_pods.update(dict.fromkeys((*before_pods, *founding_pods)))
            stale.update(dict.fromkeys((*before_groups, *founding_groups)))
            self._founded = (founding_pods, founding_groups)
            pods, groups = founding_pods | pods, founding_groups | groups
        if anew:
            stale_pods.update(dict.fromkeys(pods))
        stale_pods.update(dict.fromkeys(self._unnamed.renew(list(stale_pods), pods, groups, records["Job"])))
        for key in sorted(stale_pods):
            self._pods.settle(key, self._unnamed.settled(key, pods.get(key)), catalogue, classes)
        for known in (self._pods.take_touched(), self._coming, self._again):
            stale.update(known)
        self._coming, self._seen, self._again = {}, {}, {}
        above = [records.take_stale(kind) for kind in ("ReplicaSet", "Deployment", "Namespace")]
        if above[2]:
            self._namespace_notes = {name: record.annotations for name, record in records["Namespace"].items()}
        below = self._groups.below((kind, key) for kind in OTHERS.values() for key in records.take_stale(kind))
        stale.update(dict.fromkeys(below))
        self._groups.update(
            None if anew or any(above) else stale, records.take_stale("Job"), groups, self._pods, self._owners(),
            catalogue, classes,
        )  # fmt: skip

    def _owners(self) -> Owners:
        records = self._records
        return Owners(
            jobs=records["Job"],
            replica_sets=records["ReplicaSet"],
            deployments=records["Deployment"],
            others={kind: records[kind] for kind in OTHERS.values()},
            namespaces=self._namespace_notes,
        )

    def _settle_at_once(self, kind: str, key: str) -> None:
        """Settle a pod as it comes, so that a snapshot finds it ready; what settles it may still change until then. Not
        before the first snapshot, when all is still coming in, nor where pods take the place of missing ones."""
        records = self._records
        if not self._built or self._founded != ({}, {}) or records["BatchProcess"] or records["TFJob"]:
            return
        if kind == "Pod" and self._unnamed.concerns(key, records["Pod"].get(key)):
            return
        if not records.forget_stale(kind, key):
            return
        if kind == "Pod":
            self._pods.settle(key, records["Pod"].get(key), self._catalogue, self._classes)
            touched = self._pods.take_touched()
        else:
            touched = {key: None}
        for gang in touched:
            (self._again if gang in self._seen else self._coming)[gang] = None
        if len(self._coming) > _GANGS and not records.has_stale("Job"):
            self._settle_gangs()

    def _settle_gangs(self) -> None:
        """Look at gangs as their objects come, each once before a snapshot does: pods may come for a long time. The one
        of which something came last has to wait: there is more to come."""
        *ready, last = self._coming
        self._coming = {last: None}
        self._seen.update(dict.fromkeys(ready))
        groups = self._records["PodGroup"]
        self._groups.update(ready, (), groups, self._pods, self._owners(), self._catalogue, self._classes)

    def _founding(self) -> tuple[dict[str, PodRecord], dict[str, PodGroupRecord]]:
        """Pods and PodGroups of BatchProcesses and TFJobs whose pods were not made yet, O(pods) if there are any."""
        found: list[FoundingRecord] = [*self._records.sorted("BatchProcess"), *self._records.sorted("TFJob")]
        if not found:
            return {}, {}
        owned = {
            (record.owner.kind, record.pod.namespace, record.owner.name)
            for record in self._records["Pod"].values()
            if record.owner is not None
        }
        found = [record for record in found if (record.kind, record.namespace, record.name) not in owned]
        return (
            {pod.pod.key: pod for record in found for pod in record.pods},
            {record.group.group.key: record.group for record in found},
        )

    # --- queues and the rest ------------------------------------------------------------------------------------------

    def _queues(self) -> tuple[Queue, ...]:
        queues: dict[str, Queue] = {queue.name: queue for queue in self._records.sorted("Queue")}
        while cycle := parent_cycle(queues.values()):
            text = f"queues are each other's parents: {' -> '.join([*cycle, cycle[0]])}"
            for name in cycle:
                queues[name] = msgspec.structs.replace(queues[name], parent="", problem=text)
        if DEFAULT_QUEUE not in queues:
            queues[DEFAULT_QUEUE] = Queue(name=DEFAULT_QUEUE, made=True)
        return tuple(queues[name] for name in sorted(queues))

    def _findings_of(self, queues: tuple[Queue, ...]) -> tuple[Finding, ...]:
        """What could not be read, and what of the queues cannot be used as it is written."""
        found = [finding for _, finding in sorted(self.findings.items())]
        found += [
            Finding(
                severity=Severity.ERROR, code="misconfigured", object=f"Queue {queue.name}", path="spec.parent",
                message=queue.problem, fix="another parent for one of them, or none",
            )
            for queue in queues
            if queue.problem and ("Queue", queue.name) not in self.findings
        ]  # fmt: skip
        return (*found, *tree_findings(queues))

    def _warnings(self) -> tuple[str, ...]:
        catalogue, classes = self._catalogue, self._classes
        warnings = set(self._node_warnings)
        for name in catalogue.conflicts:
            used = catalogue.types[name].resource
            warnings.add(f"card {name} is counted by different resources on different nodes; {used} is used")
        for name in self._records.named_classes() - classes.by_name.keys():
            warnings.add(f"PriorityClass {name} does not exist; the default value {classes.default} is used")
        return tuple(sorted(warnings))


def _parts_of(key: str) -> tuple[str | None, str]:
    namespace, _, name = key.rpartition("/")
    return namespace or None, name


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, str | int | float | bool) else None


def _placed(error: BadInput, path: str) -> BadInput:
    """The same error with the place of the object in front of the place inside it."""
    inner = error.path or ""
    return BadInput(
        error.code, error.message, path=f"{path}{inner}" if path else inner.lstrip("."), line=error.line,
        value=error.value, hint=error.hint,
    )  # fmt: skip
