"""Check chains of the audit log from their stored bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tidesched_web.audit import signing
from tidesched_web.audit.canonical import canonical_bytes, digest, moment
from tidesched_web.audit.models import AuditEntry, Segment, SignedHead
from tidesched_web.audit.selectors import anchor_of, chain_entries, chain_heads, public_keys, segments, signed_heads

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
    signatures: int = 0

    @property
    def intact(self) -> bool:
        return self.broken_seq is None


def _problem(entry: AuditEntry, expected_seq: int, expected_prev: str) -> str:
    payload = bytes(entry.payload)
    if entry.seq != expected_seq:
        return f"entry {expected_seq} is missing"
    if digest(payload) != entry.hash:
        return "its bytes do not give its hash"
    if entry.prev_hash != expected_prev:
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


def _statement_problem(row: SignedHead | Segment, keys: dict[str, str], **facts: Any) -> str:
    """What is wrong with a signed statement: its key, its signature, or columns that say something else."""
    public = keys.get(row.key_id)
    statement = bytes(row.statement)
    if public is None or signing.key_id_of(public) != row.key_id:
        return f"its signature is of an unknown key {row.key_id}"
    if not signing.holds(public, statement, row.signature):
        return "its signature does not hold"
    said = json.loads(statement)
    return "" if all(said.get(name) == value for name, value in facts.items()) else "its signature says something else"


class _Signatures:
    """What was signed of a chain, asked for as the walk goes by."""

    def __init__(self, chain: str) -> None:
        self.keys = public_keys()
        self.heads = {head.seq: head for head in signed_heads(chain)}
        self.sealed = {segment.last_seq: segment for segment in segments().filter(chain=chain)}
        self.held = 0

    def problem_at(self, seq: int, hash_: str) -> str:
        """Whether what was signed of entry ``seq`` agrees with the hash that it has now."""
        if head := self.heads.get(seq):
            facts = {"kind": "head", "chain": head.chain, "seq": seq, "hash": hash_}
            if problem := _statement_problem(head, self.keys, **facts):
                return problem
            self.held += 1
        if segment := self.sealed.get(seq):
            facts = {"kind": "segment", "chain": segment.chain, "last_seq": seq, "last_hash": hash_}
            if problem := _statement_problem(segment, self.keys, **facts):
                return problem
            self.held += 1
        return ""

    def beyond(self, seq: int) -> bool:
        """Whether an entry after ``seq`` was signed."""
        return any(signed > seq for signed in (*self.heads, *self.sealed))


def verify_chain(chain: str) -> ChainReport:
    """Walk one chain from its anchor to its head.

    The anchor is the beginning, or the signed end of the newest segment that was dropped.
    """
    # Writers go on meanwhile: the walk has to reach the end of before, and must not go beyond the end of afterwards.
    before, anchor, signatures = chain_heads().get(chain), anchor_of(chain), _Signatures(chain)
    seq, prev = (anchor.last_seq + 1, anchor.last_hash) if anchor else (1, "")
    first_seq, checked = seq, 0

    def broken(problem: str) -> ChainReport:
        return ChainReport(chain, checked, first_seq, prev, seq, problem, signatures.held)

    if anchor is not None and (problem := signatures.problem_at(anchor.last_seq, anchor.last_hash)):
        return broken(f"the segment before it cannot be its anchor: {problem}")
    at_head = before is None or (before.seq, before.hash) == (seq - 1, prev)
    for entry in chain_entries(chain, after=first_seq - 1):
        problem = _problem(entry, seq, prev) or signatures.problem_at(seq, entry.hash)
        if problem:
            return broken(problem)
        checked, seq, prev = checked + 1, seq + 1, entry.hash
        at_head = at_head or (before is not None and (before.seq, before.hash) == (entry.seq, entry.hash))
    if not at_head or signatures.beyond(seq - 1):
        return broken("the chain ends before its head")
    after = chain_heads().get(chain)
    if after is not None and after.seq < seq - 1:
        return broken("the chain goes on beyond its head")
    return ChainReport(chain, checked, first_seq, prev, signatures=signatures.held)


def verify_all() -> list[ChainReport]:
    """Every chain, by name."""
    return [verify_chain(chain) for chain in sorted(chain_heads())]
