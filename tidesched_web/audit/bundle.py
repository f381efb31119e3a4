"""A line is a row of ``table``; bytes are text, else base64 under ``…_base64``. Entries come last, by chain."""

import base64
import datetime as dt
import json
from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import Model

from tidesched_web.audit import selectors
from tidesched_web.audit.canonical import moment

PAGE = 500
_BYTES = {"payload", "statement", "export_statement", "drop_statement", "endorsement"}
# Of no use to an outsider, or a secret.
_LEFT_OUT = {"private_key", "encrypted_with"}


def pages() -> Iterator[bytes]:
    """The entries have to reach the ends from before (``head``), and not go beyond those after (``end``)."""
    yield b"".join(
        [
            *_rows("key", selectors.signing_keys()),
            *_rows("head", selectors.head_rows()),
            *_rows("signed_head", selectors.signed_heads().order_by("id")),
            *_rows("segment", selectors.segments().order_by("chain", "first_seq")),
        ]
    )
    for chain in sorted(selectors.chain_names()):
        after: tuple[int, int] = (0, 0)
        while rows := selectors.some_entries(chain, after=after, limit=PAGE):
            yield b"".join(_rows("entry", rows))
            after = (rows[-1].seq, rows[-1].pk)
    yield b"".join(_rows("end", selectors.head_rows()))


def _rows(table: str, rows: Iterable[Model]) -> Iterator[bytes]:
    return (_line(table, row) for row in rows)


def _line(table: str, row: Model) -> bytes:
    document: dict[str, Any] = {"table": table}
    for field in row._meta.concrete_fields:
        name, value = field.attname, getattr(row, field.attname)
        if name in _LEFT_OUT:
            continue
        if name in _BYTES:
            try:
                document[name] = bytes(value).decode()
            except UnicodeDecodeError:
                document[f"{name}_base64"] = base64.b64encode(bytes(value)).decode()
        else:
            document[name] = moment(value) if isinstance(value, dt.datetime) else value
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(errors="replace") + b"\n"
