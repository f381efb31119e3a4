"""The line of a file that a pointer such as ``items[3].spec.capability`` names. Used for error messages only."""

import yaml

from scheduler_core.serde.kubernetes.decode import steps

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
