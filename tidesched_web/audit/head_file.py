"""The head file: every signed head, a line each, in a place that the database's owner does not reach."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.conf import settings

from tidesched_web.audit.models import SignedHead
from tidesched_web.audit.selectors import public_keys, signed_heads
from tidesched_web.common.errors import DomainError


def line(head: SignedHead, publics: dict[str, str]) -> bytes:
    facts = {
        "chain": head.chain,
        "seq": head.seq,
        "hash": head.hash,
        "statement": bytes(head.statement).decode(),
        "signature": head.signature,
        "key_id": head.key_id,
        "public_key": publics.get(head.key_id),
    }
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def lines() -> Iterator[bytes]:
    publics = public_keys()
    for head in signed_heads().order_by("id").iterator(chunk_size=500):
        yield line(head, publics)


def own() -> Path | None:
    return Path(settings.AUDIT_HEADS_FILE) if settings.AUDIT_HEADS_FILE else None


def add(heads: Iterable[SignedHead]) -> None:
    path, made = own(), list(heads)
    if path is None or not made:
        return
    publics = public_keys()
    text = b"".join(line(head, publics) for head in made) if path.exists() else b"".join(lines())
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "ab") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> list[dict[str, Any]]:
    try:
        found = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines() if text.strip()]
        for one in found:
            one["said"] = json.loads(one["statement"])
            if one["said"]["kind"] != "head" or not isinstance(one["said"]["seq"], int):
                raise ValueError(f"no head: {one['statement']}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DomainError("invalid", f"{path} is no head file: {error}") from None
    return found
