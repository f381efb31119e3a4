import datetime as dt
import enum
import hashlib
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import rfc8785

# JSON numbers beyond this are not the same in every reader; they are written as text.
_EXACT_INTEGER = 2**53 - 1


def moment(value: dt.datetime) -> str:
    """UTC with microseconds and ``Z``: one spelling for one moment."""
    return value.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def plain(value: Any) -> Any:
    """``value`` as JSON types only; NUL, which PostgreSQL's JSONB cannot hold, becomes U+FFFD."""
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value).replace("\x00", "\ufffd")
    if isinstance(value, int):
        return value if abs(value) <= _EXACT_INTEGER else str(value)
    if isinstance(value, float):
        return value
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dt.datetime):
        return moment(value)
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(item) for item in value)
    raise TypeError(f"{type(value).__name__} has no place in an audit entry")


def canonical_bytes(document: Mapping[str, Any]) -> bytes:
    return rfc8785.dumps(dict(document))


def parsed(payload: bytes) -> dict[str, Any]:
    """The document that stored bytes hold; empty where they hold none, since anything may be written there."""
    try:
        found = json.loads(payload)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def digest(payload: bytes) -> str:
    """The entry's hash: SHA-256 over its canonical bytes, in lower-case hexadecimal."""
    return hashlib.sha256(payload).hexdigest()
