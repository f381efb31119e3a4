"""All stand-ins at work."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from typing import Protocol

from tests.cluster.servers import ApiServer
from tests.kube.standins.budgets import Budgets
from tests.kube.standins.garbage import garbage
from tests.kube.standins.jobs import Jobs
from tests.kube.standins.kubelet import Kubelet
from tests.kube.standins.picture import Key, Picture, follow
from tests.kube.standins.queues import Commands, Queues
from tests.kube.standins.replicas import Deployments, ReplicaSets
from tidesched_web.clusters.kubernetes.client import Json, KubernetesClient
from tidesched_web.clusters.kubernetes.paths import (
    COMMAND,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    JOB,
    POD,
    POD_GROUP,
    QUEUE,
    REPLICA_SET,
)
from tidesched_web.clusters.kubernetes.reflector import Reflector

log = logging.getLogger(__name__)

EVERYBODY = frozenset({"kubelet", "jobs", "queues", "budgets", "replicas", "garbage"})
_WORKERS = 4


class _StandIn(Protocol):
    kind: str

    def look(self, obj: Json) -> float | None: ...


class StandIns:
    """Begin on entry, end on exit.

    Args:
        who: which of :data:`EVERYBODY` are there. start, grace: see :class:`Kubelet`.
    """

    def __init__(
        self, server: ApiServer, *, who: Collection[str] = EVERYBODY, start: float = 0.1, grace: float = 0.3
    ) -> None:
        self._client: KubernetesClient = server.client()
        self._picture = Picture()
        self._ending = threading.Event()
        self._busy: set[tuple[str, Key]] = set()
        self._lock = threading.Lock()
        self._reflectors: list[Reflector] = []
        self._threads: list[threading.Thread] = []
        client, picture = self._client, self._picture
        queues = Queues(client, picture)
        by_name: dict[str, list[_StandIn]] = {
            "kubelet": [Kubelet(client, picture, start=start, grace=grace)],
            "jobs": [Jobs(client, picture)],
            "queues": [queues, Commands(client, picture, queues)],
            "budgets": [Budgets(client, picture)],
            "replicas": [Deployments(client, picture), ReplicaSets(client, picture)],
            "garbage": list(garbage(client, picture)),
        }
        self._of_kind: dict[str, list[_StandIn]] = {}
        for one in (one for name in sorted(who) for one in by_name[name]):
            self._of_kind.setdefault(one.kind, []).append(one)

    def __enter__(self) -> StandIns:
        kinds = [POD, POD_GROUP]
        own = (QUEUE, COMMAND, JOB, DISRUPTION_BUDGET, DEPLOYMENT, REPLICA_SET)
        kinds += [kind for kind in own if kind.name in self._of_kind]
        self._reflectors = follow(self._client, kinds, self._picture)
        self._threads = [
            threading.Thread(target=self._work, name=f"stand-in-{n}", daemon=True) for n in range(_WORKERS)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for reflector in self._reflectors:
            reflector.stop()
        for thread in (*self._threads, *self._reflectors):
            thread.join(5)
        self._client.close()

    def _work(self) -> None:
        while not self._ending.is_set():
            found = self._picture.take(0.2)
            if found is None:
                continue
            kind, key = found
            stand_ins, obj = self._of_kind.get(kind), self._picture.get(kind, key)
            if not stand_ins or obj is None:
                continue
            if not self._begin(kind, key):
                self._picture.again(kind, key, 0.05)
                continue
            try:
                later = min(filter(None, [one.look(obj) for one in stand_ins]), default=None)
            except Exception:
                log.exception("the stand-in for %s failed at %s", kind, key)
                later = 1.0
            finally:
                self._end(kind, key)
            if later is not None:
                self._picture.again(kind, key, max(later, 0.02))

    def _begin(self, kind: str, key: Key) -> bool:
        """One thread at a time looks at one object."""
        with self._lock:
            if (kind, key) in self._busy:
                return False
            self._busy.add((kind, key))
            return True

    def _end(self, kind: str, key: Key) -> None:
        with self._lock:
            self._busy.discard((kind, key))
