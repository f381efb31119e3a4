"""The shape of a YAML text, looked at before anything is built of it.

The parser goes through a text without recursion, but what builds values of its events recurses on the stack of C: a
hundred kilobytes of ``[`` end the process. Aliases let a short text hold more values than any memory holds. Of two
equal keys in one mapping the last one would win without a word. A value that is built takes a hundred times the bytes
of its text."""

import re

import yaml

from scheduler_core.model.errors import BadInput
from scheduler_core.serde.pointers import child

MOST_DEEP = 100
# Values that aliases may repeat in one document.
MOST_REPEATED = 200_000
# What YAML 1.1 takes for a number of base 60 (1:30:00) is read in time that grows with the square of its length.
MOST_DIGITS = 64
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_NUMERIC = re.compile(r"[-+0-9_.:]+")


class _Open:
    """A mapping or a list that has begun. ``keys``: line of each key of a mapping; None for a list. ``key``: the latest
    one; ``filled``: it has its value. ``count``: entries of a list so far."""

    __slots__ = ("anchor", "count", "filled", "key", "keys")

    def __init__(self, anchor: str | None, *, mapping: bool) -> None:
        self.anchor = anchor
        self.keys: dict[str, int] | None = {} if mapping else None
        self.key, self.filled = "", True
        self.count = 0


def check_shape(text: str, *, twice: bool = True, most: int | None = None, repeats: int = MOST_REPEATED) -> None:
    """Refuse a text that nests too deep, repeats too much, holds itself, has a number without an end or a key twice.

    Args:
        twice: False = the caller looks at keys itself. most: keys and values that the text may have; None = any number.
        repeats: values that its aliases may repeat in one document.

    Raises:
        yaml.YAMLError: with the place; also where the text is no YAML.
        BadInput: ``duplicate_key`` with path and line."""
    sizes: dict[str, int] = {}
    opened: list[_Open] = []
    counts = [0]
    repeated = document = values = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        values += isinstance(event, yaml.NodeEvent)
        if most is not None and values > most:
            raise _refused(f"there are more than {most} keys and values", event)
        if isinstance(event, yaml.ScalarEvent):
            if opened:
                _note(event, opened, document, twice=twice)
            if len(event.value) > MOST_DIGITS and _is_number(event):
                raise _refused(f"a number has more than {MOST_DIGITS} digits", event)
            counts[-1] += 1
            if event.anchor:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            if opened:
                _note(event, opened, document, twice=twice)
            opened.append(_Open(event.anchor, mapping=isinstance(event, yaml.MappingStartEvent)))
            counts.append(1)
            if len(opened) > MOST_DEEP:
                raise _refused(f"values are more than {MOST_DEEP} deep in each other", event)
            if event.anchor:
                sizes.pop(event.anchor, None)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, count = opened.pop().anchor, counts.pop()
            counts[-1] += count
            if anchor:
                sizes[anchor] = count
        elif isinstance(event, yaml.AliasEvent):
            if any(part.anchor == event.anchor for part in opened):
                raise _refused(f"*{event.anchor} holds itself", event)
            if opened:
                _note(event, opened, document, twice=twice)
            size = sizes.get(event.anchor or "", 1)
            counts[-1] += size
            repeated += size
            if repeated > repeats:
                raise _refused(f"aliases repeat more than {repeats} values", event)
        elif isinstance(event, yaml.DocumentStartEvent):
            sizes.clear()
            repeated = 0
        elif isinstance(event, yaml.DocumentEndEvent):
            document += 1


def _is_number(event: yaml.ScalarEvent) -> bool:
    plain = not event.style and event.tag is None
    return event.tag in _NUMBERS or (plain and _NUMERIC.fullmatch(event.value) is not None)


def _note(event: yaml.Event, opened: list[_Open], document: int, *, twice: bool) -> None:
    """One more key, value or entry of the innermost collection."""
    inner = opened[-1]
    if inner.keys is None:
        inner.count += 1
        return
    if not inner.filled:
        inner.filled = True
        return
    key = event.value if isinstance(event, yaml.ScalarEvent) else ""
    line = event.start_mark.line + 1 if event.start_mark is not None else 0
    if key == "<<" and key in inner.keys:
        # What merges them takes one after the other out of a list: quadratic time.
        raise _refused("<< is in one mapping twice; one << takes a list", event)
    if twice and key in inner.keys and isinstance(event, yaml.ScalarEvent):
        raise BadInput(
            "duplicate_key",
            f"{key!r} is in one mapping twice, first on line {inner.keys[key]}",
            path=_path(opened, key, document),
            line=line,
            value=key,
            hint="keep one of the two",
        )
    inner.keys[key] = line
    inner.key, inner.filled = key, False


def _path(opened: list[_Open], key: str, document: int) -> str:
    """Pointer of a key in the innermost mapping; only the first document goes without its number."""
    path = f"documents[{document}]" if document else ""
    for part in opened[:-1]:
        path = f"{path}[{part.count - 1}]" if part.keys is None else child(path, part.key)
    return child(path, key).lstrip(".")


def _refused(problem: str, event: yaml.Event) -> yaml.YAMLError:
    mark = event.start_mark
    return yaml.composer.ComposerError(None, None, problem, mark)  # type: ignore[arg-type]  # also the C parser's
