"""Check chains of the audit log from their stored bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tidesched_web.audit.canonical import canonical_bytes, digest, moment
from tidesched_web.audit.models import AuditEntry
from tidesched_web.audit.selectors import chain_entries, chain_heads

# Columns that repeat the payload for search; each must say the same as the bytes that were hashed.
_REPEATED = (
    "actor", "action", "object_type", "object_id", "object_label", "cluster_id", "tenant_ids", "request_id", "address",
    "reason", "before", "after",
)  # fmt: skip


@dataclass(frozen=True)
class ChainReport:
    """What became of one chain: how many entries hold, and the first one that does not."""

    chain: str
    checked: int
    first_seq: int
    last_hash: str
    broken_seq: int | None = None
    problem: str = ""

    @property
    def intact(self) -> bool:
        return self.broken_seq is None


def _problem(entry: AuditEntry, expected_seq: int, expected_prev: str | None) -> str:
    payload = bytes(entry.payload)
    if entry.seq != expected_seq:
        return f"entry {expected_seq} is missing"
    if digest(payload) != entry.hash:
        return "its bytes do not give its hash"
    if expected_prev is not None and entry.prev_hash != expected_prev:
        return "it does not follow the entry before it"
    said: dict[str, Any] = json.loads(payload)
    if canonical_bytes(said) != payload:
        return "its bytes are not canonical"
    columns = {name: getattr(entry, name) for name in _REPEATED}
    columns |= {"chain": entry.chain, "seq": entry.seq, "at": moment(entry.at), "prev_hash": entry.prev_hash}
    for name, value in columns.items():
        if said.get(name) != value:
            return f"column {name} says something else than the bytes"
    return ""


def verify_chain(chain: str) -> ChainReport:
    """Walk one chain from its oldest kept entry (its anchor) to its head.

    Where older entries were dropped with their partitions the first one kept is taken as it is.
    """
    head = chain_heads().get(chain)
    checked, first_seq, seq, prev = 0, 0, 0, None
    for entry in chain_entries(chain):
        if not checked:
            first_seq, seq = entry.seq, entry.seq
            prev = "" if entry.seq == 1 else None
        problem = _problem(entry, seq, prev)
        if problem:
            return ChainReport(chain, checked, first_seq, prev or "", broken_seq=seq, problem=problem)
        checked, seq, prev = checked + 1, seq + 1, entry.hash
    if head is not None and (head.seq, head.hash) != (max(seq - 1, 0), prev or ""):
        return ChainReport(
            chain, checked, first_seq, prev or "", broken_seq=seq, problem="the chain ends before its head"
        )
    return ChainReport(chain, checked, first_seq, prev or "")


def verify_all() -> list[ChainReport]:
    """Every chain, by name."""
    return [verify_chain(chain) for chain in sorted(chain_heads())]
