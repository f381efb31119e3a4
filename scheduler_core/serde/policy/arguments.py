"""Arguments of plugins and actions against what they declare."""

import difflib
from collections.abc import Iterable
from typing import Any

import msgspec

from scheduler_core.framework.plugin import Argument
from scheduler_core.serde.policy.tree import Field

_WORDS = {"bool": "true or false", "int": "a whole number", "float": "a number", "str": "a text"}
_TRUE, _FALSE = frozenset({"true", "True", "TRUE"}), frozenset({"false", "False", "FALSE"})


class BadEntry(ValueError):
    """One entry of an argument is wrong; ``at`` is the entry."""

    def __init__(self, text: str, at: Field) -> None:
        super().__init__(text)
        self.at = at


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is spelt most like ``name``, or None if none is close."""
    by_fold = {other.casefold(): other for other in sorted(known, reverse=True)}
    close = difflib.get_close_matches(name.casefold(), sorted(by_fold), n=1, cutoff=0.6)
    return by_fold[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known name, or all of them when none is near."""
    names = sorted(known)
    near = nearest(name, names)
    return f"did you mean {near!r}?" if near else f"known: {', '.join(names)}"


def checked(argument: Argument, field: Field) -> Any:
    """The value of ``field`` in the declared type. Raises ValueError: it has another type or is out of bounds; the text
    says what would be right."""
    value = field.value
    match argument.type:
        case "bool":
            return _bool(argument, value)
        case "int" | "float":
            return _number(argument, value)
        case "str":
            return _word(argument, value)
        case "list":
            if isinstance(value, str):
                value = [part.strip() for part in value.split(",") if part.strip()]
            if not isinstance(value, list):
                raise ValueError(f"{argument.name} is a list, not {value!r}")
            entries = field.items
            return (
                [_word(argument, item) for item in value] if entries is None else [_entry(argument, e) for e in entries]
            )
        case "map":
            if not isinstance(value, dict):
                raise ValueError(f"{argument.name} is a mapping of names to words, not {value!r}")
            return {key: _entry(argument, item) for key, item in (field.fields or {}).items()}
        case "weights":
            return _weights(argument, value)
        case "records":
            return _records(argument, field)
        case _:
            return value


def _bool(argument: Argument, value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in _TRUE | _FALSE:
        return value in _TRUE
    raise ValueError(f"{argument.name} is {_WORDS['bool']}, not {value!r}")


def _number(argument: Argument, value: object) -> int | float:
    wanted = int if argument.type == "int" else int | float
    if isinstance(value, bool) or not isinstance(value, wanted):
        raise ValueError(f"{argument.name} is {_WORDS[argument.type]}, not {value!r}")
    number: int | float = value if argument.type == "int" else float(value)
    low, high = argument.minimum, argument.maximum
    # Written so that NaN, which compares false with everything, is refused as well.
    if (low is not None and not number >= low) or (high is not None and not number <= high) or number != number:
        bounds = f"{low:g} to {high:g}" if low is not None and high is not None else ""
        bounds = bounds or (f"{low:g} or more" if low is not None else "" if high is None else f"{high:g} or less")
        raise ValueError(f"{argument.name} is {bounds or _WORDS[argument.type]}, not {value!r}")
    return number


def _weights(argument: Argument, value: object) -> dict[str, int | float]:
    """Names with numbers: a mapping, or a list of ``{name, weight}`` as newer Kubernetes has it (weight 1)."""
    if isinstance(value, list) and all(isinstance(item, dict) and "name" in item for item in value):
        pairs = [(str(item["name"]), item.get("weight", 1)) for item in value]
    elif isinstance(value, dict):
        pairs = [(str(name), weight) for name, weight in value.items()]
    else:
        raise ValueError(f"{argument.name} is a mapping of names to numbers, not {value!r}")
    found: dict[str, int | float] = {}
    for name, weight in pairs:
        if name in found:
            raise ValueError(f"{argument.name} names {name} twice")
        one = msgspec.structs.replace(argument, name=f"{argument.name}.{name}", type="float")
        found[name] = _number(one, weight)
    return found


def _records(argument: Argument, field: Field) -> list[dict[str, Any]]:
    names = ", ".join(part.name for part in argument.fields)
    found = []
    for item in field.items if field.items is not None else [field]:
        if item.fields is None or set(item.fields) != {part.name for part in argument.fields}:
            raise BadEntry(f"{argument.name} is a list of {{{names}}}, not {field.value!r}", item)
        entry: dict[str, Any] = {}
        for part in argument.fields:
            try:
                entry[part.name] = checked(part, item.fields[part.name])
            except ValueError as error:
                raise BadEntry(str(error), item.fields[part.name]) from None
        found.append(entry)
    return found


def _entry(argument: Argument, field: Field) -> str:
    try:
        return _word(argument, field.value)
    except ValueError as error:
        raise BadEntry(str(error), field) from None


def _word(argument: Argument, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{argument.name} is {_WORDS['str']}, not {value!r}")
    if argument.choices and value not in argument.choices:
        near = nearest(value, argument.choices)
        more = f" (did you mean {near!r}?)" if near else ""
        raise ValueError(f"{argument.name} is one of {', '.join(argument.choices)}, not {value!r}{more}")
    return value
