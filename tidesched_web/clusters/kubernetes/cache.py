import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tidesched_web.clusters.kubernetes import collector
from tidesched_web.clusters.kubernetes.client import ApiFailure, Json, KubernetesClient, Unreachable
from tidesched_web.clusters.kubernetes.paths import WATCHED, Kind
from tidesched_web.clusters.kubernetes.reflector import Key, Reflector, key_of
from tidesched_web.engine.bridge import SnapshotBuilder
from tidesched_web.engine.model import BadInput, PodGroup, Snapshot

# Bookkeeping of clients, networks and controllers. All else stays: an extender is shown the annotations of a pod.
_BOOKKEEPERS = ("kubernetes.io", "cni.cncf.io", "projectcalico.org", "helm.sh", "cattle.io")
_LONGEST = 4096


def needed(obj: Json) -> Json:
    """The object without annotations that say nothing about scheduling; the same one where it has none of these."""
    metadata = obj["metadata"]
    notes = metadata.get("annotations")
    if not notes:
        return obj
    kept = {key: value for key, value in notes.items() if not _is_bookkeeping(key, value)}
    if len(kept) == len(notes):
        return obj
    return {**obj, "metadata": {**metadata, "annotations": kept}}


def _is_bookkeeping(key: str, value: object) -> bool:
    prefix, slash, _ = key.partition("/")
    return bool(slash) and (prefix.endswith(_BOOKKEEPERS) or (isinstance(value, str) and len(value) > _LONGEST))


def signature(kind: str, obj: Json) -> object:
    """A small value that differs when a session should look again; status counts and heartbeats are left out."""
    metadata, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    match kind:
        case "Pod":
            return hash(
                (
                    metadata["uid"],
                    spec.get("nodeName"),
                    status.get("phase"),
                    bool(metadata.get("deletionTimestamp")),
                    bool(spec.get("schedulingGates")),
                )
            )
        case "Node":
            allocatable = status.get("allocatable") or {}
            return hash(
                (
                    bool(spec.get("unschedulable")),
                    str(spec.get("taints")),
                    _pairs(allocatable),
                    _pairs(metadata.get("labels")),
                )
            )
        case "Namespace":
            return hash((_pairs(metadata.get("labels")), _pairs(metadata.get("annotations"))))
        case "Queue":
            return hash((str(spec), _pairs(metadata.get("annotations")))), status.get("state")
        case "PodGroup":
            return hash((metadata["uid"], str(spec)))
        case "ReplicaSet" | "Deployment" | "StatefulSet" | "DaemonSet" | "BatchJob":
            notes = {key: text for key, text in (metadata.get("annotations") or {}).items() if "volcano.sh/" in key}
            return hash((metadata["uid"], spec.get("replicas"), _pairs(notes)))
        case _:
            # A priority class has no spec; the controllers' objects count by what they want.
            return hash((metadata["uid"], str(spec), obj.get("value")))


def _pairs(values: Json | None) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((values or {}).items()))


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Trouble:
    """What keeps one watch from going on: the server's status (0 = no answer), and how long it fails."""

    kind: str
    error: str
    code: int
    seconds: float
    absent: bool = False


class GangCounts(NamedTuple):
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class Tap(Protocol):
    """An observer of objects as they come, for what a snapshot does not keep."""

    def seen(self, kind: Kind, type_: str, obj: Json) -> None:
        """ADDED, MODIFIED, or DELETED with nothing but its name. Called under the cache's lock: be quick."""


