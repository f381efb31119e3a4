"""By the Kubernetes documentation; every list is atomic (none of the applied kinds merges one)."""

import copy
from collections.abc import Iterable
from typing import Any

from tidesched_web.simcluster.errors import Cause

Path = tuple[str, ...]
Object = dict[str, Any]

# Fields of the server: they have no owner.
_UNOWNED: tuple[Path, ...] = (
    ("apiVersion",),
    ("kind",),
    ("metadata", "name"),
    ("metadata", "namespace"),
    ("metadata", "uid"),
    ("metadata", "resourceVersion"),
    ("metadata", "generation"),
    ("metadata", "creationTimestamp"),
    ("metadata", "managedFields"),
)


class FieldConflict(Exception):
    def __init__(self, causes: list[Cause]) -> None:
        super().__init__(f"Apply failed with {len(causes)} conflict{'s' if len(causes) != 1 else ''}")
        self.causes = causes


def leaves(obj: Object, prefix: Path = ()) -> dict[Path, Any]:
    found: dict[Path, Any] = {}
    for key, value in obj.items():
        path = (*prefix, key)
        if path in _UNOWNED:
            continue
        if isinstance(value, dict) and value:
            found.update(leaves(value, path))
        else:
            found[path] = value
    return found


def record_update(obj: Object, old: Object | None, manager: str, now: str, subresource: str = "") -> None:
    before, after = leaves(old or {}), leaves(obj)
    changed = {path for path, value in after.items() if path not in before or before[path] != value}
    gone = set(before) - set(after)
    entries = _entries(old)
    for entry in entries:
        entry.paths -= changed | gone
    if changed:
        _entry(entries, manager, "Update", subresource).add(changed, now)
    _write(obj, entries)


def apply(live: Object | None, applied: Object, manager: str, now: str, *, force: bool) -> Object:
    """Fields that it applied earlier and leaves out now are removed, unless another manager owns them too."""
    wanted = leaves(applied)
    result = copy.deepcopy(live) if live is not None else {"metadata": {}}
    current = leaves(result)
    entries = _entries(live)
    mine = _entry(entries, manager, "Apply", "")
    others = [entry for entry in entries if entry is not mine]
    contested = {path: value for path, value in wanted.items() if path in current and current[path] != value}
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{entry.manager}" using {entry.api_version or "v1"}',
            "field": "." + ".".join(path),
        }
        for entry in others
        for path in sorted(entry.paths)
        if path in contested
    ]
    if causes and not force:
        raise FieldConflict(causes)
    for entry in others:
        entry.paths -= set(contested)
    owned_by_others = {path for entry in others for path in entry.paths}
    for path in mine.paths - set(wanted) - owned_by_others:
        _delete(result, path)
    for path, value in wanted.items():
        _set(result, path, value)
    if mine.paths != set(wanted) or contested:  # else the time stays, and with it the object's resource version
        mine.paths, mine.time = set(wanted), now
    mine.api_version = str(applied.get("apiVersion", ""))
    _write(result, entries)
    return result


class _Entry:
    def __init__(self, manager: str, operation: str, subresource: str, paths: set[Path], time: str) -> None:
        self.manager, self.operation, self.subresource = manager, operation, subresource
        self.paths, self.time, self.api_version = paths, time, ""

    def add(self, paths: Iterable[Path], now: str) -> None:
        self.paths |= set(paths)
        self.time = now

    def to_json(self, api_version: str) -> Object:
        entry: Object = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version or api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": _to_fields(self.paths),
        }
        if self.subresource:
            entry["subresource"] = self.subresource
        return entry


def _entries(obj: Object | None) -> list[_Entry]:
    entries = []
    for line in (obj or {}).get("metadata", {}).get("managedFields") or []:
        paths = set(_from_fields(line["fieldsV1"], ()))
        entry = _Entry(line["manager"], line["operation"], line.get("subresource", ""), paths, line["time"])
        entry.api_version = line["apiVersion"]
        entries.append(entry)
    return entries


def _entry(entries: list[_Entry], manager: str, operation: str, subresource: str) -> _Entry:
    for entry in entries:
        if (entry.manager, entry.operation, entry.subresource) == (manager, operation, subresource):
            return entry
    entries.append(_Entry(manager, operation, subresource, set(), ""))
    return entries[-1]


def _write(obj: Object, entries: list[_Entry]) -> None:
    lines = [entry.to_json(str(obj.get("apiVersion", ""))) for entry in entries if entry.paths]
    obj["metadata"] = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    if lines:
        obj["metadata"]["managedFields"] = lines


def _to_fields(paths: Iterable[Path]) -> Object:
    tree: Object = {}
    for path in sorted(paths):
        node = tree
        for part in path:
            node = node.setdefault(f"f:{part}", {})
    return tree


def _from_fields(tree: Object, prefix: Path) -> Iterable[Path]:
    for key, below in tree.items():
        path = (*prefix, key[2:])
        if below:
            yield from _from_fields(below, path)
        else:
            yield path


def _set(obj: Object, path: Path, value: Any) -> None:
    for part in path[:-1]:
        below = obj.get(part)
        if not isinstance(below, dict):
            below = obj[part] = {}
        obj = below
    obj[path[-1]] = value


def _delete(obj: Object, path: Path) -> None:
    parents = []
    for part in path[:-1]:
        below = obj.get(part)
        if not isinstance(below, dict):
            return
        parents.append((obj, part))
        obj = below
    obj.pop(path[-1], None)
    for parent, part in reversed(parents):
        if parent[part] or part in ("metadata", "spec", "status"):
            return
        del parent[part]
