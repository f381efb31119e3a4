"""A file with a Kubernetes ``List`` (YAML or JSON, or several YAML documents) to a snapshot."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from scheduler_core.model.errors import BadInput
from scheduler_core.model.snapshot import Snapshot
from scheduler_core.serde.kubernetes.builder import DEFAULT_SCHEDULERS, DUPLICATE, SnapshotBuilder
from scheduler_core.serde.kubernetes.decode import steps
from scheduler_core.serde.text import as_text, load_documents

# The line of a file that a pointer such as ``items[3].spec.capability`` names. Used for error messages only.
# Composing a file takes seconds per ten megabytes: more than a line number is worth.
MAX_TEXT = 20_000_000


def line_of(text: str, path: str, document: int = 0) -> int | None:
    """Line (from 1) of the deepest part of ``path`` that the YAML or JSON text has; None if it has none."""
    if len(text) > MAX_TEXT:
        return None
    try:
        node = None
        for index, candidate in enumerate(yaml.compose_all(text, Loader=yaml.CSafeLoader)):
            if index == document:
                node = candidate
                break
    except yaml.YAMLError:
        return None
    if node is None:
        return None
    line = int(node.start_mark.line)
    for step in steps(path):
        found = _child(node, step)
        if found is None:
            break
        line, node = found
    return line + 1


def _child(node: yaml.Node, step: str | int) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return int(key.start_mark.line), value
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item: yaml.Node = node.value[step]
        return int(item.start_mark.line), item
    return None


def read_snapshot(
    raw: str | bytes, file: str | None = None, schedulers: Iterable[str] = DEFAULT_SCHEDULERS
) -> Snapshot:
    """Read a ``List`` of objects, one object, or a YAML file of several. O(objects).

    Args:
        raw: JSON or YAML, UTF-8. file: its name, for messages.
        schedulers: values of ``schedulerName`` whose pods are to be scheduled; pods of others take room.

    Raises:
        BadInput: with the place (file, line, pointer) of what cannot be parsed. An object that cannot be read is one of
            the snapshot's findings."""
    text = as_text(raw, file)
    documents = load_documents(text, file)
    if not documents:
        raise BadInput("empty_snapshot", "the snapshot holds no object", file=file, hint="give a Kubernetes List")
    builder = SnapshotBuilder(schedulers)
    strangers = []
    try:
        for number, document in enumerate(documents):
            prefix = f"documents[{number}]" if len(documents) > 1 else ""
            for path, obj in _objects(document, prefix):
                strangers.append(not isinstance(obj, Mapping) or "kind" not in obj)
                if isinstance(obj, Mapping) and builder.has(obj):
                    builder.leave_aside(obj, _duplicate(obj), path)
                else:
                    builder.take(obj, path=path)
        if strangers and all(strangers):
            raise BadInput("empty_snapshot", "none of it is a Kubernetes object", hint="give a Kubernetes List")
        return builder.build()
    except BadInput as error:
        raise _in_file(error, text, file) from None


def _objects(document: Any, path: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(document, Mapping):
        raise BadInput(
            "malformed_object", "a Kubernetes List or object is expected", path=path, hint="kubectl get … -A -o yaml"
        )
    kind = document.get("kind")
    if not (isinstance(kind, str) and kind.endswith("List") and "items" in document):
        yield path, document
        return
    items = document["items"]
    inside = f"{path}.items" if path else "items"
    if items is None:
        return
    if not isinstance(items, list):
        raise BadInput("malformed_object", f"items is a list, not {type(items).__name__}", path=inside)
    for index, item in enumerate(items):
        if kind != "List" and isinstance(item, Mapping) and "kind" not in item:
            # The API leaves kind and version of the members of a PodList to the list itself.
            whole = {**item, "kind": kind[: -len("List")], "apiVersion": document.get("apiVersion")}
            yield f"{inside}[{index}]", whole
        else:
            yield f"{inside}[{index}]", item


def _duplicate(obj: Mapping[str, Any]) -> BadInput:
    meta = obj["metadata"]
    name = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])
    return BadInput(
        DUPLICATE, f"{obj['kind']} {name} is in the snapshot twice; the first one counts", path="metadata.name",
        value=name, hint="leave one of them out",
    )  # fmt: skip


def _in_file(error: BadInput, text: str, file: str | None) -> BadInput:
    path = error.path or ""
    document, inside = 0, path
    if path.startswith("documents["):
        number, _, inside = path[len("documents[") :].partition("]")
        document = int(number)
    line = error.line or line_of(text, inside, document)
    return BadInput(
        error.code, error.message, file=file, path=path or None, line=line, value=error.value, hint=error.hint
    )
