import sqlite3
from pathlib import Path

SCHEMA_VERSION = 2

# The large values are not in the tree of the keys: SQLite reads all of a row that it compares there, and each commit
# would read the whole dump of the world to find the row of the version.
_OBJECTS = """
CREATE TABLE state (key TEXT PRIMARY KEY, value NOT NULL);
CREATE TABLE objects (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    version INTEGER NOT NULL, body BLOB NOT NULL,
    simulated INTEGER NOT NULL, -- 1: the world's, 0: made by a client
    PRIMARY KEY (resource, namespace, name)
);
"""
_SCHEMA = f"""{_OBJECTS}
-- The latest changes, for watchers (version = resourceVersion).
CREATE TABLE changes (
    version INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL,
    type TEXT NOT NULL, body BLOB NOT NULL, facts BLOB NOT NULL, prior BLOB
);
CREATE INDEX changes_of_resource ON changes (resource, version);
-- Every write that was received, done or refused.
CREATE TABLE writes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, wall REAL NOT NULL, virtual REAL NOT NULL,
    verb TEXT NOT NULL, resource TEXT NOT NULL, kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    uid TEXT NOT NULL, detail TEXT NOT NULL, digest TEXT NOT NULL, dry_run INTEGER NOT NULL,
    manager TEXT NOT NULL, session TEXT NOT NULL, epoch TEXT NOT NULL, code INTEGER NOT NULL, reason TEXT NOT NULL
);
-- What was done to the world since its last dump.
CREATE TABLE redo (seq INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, step TEXT NOT NULL);
"""


# From data version 1, whose tables had their large values among the keys.
_FROM_1 = f"""
ALTER TABLE state RENAME TO state_1;
ALTER TABLE objects RENAME TO objects_1;
{_OBJECTS}
INSERT INTO state SELECT * FROM state_1;
INSERT INTO objects SELECT * FROM objects_1;
DROP TABLE state_1;
DROP TABLE objects_1;
"""  # noqa: S608 - the text above


class NewerData(Exception):
    """The data file was written by a newer version of this program."""


def open_database(path: Path) -> sqlite3.Connection:
    """WAL with ``synchronous=NORMAL``: a commit survives kill -9, not always the machine's own crash."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA journal_size_limit=16777216")
    connection.execute("PRAGMA busy_timeout=5000")
    found = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if found > SCHEMA_VERSION:
        raise NewerData(f"{path} has data version {found}; this program reads up to {SCHEMA_VERSION}")
    if found < SCHEMA_VERSION:
        connection.execute("BEGIN IMMEDIATE")
        for statement in (_FROM_1 if found else _SCHEMA).split(";"):
            if statement.strip():
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        connection.execute("COMMIT")
    return connection
