"""A document holds no null: a field that is not set is absent. So a merge patch (RFC 7386) says every edit: ``{key:
{field: value}}`` sets, ``{key: {field: null}}`` unsets, ``{key: null}`` deletes an object, and a new key makes one.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidesched_web.common.hints import cut

Document = dict[str, Any]
Documents = dict[str, Document]
# ``key → merge patch of its document``; None deletes it.
Edits = dict[str, Any]

KINDS: Final = (
    "rules", "card-type", "tenant", "project", "business-line", "priority-class", "queue", "grant", "tide-plan",
)  # fmt: skip
# A business line of the platform itself stands below this instead of a tenant's slug.
PLATFORM: Final = "-"
# The longest name of anything in a tree has 253 characters, with a namespace before it 317.
LONGEST_KEY: Final = 400
_PARTS = {"project": 2, "business-line": 2, "grant": 2}


@dataclass(frozen=True)
class Difference:
    """One figure of one object; ``field`` is a JSON pointer into its document, None stands for absent."""

    object: str
    field: str
    before: Any
    after: Any

    def as_json(self) -> dict[str, Any]:
        return {"object": self.object, "field": self.field, "before": self.before, "after": self.after}


def kind_of(key: str) -> str:
    return key.partition("/")[0]


def parts_of(key: str) -> tuple[str, ...]:
    """What names the object: ``("acme", "chat")`` of ``project/acme/chat``."""
    kind, _, rest = key.partition("/")
    # The name of a card type has slashes of its own.
    parts = tuple(rest.split("/", _PARTS.get(kind, 1) - 1))
    if kind not in KINDS or len(parts) != _PARTS.get(kind, 1) or not all(parts) or len(key) > LONGEST_KEY:
        raise ValueError(
            f"{cut(key)!r} names no object: kind/name, with kind one of {', '.join(KINDS)}, "
            f"at most {LONGEST_KEY} characters"
        )
    return parts


def key_of(kind: str, *parts: str | None) -> str:
    return "/".join((kind, *(part or PLATFORM for part in parts)))


def in_order(keys: Iterable[str]) -> list[str]:
    return sorted(keys, key=lambda key: (KINDS.index(kind_of(key)), key))


def unescaped(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def pointer(*steps: str) -> str:
    # What a client sent may be long: only what can be a name is remembered.
    return (_short if all(len(step) <= LONGEST_KEY for step in steps) else _pointer)(*steps)


def _pointer(*steps: str) -> str:
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


_short = functools.lru_cache(maxsize=4096)(_pointer)


def merge_patch(target: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


def merged(documents: Mapping[str, Document], edits: Mapping[str, Any]) -> Documents:
    """The map after ``edits``; documents that no edit names are the same objects."""
    result = dict(documents)
    for key, patch in edits.items():
        if patch is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(documents.get(key, {}), patch)
    return result


def patch_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> Edits:
    """The smallest merge patch from one map to another; holds for single documents too."""
    patch: Edits = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if name not in before:
            patch[name] = value
        elif old != value:
            if isinstance(old, Mapping) and isinstance(value, Mapping):
                patch[name] = patch_between(old, value)
            else:
                patch[name] = value
    return dict(sorted(patch.items()))


def restricted(documents: Mapping[str, Document], keys: Iterable[str]) -> Documents:
    return {key: documents[key] for key in sorted(keys) if key in documents}


def differences(before: Mapping[str, Document], after: Mapping[str, Document]) -> list[Difference]:
    found = []
    for key in in_order({*before, *after}):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        had, has = dict(_figures(old)), dict(_figures(new))
        if (old is None or new is None) and not had and not has:
            found.append(Difference(key, "", old, new))  # an object without fields, such as a grant
        found += [
            Difference(key, field, had.get(field), has.get(field))
            for field in sorted({*had, *has})
            if had.get(field) != has.get(field)
        ]
    return found


def _figures(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Leaves by pointer. An empty map inside a document is a leaf: it says more than an absent one."""
    if isinstance(value, Mapping):
        if not value and at:
            yield at, {}
        for name in value:
            yield from _figures(value[name], at + pointer(name))
    elif value is not None:
        yield at, value


def changed_since(base: Mapping[str, Document | None], now: Mapping[str, Document]) -> list[Difference]:
    known = {key: document for key, document in base.items() if document is not None}
    return differences(known, restricted(now, base))


def base_of(documents: Mapping[str, Document], edits: Mapping[str, Any]) -> dict[str, Document | None]:
    return {key: documents.get(key) for key in sorted(edits)}


def as_known(base: Mapping[str, Document | None], known: Mapping[str, Any]) -> dict[str, Document | None]:
    """``base`` with the figures that an editor saw instead of those of now; ``known`` is a patch of these alone."""
    found: dict[str, Document | None] = dict(base)
    for key, patch in known.items():
        document = base.get(key)
        if document is not None and isinstance(patch, Mapping):
            found[key] = _with_known(document, patch)
    return found


def _with_known(document: Any, patch: Mapping[str, Any]) -> Document:
    result = dict(document) if isinstance(document, Mapping) else {}
    for name, value in patch.items():
        if isinstance(value, Mapping):
            below = _with_known(result.get(name), value)
            # A map that is not there and would hold nothing is still not there.
            if below or name in result:
                result[name] = below
        elif value is None:
            result.pop(name, None)
        else:
            result[name] = value
    return result


def touches(edits: Mapping[str, Any], found: Difference) -> bool:
    if found.object not in edits:
        return False
    patch = edits[found.object]
    for step in found.field.split("/")[1:]:
        if not isinstance(patch, Mapping):
            return True
        name = unescaped(step)
        if name not in patch:
            return False
        patch = patch[name]
    return True


def written_value(edits: Mapping[str, Any], found: Difference) -> Any:
    value: Any = edits.get(found.object)
    for step in found.field.split("/")[1:]:
        value = value.get(unescaped(step)) if isinstance(value, Mapping) else None
    return value


def inverse(before: Mapping[str, Document], after: Mapping[str, Document], keys: Iterable[str]) -> Edits:
    chosen = list(keys)
    return patch_between(restricted(after, chosen), restricted(before, chosen))
