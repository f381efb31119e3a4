"""One thread uses it; all that one request changes, with log and step of the world, is one transaction."""

import copy
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from tidesched_web.simcluster.resources import ResourceType
from tidesched_web.simcluster.selectors import Facts, facts_of

Object = dict[str, Any]
_RING_SLACK = 50


@dataclass(frozen=True)
class Change:
    """One line of the ring; ``prior`` are the facts of the object before it, None for a new one."""

    version: int
    type: str
    namespace: str
    body: bytes
    facts: Facts
    prior: Facts | None


class Store:
    """The objects. Only inside :meth:`transaction` may anything be written."""

    def __init__(self, connection: sqlite3.Connection, *, ring_size: int = 10_000) -> None:
        self.connection = connection
        self.ring_size = ring_size
        self.version = int(self.get_state("version", 0))
        self.oldest = self._oldest_change()
        self._on_commit: list[Callable[[], None]] = []
        self._in_transaction = False

    # -- transactions ------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; listeners of :meth:`on_commit` are called after the commit when objects changed."""
        if self._in_transaction:
            raise RuntimeError("transactions of the store do not nest")
        before = self.version
        self.connection.execute("BEGIN IMMEDIATE")
        self._in_transaction = True
        try:
            yield
            if self.version != before:
                self.put_state("version", self.version)
            self.connection.execute("COMMIT")
        except BaseException:
            self.connection.execute("ROLLBACK")
            self.version = before
            raise
        finally:
            self._in_transaction = False
        if self.version != before:
            for listener in self._on_commit:
                listener()

    @contextmanager
    def attempt(self, *, keep: bool = True) -> Iterator[None]:
        """A part of a transaction that leaves nothing behind when it raises, or when ``keep`` is false (a dry run)."""
        before = self.version
        self.connection.execute("SAVEPOINT attempt")
        try:
            yield
        except BaseException:
            self._undo_attempt(before)
            raise
        if keep:
            self.connection.execute("RELEASE attempt")
        else:
            self._undo_attempt(before)

    def _undo_attempt(self, version: int) -> None:
        self.connection.execute("ROLLBACK TO attempt")
        self.connection.execute("RELEASE attempt")
        self.version = version

    def on_commit(self, listener: Callable[[], None]) -> None:
        self._on_commit.append(listener)

    # -- state -------------------------------------------------------------------------------------------------

    def get_state(self, key: str, default: Any = None) -> Any:
        row = self.connection.execute("SELECT value FROM state WHERE key = ?", (key,)).fetchone()
        return default if row is None else row[0]

    def put_state(self, key: str, value: str | bytes | float) -> None:
        self.connection.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (key, value))

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, kind: ResourceType, namespace: str, name: str) -> Object | None:
        row = self.connection.execute(
            "SELECT body FROM objects WHERE resource = ? AND namespace = ? AND name = ?",
            (kind.qualified, namespace, name),
        ).fetchone()
        return None if row is None else orjson.loads(row[0])

    def bodies(
        self, kind: ResourceType, namespace: str = "", *, after: tuple[str, str] | None = None, limit: int = -1
    ) -> list[tuple[str, str, bytes]]:
        return self.connection.execute(
            "SELECT namespace, name, body FROM objects WHERE resource = ? AND (? = '' OR namespace = ?)"
            " AND (namespace, name) > (?, ?) ORDER BY namespace, name LIMIT ?",
            (kind.qualified, namespace, namespace, *(after or ("", "")), limit),
        ).fetchall()

    def all(self, kind: ResourceType, namespace: str = "") -> list[Object]:
        return [orjson.loads(body) for _, _, body in self.bodies(kind, namespace)]

    def simulated_names(self, kind: ResourceType) -> list[tuple[str, str]]:
        return self.connection.execute(
            "SELECT namespace, name FROM objects WHERE resource = ? AND simulated", (kind.qualified,)
        ).fetchall()

    def count(self, kind: ResourceType) -> int:
        row = self.connection.execute("SELECT count(*) FROM objects WHERE resource = ?", (kind.qualified,)).fetchone()
        return int(row[0])

    def changes_after(self, kind: ResourceType, namespace: str, version: int, *, limit: int = 500) -> list[Change]:
        """The changes of ``kind`` beyond ``version``, oldest first; ask ``oldest`` first whether they are all there."""
        rows = self.connection.execute(
            "SELECT version, type, namespace, body, facts, prior FROM changes WHERE resource = ? AND version > ?"
            " AND (? = '' OR namespace = ?) ORDER BY version LIMIT ?",
            (kind.qualified, version, namespace, namespace, limit),
        )
        return [
            Change(
                row[0], row[1], row[2], row[3], orjson.loads(row[4]), None if row[5] is None else orjson.loads(row[5])
            )
            for row in rows
        ]

    # -- writing -----------------------------------------------------------------------------------------------

    def put(self, kind: ResourceType, obj: Object, *, now: str, simulated: bool = False) -> Object:
        """Nothing is written when it equals what is stored. ``simulated``: a new object is the world's."""
        obj = copy.copy(obj)
        metadata = obj["metadata"] = dict(obj["metadata"])
        obj["apiVersion"], obj["kind"] = kind.group_version, kind.kind
        namespace, name = metadata.get("namespace", "") if kind.namespaced else "", metadata["name"]
        old = self.get(kind, namespace, name)
        if old is not None:
            metadata["uid"], metadata["creationTimestamp"] = (
                old["metadata"]["uid"],
                old["metadata"]["creationTimestamp"],
            )
            metadata["resourceVersion"] = old["metadata"]["resourceVersion"]
            metadata["generation"] = old["metadata"]["generation"]
            if obj == old:
                return old
        else:
            metadata.setdefault("uid", str(uuid.uuid4()))
            metadata.setdefault("creationTimestamp", now)
        _count_generation(obj, old)
        self.version += 1
        metadata["resourceVersion"] = str(self.version)
        body = orjson.dumps(obj)
        self.connection.execute(
            "INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET version = excluded.version, body = excluded.body",
            (kind.qualified, namespace, name, self.version, body, simulated),
        )
        self._record("ADDED" if old is None else "MODIFIED", kind, namespace, obj, body, old)
        return obj

    def remove(self, kind: ResourceType, namespace: str, name: str) -> Object | None:
        old = self.get(kind, namespace, name)
        if old is None:
            return None
        self.version += 1
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}
        self.connection.execute(
            "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?", (kind.qualified, namespace, name)
        )
        self._record("DELETED", kind, namespace, last, orjson.dumps(last), old)
        return last

    def _record(
        self, type_: str, kind: ResourceType, namespace: str, obj: Object, body: bytes, old: Object | None
    ) -> None:
        self.connection.execute(
            "INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                self.version,
                kind.qualified,
                namespace,
                type_,
                body,
                orjson.dumps(facts_of(obj)),
                None if old is None else orjson.dumps(facts_of(old)),
            ),
        )

    def trim_changes(self) -> None:
        """Keep the ring near its size; a watch from before it is answered with 410."""
        if self.version - self.oldest < self.ring_size + _RING_SLACK:
            return
        self.connection.execute("DELETE FROM changes WHERE version <= ?", (self.version - self.ring_size,))
        self.oldest = self._oldest_change()

    def _oldest_change(self) -> int:
        row = self.connection.execute("SELECT min(version) FROM changes").fetchone()
        return self.version + 1 if row[0] is None else int(row[0])


def _count_generation(obj: Object, old: Object | None) -> None:
    """``metadata.generation`` grows with each change of what is wanted (everything but metadata and status)."""

    def wanted(of: Object) -> Object:
        return {key: value for key, value in of.items() if key not in ("metadata", "status")}

    if old is None:
        obj["metadata"]["generation"] = 1
    else:
        changed = wanted(obj) != wanted(old)
        obj["metadata"]["generation"] = int(old["metadata"]["generation"]) + int(changed)
