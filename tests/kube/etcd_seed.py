"""Filling etcd directly: a hundred thousand objects in seconds, as if they had been created long ago.

The API server stores Protobuf but reads JSON as well, so objects are stored in the form in which a list shows them.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import orjson

Json = dict[str, Any]
_TRANSACTION = 120  # etcd takes 128 operations in one
_FOLDERS = {"Node": "minions", "Pod": "pods", "Namespace": "namespaces", "PriorityClass": "priorityclasses"}


def fill(ask: Callable[[str, Json], object], objects: Iterable[Json]) -> int:
    """Put the objects; ``ask`` sends one request to etcd's JSON gateway. Returns how many there were."""
    done = 0
    for part in _parts(objects):
        puts = [{"request_put": {"key": _text(_key(obj).encode()), "value": _text(_stored(obj))}} for obj in part]
        ask("/v3/kv/txn", {"success": puts})
        done += len(part)
    return done


def _parts(objects: Iterable[Json]) -> Iterator[list[Json]]:
    remaining = iter(objects)
    while part := list(islice(remaining, _TRANSACTION)):
        yield part


def _stored(obj: Json) -> bytes:
    metadata = {"uid": str(uuid.uuid4()), **obj["metadata"]}
    return orjson.dumps({**obj, "metadata": metadata})


def _key(obj: Json) -> str:
    metadata, group = obj["metadata"], obj["apiVersion"].partition("/")[0]
    folder = _FOLDERS.get(obj["kind"]) or f"{group}/{obj['kind'].lower()}s"
    return "/".join(filter(None, ("/registry", folder, metadata.get("namespace"), metadata["name"])))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
