"""A YAML text as a tree in which every value knows its line and its path."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from scheduler_core.model.errors import BadInput
from scheduler_core.serde.nesting import check_shape
from scheduler_core.serde.pointers import child
from scheduler_core.serde.text import UNREADABLE, Loader, yaml_error

# A policy has some hundred values. Each remembers its path, so that paths have to be short, and texts are compared line
# by line.
MOST_VALUES = 200_000
MOST_LINES = 2000
LONGEST_PATH = 2000
# A list or a mapping in the wrong place is shown where it is so short.
LONGEST_VALUE = 80


class Field(msgspec.Struct):
    """One value of the text.

    Attributes:
        value: plain Python value. line: from 1. path: pointer, empty for the root.
        fields: children of a mapping; None if it is none. items: children of a list; None if it is none.
        block: the value is a literal block, its text begins on the line after ``line``."""

    value: Any
    line: int
    path: str
    fields: dict[str, Field] | None = None
    items: list[Field] | None = None
    block: bool = False


class Source:
    """Makes errors that name the place in one file."""

    def __init__(self, file: str | None) -> None:
        self.file = file

    def error(self, code: str, message: str, at: Field, *, hint: str | None = None) -> BadInput:
        simple = at.fields is None and at.items is None
        value = at.value if simple or len(str(at.value)) <= LONGEST_VALUE else None
        return BadInput(code, message, file=self.file, path=at.path or None, line=at.line, value=value, hint=hint)


def read_tree(text: str, source: Source, first_line: int = 1) -> Field:
    """Parse one YAML document. ``first_line``: line of the file on which ``text`` begins (a policy inside a ConfigMap
    begins further down). Raises BadInput: ``malformed_yaml``, ``duplicate_key``."""
    if text.count("\n") > MOST_LINES:
        message = f"the text has more than {MOST_LINES} lines"
        raise BadInput("malformed_yaml", message, file=source.file, line=first_line + MOST_LINES)
    try:
        check_shape(text, twice=False, most=MOST_VALUES)
        node = yaml.compose(text, Loader=Loader)
    except yaml.YAMLError as error:
        bad = yaml_error(error, source.file)
        bad.line = bad.line + first_line - 1 if bad.line else None
        raise bad from None
    except UNREADABLE as error:
        raise BadInput("malformed_yaml", f"the text cannot be read: {error}", file=source.file) from None
    if node is None:
        return Field(None, first_line, "")
    return _field(node, "", first_line, source, yaml.SafeLoader(""))


def _field(node: yaml.Node, path: str, first_line: int, source: Source, constructor: yaml.SafeLoader) -> Field:
    line = int(node.start_mark.line) + first_line
    if isinstance(node, yaml.MappingNode):
        constructor.flatten_mapping(node)
        fields: dict[str, Field] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            if len(path) + len(key) > LONGEST_PATH:
                what = f"the keys that lead to a value have more than {LONGEST_PATH} characters together"
                raise BadInput(
                    "malformed_yaml", what, file=source.file, path=path, line=int(key_node.start_mark.line) + first_line
                )
            below = child(path, key).lstrip(".")
            if key in fields:
                at = Field(key, int(key_node.start_mark.line) + first_line, below)
                raise source.error("duplicate_key", f"{key!r} is here twice", at, hint="keep one of the two")
            field = _field(value_node, below, first_line, source, constructor)
            field.line = int(key_node.start_mark.line) + first_line
            fields[key] = field
        return Field({key: field.value for key, field in fields.items()}, line, path, fields=fields)
    if isinstance(node, yaml.SequenceNode):
        items = [_field(item, f"{path}[{i}]", first_line, source, constructor) for i, item in enumerate(node.value)]
        return Field([item.value for item in items], line, path, items=items)
    if node.tag == "tag:yaml.org,2002:timestamp":
        return Field(node.value, line, path)
    try:
        value = constructor.construct_object(node)
    except (yaml.YAMLError, *UNREADABLE) as error:
        raise BadInput("malformed_yaml", f"not YAML: {error}", file=source.file, path=path, line=line) from None
    return Field(value, line, path, block=getattr(node, "style", None) in ("|", ">"))
