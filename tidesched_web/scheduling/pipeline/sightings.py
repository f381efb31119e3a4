"""Nothing is guessed: by whom is read off the pod, for whom off an event or the only nomination to its node."""

import re
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tidesched_web.clusters.kubernetes.client import Json
from tidesched_web.clusters.kubernetes.paths import POD, Kind
from tidesched_web.engine.gangs import gang_named
from tidesched_web.scheduling.models import RECLAIM_ACTIONS, ReclaimMaker

PREEMPTED, BY_API = "PreemptionByScheduler", "EvictionByEvictionAPI"
# A nomination is looked at for so long after the pod was bound or went: the eviction may be seen after it.
NOMINATED_SECONDS = 15.0
_MOST_KEPT = 20_000
# Volcano: "Pod is evicted, because of reclaim"; other schedulers: "default-scheduler: preempting to accommodate …".
_BECAUSE = re.compile(r"because of (?P<action>[A-Za-z]+)")
_VOLCANO_SAYS = "Pod is evicted, because of "
_SCHEDULER = re.compile(r"^(?P<name>[\w.-]+): preempting ")
_ACTIONS: Final = frozenset(RECLAIM_ACTIONS) - {"evict"}


@dataclass(frozen=True)
class Sighting:
    uid: str
    pod: str
    node: str
    made_by: ReclaimMaker
    action: str
    message: str
    at: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)


def recognised(obj: Json) -> Sighting | None:
    """None where it was merely deleted, or its node, the garbage collector or a taint ended it: that is no reclaim."""
    conditions = {one.get("type"): one for one in (obj.get("status") or {}).get("conditions") or []}
    target, ready = conditions.get("DisruptionTarget") or {}, conditions.get("Ready") or {}
    disrupted = target.get("reason") if target.get("status") == "True" else None
    volcano = ready.get("status") == "False" and ready.get("reason") == "Evict"
    if not volcano and disrupted not in (PREEMPTED, BY_API):
        return None
    said = str((ready if volcano else target).get("message") or "")
    metadata = obj["metadata"]
    return Sighting(
        uid=metadata["uid"],
        pod=f"{metadata.get('namespace', '')}/{metadata['name']}",
        node=(obj.get("spec") or {}).get("nodeName") or "",
        made_by=_maker(volcano, disrupted, said),
        action=_action(disrupted, said),
        message=said[:200],
        at=str((ready if volcano else target).get("lastTransitionTime") or ""),
        annotations=dict(metadata.get("annotations") or {}),
    )


def _maker(volcano: bool, disrupted: str | None, said: str) -> ReclaimMaker:
    named = _SCHEDULER.match(said)
    scheduler = named["name"] if named else ""
    if volcano or scheduler == "volcano" or said.startswith(_VOLCANO_SAYS):
        return ReclaimMaker.VOLCANO
    if scheduler == "tidesched" or "tidesched" in said.casefold():
        return ReclaimMaker.TIDESCHED
    return ReclaimMaker.SCHEDULER if disrupted == PREEMPTED and scheduler else ReclaimMaker.UNKNOWN


def _action(disrupted: str | None, said: str) -> str:
    found = _BECAUSE.search(said)
    if found and found["action"] in _ACTIONS:
        return found["action"]
    return "preempt" if disrupted == PREEMPTED else "evict"


def named_in_event(event: Json) -> tuple[str, str]:
    if event.get("reason") != "Preempted":
        return "", ""
    related = event.get("related") or {}
    if related.get("kind") == "Pod" and related.get("name"):
        return f"{related.get('namespace', '')}/{related['name']}", str(related.get("uid") or "")
    said = str(event.get("message") or event.get("note") or "")
    if found := re.search(r"[Pp]reempted by (?P<pod>[\w.-]+/[\w.-]+) on node", said):
        return found["pod"], ""
    if found := re.search(r"[Pp]reempted by pod (?P<uid>[0-9a-f-]{8,64})\b", said):
        return "", found["uid"]
    return "", ""


class Sightings:
    """Once per pod of this process; the table's constraint makes it once for all processes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._new: dict[str, Sighting] = {}
        self._told: deque[str] = deque(maxlen=_MOST_KEPT)
        self._known: set[str] = set()
        # node -> pod -> its gang as the pod says (else itself), and when it was last seen nominated, None while it is
        self._nominated: dict[str, dict[str, tuple[str, float | None]]] = {}
        self._node_of: dict[str, str] = {}

    def seen(self, kind: Kind, type_: str, obj: Json) -> None:
        if kind.name != POD.name:
            return
        metadata = obj["metadata"]
        key = f"{metadata.get('namespace', '')}/{metadata['name']}"
        with self._lock:
            if type_ == "DELETED":
                self._unnominate(key)
                return
            self._follow_nomination(key, obj)
            if metadata["uid"] not in self._known and (found := recognised(obj)) is not None:
                before = self._new.get(found.uid)
                # Who evicted says so first; what the pod's end adds to it says less.
                if before is None or before.made_by is ReclaimMaker.UNKNOWN:
                    self._new[found.uid] = found

    def take(self) -> list[Sighting]:
        with self._lock:
            found = sorted(self._new.values(), key=lambda one: (one.pod, one.uid))
            self._new = {}
            for one in found:
                if len(self._told) == _MOST_KEPT:
                    self._known.discard(self._told[0])
                self._told.append(one.uid)
                self._known.add(one.uid)
        return found

    def give_back(self, sightings: list[Sighting]) -> None:
        with self._lock:
            self._new |= {one.uid: one for one in sightings}

    def nominated_to(self, node: str) -> dict[str, str]:
        with self._lock:
            self._forget(node)
            return {pod: gang for pod, (gang, _since) in sorted(self._nominated.get(node, {}).items())}

    def _follow_nomination(self, key: str, obj: Json) -> None:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        node = status.get("nominatedNodeName") or ""
        if not node or spec.get("nodeName"):
            self._unnominate(key)
            return
        if self._node_of.get(key) != node:
            self._unnominate(key)
        self._node_of[key] = node
        metadata = obj["metadata"]
        labels, notes = metadata.get("labels") or {}, metadata.get("annotations") or {}
        gang = gang_named(metadata.get("namespace", ""), labels, notes) or key
        self._nominated.setdefault(node, {})[key] = gang, None

    def _unnominate(self, key: str) -> None:
        node = self._node_of.pop(key, None)
        if node is not None:
            self._forget(node)
            gang, _since = self._nominated[node][key]
            self._nominated[node][key] = gang, time.monotonic()

    def _forget(self, node: str) -> None:
        edge = time.monotonic() - NOMINATED_SECONDS
        there = self._nominated.get(node, {})
        for pod in [pod for pod, (_gang, since) in there.items() if since is not None and since < edge]:
            del there[pod]


def gang_by_itself(sighting: Sighting) -> str:
    """The gang by the pod's own annotation, where no snapshot knows the pod; else the pod stands for itself."""
    namespace, _, name = sighting.pod.partition("/")
    return f"{namespace}/{sighting.annotations.get('scheduling.k8s.io/group-name') or name}"[:320]
