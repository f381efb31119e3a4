"""A field that another manager sets otherwise is theirs: one that TideSched owns was not touched since its push."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidesched_web.clusters.kubernetes.client import FIELD_MANAGER
from tidesched_web.clusters.kubernetes.manifests import CARD_QUOTA
from tidesched_web.engine.quantities import cpu_milli, memory_mib

Path = tuple[str, ...]

_IDENTITY = {("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")}
# The server leaves out what is false.
_OMITTED: dict[Path, bool] = {("globalDefault",): False}


@dataclass(frozen=True)
class Standing:
    """``shared``: to be forced. ``emptied``: to be removed first, since the server refuses an apply's null."""

    same: bool
    shared: bool
    contested: tuple[tuple[str, tuple[str, ...]], ...] = ()
    emptied: tuple[Path, ...] = ()

    @property
    def message(self) -> str:
        fields = "; ".join(f"{field} is set by {', '.join(managers)}" for field, managers in self.contested)
        return f"Not overwritten: {fields}"


def standing(wanted: Mapping[str, Any], live: Mapping[str, Any] | None) -> Standing:
    if live is None:
        return Standing(same=False, shared=False)
    leaves = dict(_leaves(wanted))
    ours, theirs = _owners(live)
    differing = {path for path, value in leaves.items() if _at(live, path) != value}
    contested = []
    for path in sorted(differing - ours):
        strangers = theirs.get(path, set()) - {FIELD_MANAGER}
        if strangers and not _means_the_same(path, leaves[path], _at(live, path)):
            contested.append(("." + ".".join(path), tuple(sorted(strangers))))
    told = {path for path, value in leaves.items() if not (path in _OMITTED and value is _OMITTED[path])}
    same = not differing and told <= ours and ours <= leaves.keys()
    return Standing(
        same=same,
        shared=any(theirs.get(path) for path in differing),
        contested=tuple(contested),
        emptied=tuple(sorted(_emptied(live, ours - leaves.keys(), theirs))),
    )


def _emptied(live: Mapping[str, Any], dropped: set[Path], theirs: Mapping[Path, set[str]]) -> set[Path]:
    found = set()
    for path in {path[:-1] for path in dropped if len(path) > 2}:
        value = _at(live, path)
        if path in theirs and isinstance(value, Mapping) and all((*path, key) in dropped for key in value):
            found.add(path)
    return found


def _leaves(obj: Mapping[str, Any], prefix: Path = ()) -> Iterator[tuple[Path, Any]]:
    for key, value in obj.items():
        path = (*prefix, key)
        if path in _IDENTITY:
            continue
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, path)
        else:
            yield path, value


def _at(obj: Mapping[str, Any], path: Path) -> Any:
    value: Any = obj
    for part in path:
        if not isinstance(value, Mapping) or part not in value:
            return _OMITTED.get(path)
        value = value[part]
    return value


def _means_the_same(path: Path, one: Any, other: Any) -> bool:
    """``8`` and ``8000m`` CPUs, or a card quota written in another order: no wish is lost with the other form."""
    try:
        if path[-1] == CARD_QUOTA:
            return bool(json.loads(one) == json.loads(other))
        if path[-1] == "cpu":
            return cpu_milli(one) == cpu_milli(other)
        if path[-1] == "memory":
            return memory_mib(one) == memory_mib(other)
    except (TypeError, ValueError, ArithmeticError, RecursionError):
        return False
    return False


def _owners(live: Mapping[str, Any]) -> tuple[set[Path], dict[Path, set[str]]]:
    """Lists are one value. What TideSched wrote not by apply is another manager's to the server, no stranger."""
    ours: set[Path] = set()
    theirs: dict[Path, set[str]] = {}
    for entry in live["metadata"].get("managedFields") or ():
        if entry.get("subresource"):
            continue
        paths = _paths(entry.get("fieldsV1") or {})
        if entry["manager"] == FIELD_MANAGER and entry.get("operation") == "Apply":
            ours.update(paths)
            continue
        for path in paths:
            theirs.setdefault(path, set()).add(entry["manager"])
    return ours, theirs


def _paths(tree: Mapping[str, Any], prefix: Path = ()) -> Iterator[Path]:
    fields = [(key[2:], below) for key, below in tree.items() if key.startswith("f:")]
    if not fields and prefix:
        yield prefix
    for name, below in fields:
        yield from _paths(below, (*prefix, name))
