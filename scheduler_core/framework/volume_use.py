"""Who uses which volumes in one session: claims of one pod alone, volumes taken by placements, attached volumes."""

import numpy as np

from scheduler_core.algorithms.volumes import Needs, Storage
from scheduler_core.framework.session import Session
from scheduler_core.state.status import HOLDS, PIPELINED, RELEASING, Bools, Ints
from scheduler_core.state.task_class import TaskClass

_ON_NODE: Bools = HOLDS.copy()
_ON_NODE[PIPELINED] = True


class VolumeUse:
    """Masks of one session that depend on volumes; only classes whose pods mount claims are ever looked at."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._storage = Storage(session.snapshot, session.node_index)
        self._needs: dict[int, Needs] = {}
        limits: dict[str, Ints] = {}
        for n, node in enumerate(session.snapshot.nodes):
            for driver, limit in node.volume_limits.items():
                limits.setdefault(driver, np.full(len(session.nodes), -1, dtype=np.int64))[n] = limit
        self._limits = limits
        # Only pods whose volumes can keep others out are ever walked over.
        classes = session.cluster.classes.classes
        counts = np.array([bool(cls.claims) and self.depends_on_others(cls) for cls in classes], dtype=np.bool_)
        self._mounting: Ints = np.flatnonzero(session.tasks.live & counts[session.tasks.cls]).astype(np.int64)

    def needs(self, cls: TaskClass) -> Needs:
        """What the claims of the class come to."""
        known = self._needs.get(cls.index)
        if known is None:
            known = self._needs[cls.index] = self._storage.needs(cls.namespace, cls.claims)
        return known

    def depends_on_others(self, cls: TaskClass) -> bool:
        """Whether placements of this session can change the masks of the class."""
        needs = self.needs(cls)
        limited = any(driver in self._limits for driver, _ in needs.attached)
        return bool(needs.single or needs.waiting or limited)

    def near(self, cls: TaskClass) -> Bools:
        """Nodes that reach the bound volumes."""
        return self._storage.near(self.needs(cls).bound)

    def in_zone(self, cls: TaskClass) -> Bools:
        """Nodes in the zones of the bound volumes."""
        return self._storage.in_zone(self.needs(cls).bound)

    def can_bind(self, cls: TaskClass) -> Bools:
        """Nodes where the waiting claims get volumes, those left out that placements of this session have taken."""
        waiting = self.needs(cls).waiting
        own = {claim.key for claim in waiting}
        taken: dict[str, None] = {}
        for task in self._placed():
            needs = self.needs(self._session.cluster.class_of(task))
            others = tuple(claim for claim in needs.waiting if claim.key not in own)
            if others:
                node = int(self._session.tasks.node[task])
                taken.update(dict.fromkeys(self._storage.choose(others, node, frozenset(taken)) or ()))
        return self._storage.can_bind(waiting, frozenset(taken))

    def alone(self, cls: TaskClass) -> tuple[bool, bool]:
        """Whether no other pod uses the claims of one pod alone: now, and once what leaves has left."""
        single = frozenset(self.needs(cls).single)
        now = later = True
        for task in self._placed():
            if not single.isdisjoint(self.needs(self._session.cluster.class_of(task)).single):
                now = False
                later = later and self._session.tasks.status[task] == RELEASING
        return now, later

    def attachable(self, cls: TaskClass) -> tuple[Bools, Bools]:
        """Nodes where no driver's limit is passed: now, and once what leaves has left."""
        wanted: dict[str, list[str]] = {}
        for driver, name in self.needs(cls).attached:
            if driver in self._limits:
                wanted.setdefault(driver, []).append(name)
        masks = []
        for leaving_counts in (True, False):
            mask: Bools = np.ones(len(self._session.nodes), dtype=np.bool_)
            for driver, names in wanted.items():
                limit = self._limits[driver]
                here = self._attached(driver, leaving_counts)
                after = np.full(len(mask), len(names), dtype=np.int64)
                for node, held in here.items():
                    # A volume that is attached already takes no further place, even where there are too many.
                    after[node] = len(held.keys() | set(names)) if not held.keys() >= set(names) else -1
                mask &= (limit < 0) | (after <= limit)
            masks.append(mask)
        return masks[0], masks[1]

    def _attached(self, driver: str, leaving_counts: bool) -> dict[int, dict[str, None]]:
        """Names of a driver's volumes by node."""
        found: dict[int, dict[str, None]] = {}
        tasks = self._session.tasks
        for task in self._placed():
            if not leaving_counts and tasks.status[task] == RELEASING:
                continue
            for name_of, name in self.needs(self._session.cluster.class_of(task)).attached:
                if name_of == driver:
                    found.setdefault(int(tasks.node[task]), {})[name] = None
        return found

    def _placed(self) -> list[int]:
        """Pods with claims that are on a node or have one promised, by name."""
        tasks = self._session.tasks
        at = self._mounting[(tasks.node[self._mounting] >= 0) & _ON_NODE[tasks.status[self._mounting]]]
        found: list[int] = at.tolist()
        found.sort(key=tasks.keys.__getitem__)
        return found
