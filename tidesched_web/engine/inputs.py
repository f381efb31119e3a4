"""zstd over msgpack; a difference names what is new, changed or gone of each long list, scalar fields always."""

from operator import attrgetter
from typing import Any

import msgspec
import zstandard

from tidesched_web.engine.model import BadInput, CardType, Node, Pod, PodGroup, PriorityClass, Queue, Snapshot

FULL = "full-1"
DIFFERENCE = "difference-1"
_LEVEL = 3
_LISTS = {
    "nodes": attrgetter("name"),
    "pods": attrgetter("key"),
    "pod_groups": attrgetter("key"),
    "queues": attrgetter("name"),
    "priority_classes": attrgetter("name"),
    "card_types": attrgetter("name"),
}

_SCALARS = ("schedulers", "latest", "passed_over")


class Difference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    pod_groups: tuple[PodGroup, ...] = ()
    queues: tuple[Queue, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    card_types: tuple[CardType, ...] = ()
    gone: dict[str, tuple[str, ...]] = {}
    schedulers: tuple[str, ...] = ()
    latest: float = 0.0
    passed_over: dict[str, int] = {}
    # All other fields of the snapshot; ``same`` names those of them that are as in the base. None = an older input.
    rest: Snapshot | None = None
    same: tuple[str, ...] = ()


def encode_full(snapshot: Snapshot) -> bytes:
    return _compressed(snapshot)


def encode_difference(snapshot: Snapshot, base: Snapshot) -> bytes:
    """What ``snapshot`` changes in ``base``. Objects that the watch cache kept are compared by identity first."""
    return _compressed(difference(snapshot, base))


def _compressed(value: object) -> bytes:
    """Copied: what the compressor returns keeps a buffer as large as the text that it was given."""
    return bytes(memoryview(zstandard.compress(msgspec.msgpack.encode(value, enc_hook=tuple), _LEVEL)))


def difference(snapshot: Snapshot, base: Snapshot) -> Difference:
    changed: dict[str, Any] = {}
    gone: dict[str, tuple[str, ...]] = {}
    for name, key_of in _LISTS.items():
        before = {key_of(item): item for item in getattr(base, name)}
        new = []
        for item in getattr(snapshot, name):
            old = before.pop(key_of(item), None)
            if old is not item and old != item:
                new.append(item)
        changed[name] = tuple(new)
        if before:
            gone[name] = tuple(before)
    others = [name for name in Snapshot.__struct_fields__ if name not in _LISTS and name not in _SCALARS]
    same = tuple(name for name in others if getattr(snapshot, name) == getattr(base, name))
    return Difference(
        **changed,
        rest=msgspec.structs.replace(snapshot, **dict.fromkeys((*_LISTS, *same), ())),
        same=same,
        gone=gone,
        schedulers=snapshot.schedulers,
        latest=snapshot.latest,
        passed_over=snapshot.passed_over,
    )


def apply(change: Difference, base: Snapshot) -> Snapshot:
    """The snapshot that ``change`` was made from; every list in key order, as a snapshot's always is."""
    lists: dict[str, Any] = {}
    for name, key_of in _LISTS.items():
        items = {key_of(item): item for item in getattr(base, name)}
        for key in change.gone.get(name, ()):
            items.pop(key, None)
        items.update((key_of(item), item) for item in getattr(change, name))
        lists[name] = tuple(items[key] for key in sorted(items))
    lists |= {name: getattr(base, name) for name in change.same}
    if change.rest is not None:
        return msgspec.structs.replace(change.rest, **lists)
    return Snapshot(**lists, schedulers=change.schedulers, latest=change.latest, passed_over=change.passed_over)


def decode(format: str, payload: bytes, base: Snapshot | None = None) -> Snapshot:  # noqa: A002
    try:
        if format == FULL:
            return msgspec.msgpack.decode(zstandard.decompress(payload), type=Snapshot)
        if format == DIFFERENCE and base is not None:
            return apply(decode_difference(payload), base)
    except (zstandard.ZstdError, msgspec.MsgspecError) as error:
        raise BadInput("bad_session_input", f"a stored session input cannot be read: {error}") from error
    raise BadInput("bad_session_input", f"a stored session input of format {format!r} cannot be read", value=format)


def decode_difference(payload: bytes) -> Difference:
    try:
        return msgspec.msgpack.decode(zstandard.decompress(payload), type=Difference)
    except (zstandard.ZstdError, msgspec.MsgspecError) as error:
        raise BadInput("bad_session_input", f"a stored session input cannot be read: {error}") from error
