import hashlib
import sqlite3
import time
from typing import Any

from tidesched_web.simcluster.requests import Write

_INSERT = """
INSERT INTO writes (wall, virtual, verb, resource, kind, namespace, name, uid, detail, digest, dry_run, manager,
    session, epoch, code, reason)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


class WriteLog:
    """Rows are appended in the transaction of the write itself; the oldest go when there are more than ``rows``."""

    def __init__(self, connection: sqlite3.Connection, *, rows: int = 200_000) -> None:
        self._connection = connection
        self._rows = rows

    def append(self, write: Write, *, virtual: float, code: int, reason: str, name: str, uid: str, detail: str) -> None:
        target = write.target
        self._connection.execute(
            _INSERT,
            (
                time.time(),
                virtual,
                write.verb,
                f"{target.kind.qualified}/{target.subresource}" if target.subresource else target.kind.qualified,
                target.kind.kind,
                target.namespace,
                name,
                uid,
                detail,
                hashlib.sha256(write.body).hexdigest(),
                write.dry_run,
                write.caller.manager,
                write.caller.session,
                write.caller.epoch,
                code,
                reason,
            ),
        )

    def page(self, *, after: int, limit: int) -> list[dict[str, Any]]:
        cursor = self._connection.execute("SELECT * FROM writes WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit))
        names = [column[0] for column in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor]
        for row in rows:
            row["dry_run"] = bool(row["dry_run"])
            row["key"] = f"{row['namespace']}/{row['name']}" if row["namespace"] else row["name"]
        return rows

    def trim(self) -> None:
        self._connection.execute("DELETE FROM writes WHERE seq <= (SELECT max(seq) FROM writes) - ?", (self._rows,))
