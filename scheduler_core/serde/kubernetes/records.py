"""The decoded objects of a cluster by kind and name, and what has changed since the last look."""

from collections.abc import Callable, Set
from typing import Any

from scheduler_core.serde.kubernetes.kinds import GROUPS

# The field with the latest time of an object, by kind; other kinds have none that counts.
_TIME: dict[str, Callable[[Any], float]] = {
    "Node": lambda record: record.latest,
    "Pod": lambda record: record.latest,
    "PodGroup": lambda record: record.latest,
    "Queue": lambda record: record.created,
    "Job": lambda record: record.created,
    "NodeMetrics": lambda record: record.at,
    "BatchProcess": lambda record: record.group.latest,
    "TFJob": lambda record: record.group.latest,
}
# The priority class that an object names and that has to be looked up.
_CLASS: dict[str, Callable[[Any], str]] = {
    "Pod": lambda record: "" if record.has_priority else record.pod.priority_class,
    "PodGroup": lambda record: record.group.priority_class,
    "Job": lambda record: record.priority_class,
}


class Records:
    """What the readers made of each object."""

    def __init__(self) -> None:
        self._by_kind: dict[str, dict[str, Any]] = {kind: {} for kind in GROUPS}
        self._keys: dict[str, list[str]] = {}
        self._stale: dict[str, dict[str, None]] = {kind: {} for kind in GROUPS}
        self._times: dict[float, int] = {}
        self._latest = 0.0
        # How often each class is named by objects that do not give its value.
        self._classes: dict[str, int] = {}

    def __getitem__(self, kind: str) -> dict[str, Any]:
        return self._by_kind[kind]

    def put(self, kind: str, key: str, record: Any) -> None:
        """Take a record in; one that says the same as the one before leaves that in its place."""
        records = self._by_kind[kind]
        before = records.get(key)
        if before is not None and before == record:
            return
        records[key] = record
        self._stale[kind][key] = None
        self._count(kind, record, 1)
        if before is None:
            self._keys.pop(kind, None)
        else:
            self._count(kind, before, -1)

    def touch(self, kind: str, key: str) -> None:
        """Have an object count as changed."""
        if key in self._by_kind[kind]:
            self._stale[kind][key] = None

    def drop(self, kind: str, key: str) -> None:
        before = self._by_kind[kind].pop(key, None)
        if before is not None:
            self._keys.pop(kind, None)
            self._stale[kind][key] = None
            self._count(kind, before, -1)

    def take_stale(self, kind: str) -> list[str]:
        """Names of the objects that came, changed or went since the last call, sorted."""
        stale = self._stale[kind]
        if not stale:
            return []
        self._stale[kind] = {}
        return sorted(stale)

    def has_stale(self, kind: str) -> bool:
        """Whether an object of the kind came, changed or went since the last question."""
        return bool(self._stale[kind])

    def forget_stale(self, kind: str, key: str) -> bool:
        """Whether an object came, changed or went since the last question; it counts as known from now on."""
        stale = self._stale[kind]
        if key not in stale:
            return False
        del stale[key]
        return True

    def sorted(self, kind: str) -> list[Any]:
        records = self._by_kind[kind]
        keys = self._keys.get(kind)
        if keys is None:
            keys = self._keys[kind] = sorted(records)
        return [records[key] for key in keys]

    def named_classes(self) -> Set[str]:
        """Priority classes that an object names."""
        return self._classes.keys()

    @property
    def latest(self) -> float:
        """The latest time of all objects, seconds since the epoch; 0 without any."""
        if self._latest not in self._times:
            self._latest = max(self._times, default=0.0)
        return max(0.0, self._latest)

    def _count(self, kind: str, record: Any, by: int) -> None:
        if kind in _TIME:
            time = _TIME[kind](record)
            if by > 0 and time > self._latest:
                self._latest = time
            _add(self._times, time, by)
        if kind in _CLASS and (name := _CLASS[kind](record)):
            _add(self._classes, name, by)


def _add(counts: dict[Any, int], key: Any, by: int) -> None:
    count = counts.get(key, 0) + by
    if count:
        counts[key] = count
    else:
        del counts[key]
