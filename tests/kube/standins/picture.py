"""What all stand-ins see: the objects of the cluster by kind, and who has to look when one changes."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Iterable

from tidesched_web.clusters.kubernetes.client import Json, KubernetesClient
from tidesched_web.clusters.kubernetes.paths import Kind
from tidesched_web.clusters.kubernetes.reflector import Reflector

Key = tuple[str, str]


def key_of(obj: Json) -> Key:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


class Picture:
    """Objects as the watches bring them, and a queue of those to look at. Threads may share it."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[Key, Json]] = defaultdict(dict)
        self._owned: dict[str, dict[tuple[str, Key], Json]] = defaultdict(dict)
        self._lock = threading.Lock()
        self._todo: list[tuple[float, int, str, Key]] = []
        self._waiting: dict[tuple[str, Key], float] = {}
        self._order = itertools.count()
        self._more = threading.Condition(self._lock)

    # -- from the watches --------------------------------------------------------------------------------------

    def replace(self, kind: Kind, objects: list[Json], version: int) -> None:
        """A full list."""
        fresh = {key_of(obj): obj for obj in objects}
        with self._lock:
            old = self._objects[kind.name]
            for key in old.keys() - fresh.keys():
                self._drop(kind, old[key])
            for obj in objects:
                self._put(kind, obj)

    def change(self, kind: Kind, type_: str, obj: Json) -> None:
        """One event."""
        with self._lock:
            if type_ == "DELETED":
                self._drop(kind, obj)
            else:
                self._put(kind, obj)

    def _put(self, kind: Kind, obj: Json) -> None:
        before = self._objects[kind.name].get(key_of(obj))
        if before is not None:
            self._disown(kind, before)
        self._objects[kind.name][key_of(obj)] = obj
        for owner in obj["metadata"].get("ownerReferences") or ():
            self._owned[owner["uid"]][kind.name, key_of(obj)] = obj
        self._tell(kind, obj)

    def _drop(self, kind: Kind, obj: Json) -> None:
        self._objects[kind.name].pop(key_of(obj), None)
        self._disown(kind, obj)
        self._tell(kind, obj)
        for owned, key in self._owned.pop(obj["metadata"]["uid"], {}):
            self._enqueue(owned, key, 0.0)

    def _disown(self, kind: Kind, obj: Json) -> None:
        for owner in obj["metadata"].get("ownerReferences") or ():
            self._owned[owner["uid"]].pop((kind.name, key_of(obj)), None)

    def _tell(self, kind: Kind, obj: Json) -> None:
        """Look at it, and at those that own it."""
        self._enqueue(kind.name, key_of(obj), 0.0)
        namespace = obj["metadata"].get("namespace", "")
        for owner in obj["metadata"].get("ownerReferences") or ():
            self._enqueue(owner["kind"], (namespace, owner["name"]), 0.0)

    # -- for the stand-ins -------------------------------------------------------------------------------------

    def get(self, kind: str, key: Key) -> Json | None:
        with self._lock:
            return self._objects[kind].get(key)

    def all(self, kind: str, namespace: str = "") -> list[Json]:
        with self._lock:
            return [obj for key, obj in self._objects[kind].items() if not namespace or key[0] == namespace]

    def owned(self, uid: str, kind: str) -> list[Json]:
        """The objects of ``kind`` that belong to the one with ``uid``."""
        with self._lock:
            return [obj for (name, _), obj in self._owned[uid].items() if name == kind]

    def again(self, kind: str, key: Key, seconds: float) -> None:
        """Look at it in so many seconds, or earlier where something changes."""
        with self._lock:
            self._enqueue(kind, key, seconds)

    def _enqueue(self, kind: str, key: Key, seconds: float) -> None:
        due = time.monotonic() + seconds
        if self._waiting.get((kind, key), float("inf")) <= due:
            return
        self._waiting[kind, key] = due
        heapq.heappush(self._todo, (due, next(self._order), kind, key))
        self._more.notify()

    def take(self, seconds: float) -> tuple[str, Key] | None:
        """The next one that is due; None when there is none for ``seconds``."""
        deadline = time.monotonic() + seconds
        with self._lock:
            while True:
                now = time.monotonic()
                if self._todo and self._todo[0][0] <= now:
                    due, _, kind, key = heapq.heappop(self._todo)
                    if self._waiting.get((kind, key)) != due:
                        continue  # it was looked at earlier
                    del self._waiting[kind, key]
                    return kind, key
                if now >= deadline:
                    return None
                until = min(deadline, self._todo[0][0]) if self._todo else deadline
                self._more.wait(until - now)


def follow(client: KubernetesClient, kinds: Iterable[Kind], picture: Picture) -> list[Reflector]:
    """Begin to watch."""
    reflectors = [Reflector(client, kind, picture) for kind in kinds]
    for reflector in reflectors:
        reflector.start()
    return reflectors