class ClusterCache:
    """Threads may share it. ``wake`` is called from a watch's thread and has to return at once."""

    def __init__(
        self,
        client: KubernetesClient,
        *,
        schedulers: Iterable[str],
        wake: Callable[[], None] | None = None,
        kinds: tuple[Kind, ...] = WATCHED,
        taps: Sequence[Tap] = (),
    ) -> None:
        self._taps, self._client = tuple(taps), client
        self._asking, self._asked_after = threading.Lock(), 0
        self._unanswered: tuple[float, ApiFailure | Unreachable | None] = (0.0, None)
        self._builder = SnapshotBuilder(tuple(schedulers))
        self._wake = wake
        self._lock = threading.Lock()
        # Of each object: its newest version, its signature, its finding; of one that went, the version of its end.
        self._known: dict[str, dict[Key, tuple[int, object, object]]] = {kind.id: {} for kind in kinds}
        self._gone: dict[str, dict[Key, int]] = {kind.id: {} for kind in kinds}
        # By kind: the newest version of an object of which a list brings an older one. What a server that does not lag
        # said after it had said that.
        self._contradicted: dict[str, int] = {}
        self._older = ""
        self._counts: dict[str, GangCounts] = {}
        self._waits: dict[str, str] = {}
        # Pods on a node that are to go: uid, when (monotonic), and what holds them.
        self._leaving: dict[str, tuple[str, float, list[str]]] = {}
        self._snapshot: Snapshot | None = None
        self._reflectors = [Reflector(client, kind, self) for kind in kinds]

    def start(self) -> None:
        collector.look_seldom()
        for reflector in self._reflectors:
            reflector.start()

    def stop(self, *, wait_seconds: float = 2.0) -> None:
        for reflector in self._reflectors:
            reflector.stop()
        deadline = time.monotonic() + wait_seconds
        for reflector in self._reflectors:
            if reflector.is_alive():
                reflector.join(max(0.0, deadline - time.monotonic()))

    # -- state -------------------------------------------------------------------------------------------------

    @property
    def synced(self) -> bool:
        return all(reflector.synced.is_set() for reflector in self._reflectors)

    def wait_synced(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        return all(r.synced.wait(max(0.0, deadline - time.monotonic())) for r in self._reflectors)

    def age_seconds(self) -> float:
        now = time.monotonic()
        return max(now - reflector.heard for reflector in self._reflectors)

    def ages(self) -> dict[str, float]:
        """Of the kinds that the server has and has told of: how long ago it said something."""
        now = time.monotonic()
        return {r.kind.id: now - r.heard for r in self._reflectors if r.synced.is_set() and not r.absent}

    def went_back(self) -> str:
        """How it was seen that the cluster is in an older state than before: then this cache is of no use.

        The server is asked anew after each watch that broke: it may have been restored meanwhile. Raises ApiFailure,
        Unreachable: it does not say.
        """
        with self._asking:
            breaks = sum(reflector.breaks for reflector in self._reflectors)
            if breaks != self._asked_after:
                self._ask_version()
                self._asked_after = breaks
        return self._older or next((r.went_back for r in self._reflectors if r.went_back), "")

    def errors(self) -> dict[str, str]:
        return {r.kind.id: r.error for r in self._reflectors if r.error}

    def troubles(self) -> list[Trouble]:
        now = time.monotonic()
        return [
            Trouble(r.kind.id, r.error, r.code, now - r.failed, absent=r.absent)
            for r in self._reflectors
            if r.error or r.absent
        ]

    def snapshot(self) -> Snapshot:
        with self._lock:
            if self._snapshot is None:
                self._snapshot = self._builder.build()
            return self._snapshot

    def revisions(self) -> dict[str, PodGroup]:
        """PodGroups that TideSched made and would make otherwise now, as of the last snapshot."""
        with self._lock:
            return self._builder.revisions()

    def _ask_version(self) -> None:
        """A failure stands for a second: who waited meanwhile does not ask one after the other."""
        failed_at, failure = self._unanswered
        if failure is not None and time.monotonic() - failed_at < 1.0:
            raise failure
        newest = max(reflector.newest for reflector in self._reflectors)
        try:
            version = self._version_now()
        except (ApiFailure, Unreachable) as error:
            self._unanswered = time.monotonic(), error
            raise
        if version and version < newest:
            self._older = f"it was of version {newest} and is of version {version}"

    def _version_now(self) -> int:
        """By any kind that may be read: an API server has one count for all. 0: it does not say."""
        for reflector in self._reflectors:
            try:
                listed = self._client.get(reflector.kind.path(), {"limit": 1})
            except ApiFailure as error:
                if error.code not in (403, 404):
                    raise
            else:
                return int(listed["metadata"]["resourceVersion"] or 0)
        return 0

    def staying(self, seconds: float) -> dict[str, list[str]]:
        """Pods that are there so long after their grace has ended, and their finalizers."""
        edge = time.monotonic() - seconds
        with self._lock:
            return {key: held for key, (_uid, ends, held) in sorted(self._leaving.items()) if ends < edge}

    def gang_counts(self) -> dict[str, GangCounts]:
        with self._lock:
            return dict(self._counts)

    def waits(self, pods: Iterable[str]) -> dict[str, str]:
        with self._lock:
            return {key: self._waits[key] for key in pods if key in self._waits}

    def stateless_queues(self) -> dict[str, int]:
        with self._lock:
            known = self._known["Queue"].items()
            return {
                name: version for (_, name), (version, mark, _) in known if not (isinstance(mark, tuple) and mark[1])
            }

    # -- from the watches --------------------------------------------------------------------------------------

    def page(self, kind: Kind, objects: list[Json]) -> None:
        with self._lock:
            changed = False
            for obj in objects:
                changed |= self._upsert(kind, obj)
        self._tell(changed)

    def ended(self, kind: Kind, keys: set[Key], version: int) -> None:
        """A list is complete: what is not in it, and is not newer than it, is gone."""
        with self._lock:
            known = self._known[kind.id]
            changed = False
            for key in [key for key, (of, *_) in known.items() if key not in keys and of <= version]:
                changed |= self._forget(kind, key, version)
            newer = self._contradicted.pop(kind.id, -1)
            if 0 <= newer <= version:
                self._older = f"{kind.plural} were of version {newer} and are of an older one, in a list of {version}"
            # Ends that the list is younger than cannot be contradicted any more.
            self._gone[kind.id] = {key: of for key, of in self._gone[kind.id].items() if of > version}
        self._tell(changed)

    def change(self, kind: Kind, type_: str, obj: Json) -> None:
        with self._lock:
            gone = type_ == "DELETED"
            changed = self._forget(kind, key_of(obj), _version(obj)) if gone else self._upsert(kind, obj)
        self._tell(changed)

    def _upsert(self, kind: Kind, obj: Json) -> bool:
        key, version = key_of(obj), _version(obj)
        before = self._known[kind.id].get(key)
        ended = self._gone[kind.id].get(key, -1)
        if (before is not None and version <= before[0]) or version <= ended:
            if version <= ended or (before is not None and version < before[0]):
                newer = max(ended, before[0] if before is not None else -1)
                self._contradicted[kind.id] = max(self._contradicted.get(kind.id, -1), newer)
            return False
        self._gone[kind.id].pop(key, None)
        try:
            finding = self._builder.take(_tried(needed, obj) or obj)
        except Exception as error:
            # One object must not keep all others out.
            log.exception("%s %s cannot be read", kind.id, "/".join(filter(None, key)))
            bug = BadInput("unreadable", f"{type(error).__name__}: {error}"[:500], hint="a bug: please report it")
            finding = self._builder.leave_aside(obj, bug, "")
        mark = _tried(signature, kind.id, obj)
        _tried(self._note, kind, "/".join(key), obj)
        for tap in self._taps:
            _tried(tap.seen, kind, "ADDED" if before is None else "MODIFIED", obj)
        self._known[kind.id][key] = (version, mark, finding)
        if finding is not None:
            log.warning("%s cannot be read: %s", finding.object, finding.message)
        self._snapshot = None
        return before is None or before[1:] != (mark, finding)

    def _note(self, kind: Kind, key: str, obj: Json) -> None:
        """What a snapshot does not keep of a pod that waits, and of a PodGroup's status."""
        if kind.id == "PodGroup":
            self._counts[key] = counts_in(obj)
        elif kind.id == "Pod" and (why := waits_in(obj)):
            self._waits[key] = why
        elif kind.id == "Pod":
            self._waits.pop(key, None)
        if kind.id == "Pod":
            self._note_end(key, obj)

    def _note_end(self, key: str, obj: Json) -> None:
        metadata, ended = obj["metadata"], obj.get("status", {}).get("phase") in ("Succeeded", "Failed")
        uid, ends, _held = self._leaving.pop(key, ("", float("inf"), []))
        if "deletionTimestamp" in metadata and obj["spec"].get("nodeName") and not ended:
            grace = time.monotonic() + int(metadata.get("deletionGracePeriodSeconds") or 0)
            ends = min(ends, grace) if uid == metadata["uid"] else grace
            self._leaving[key] = metadata["uid"], ends, list(metadata.get("finalizers") or [])

    def _forget(self, kind: Kind, key: Key, version: int) -> bool:
        before = self._known[kind.id].pop(key, None)
        if before is None:
            return False
        gone = self._gone[kind.id]
        gone[key] = max(version, before[0])
        if len(gone) > 10_000:  # only the list of a server that lags asks for these
            for old in list(gone)[:5_000]:
                del gone[old]
        if kind.id == "Pod":
            self._waits.pop("/".join(key), None)
            self._leaving.pop("/".join(key), None)
        elif kind.id == "PodGroup":
            self._counts.pop("/".join(key), None)
        for tap in self._taps:
            _tried(tap.seen, kind, "DELETED", {"metadata": {"namespace": key[0], "name": key[1]}})
        self._builder.delete(kind.id, key[0], key[1])
        self._snapshot = None
        return True

    def _tell(self, changed: bool) -> None:
        if changed and self._wake is not None and self.synced:
            self._wake()


def _tried(look: Callable[..., Any], *args: Any) -> Any:
    """What it answers; None where it fails, for instance at a field of another type."""
    try:
        return look(*args)
    except Exception:  # a bug of who looks; the object itself is readable
        log.exception("%s cannot look at an object", getattr(look, "__qualname__", look))
        return None


def counts_in(group: Json) -> GangCounts:
    status = group.get("status") or {}
    found = [status.get(name) for name in GangCounts._fields]
    return GangCounts(*(count if isinstance(count, int) else 0 for count in found))


def waits_in(pod: Json) -> str:
    if (pod.get("spec") or {}).get("nodeName"):
        return ""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return sys.intern(str(condition.get("message") or "").partition(":")[0][:63])
    return ""


def _version(obj: Json) -> int:
    """Resource versions of one kind are numbers that grow, in every API server on etcd and in the simulated one."""
    return int(obj["metadata"]["resourceVersion"])
