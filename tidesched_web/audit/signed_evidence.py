import datetime as dt
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidesched_web.audit import selectors, signing
from tidesched_web.audit.canonical import parsed
from tidesched_web.audit.findings import Finding, Kind
from tidesched_web.audit.models import Segment

# Every chain that has moved is signed once an hour. So long after an entry its chain must have a head, where others do.
_LATEST = dt.timedelta(hours=2)


@dataclass(frozen=True)
class Trust:
    keys: Mapping[str, str]
    heads: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)


class SignedEvidence:
    def __init__(self, chain: str, held: Trust) -> None:
        self.chain, self.keys, self.held = chain, held.keys, 0
        self.anchor = selectors.anchor_of(chain)
        self._heads = list(selectors.signed_heads(chain).order_by("id"))
        self._outside = held.heads.get(chain, [])
        self._segments = list(selectors.segments().filter(chain=chain).order_by("first_seq"))
        self._head_at = {head.seq: head for head in self._heads}
        self._outside_at = {line["said"]["seq"]: line for line in self._outside}
        self._segment_at = {segment.last_seq: segment for segment in self._segments}
        self.is_empty = not (self._heads or self._segments)

    @property
    def newest(self) -> int:
        return max((0, *self._head_at, *self._outside_at, *self._segment_at))

    @property
    def early_until(self) -> int:
        """Up to which entry a head of recipe 1 vouches for entries that are not signed themselves."""
        early = [head.seq for head in self._heads if parsed(bytes(head.statement)).get("recipe") == 1]
        return max(early, default=0)

    def at(self, seq: int, hash_: str) -> Finding | None:
        if head := self._head_at.get(seq):
            said = bytes(head.statement)
            if found := self._signed(seq, f"the signed head at entry {seq}", head.key_id, said, head.signature):
                return found
            if {"kind": "head", "chain": self.chain, "seq": seq, "hash": hash_}.items() - parsed(said).items():
                return Finding(seq, Kind.REWRITTEN, f"the signed head at entry {seq} says something else")
        if (line := self._outside_at.get(seq)) and line["said"].get("hash") != hash_:
            text = f"the head from outside at entry {seq} says something else: the chain was written anew"
            return Finding(seq, Kind.REWRITTEN, text)
        if (segment := self._segment_at.get(seq)) and segment.last_hash != hash_:
            return Finding(seq, Kind.SEGMENT, f"the segment {segment} ends with another hash than entry {seq}")
        return None

    def _signed(self, seq: int, name: str, key_id: str, said: bytes, signature: str) -> Finding | None:
        public = self.keys.get(key_id)
        if public is None:
            return Finding(seq, Kind.KEY, f"{name} is signed with the key {key_id}, which is not trusted")
        if not signing.holds(public, said, signature):
            return Finding(seq, Kind.SIGNATURE, f"the signature of {name} does not hold")
        self.held += 1
        return None

    def outside_findings(self) -> Iterator[Finding]:
        """Whether the heads from outside are signed with a trusted key: else they prove nothing."""
        for line in self._outside:
            said, seq = line["statement"].encode(), line["said"].get("seq", 0)
            name = f"the head from outside at entry {seq}"
            if found := self._signed(seq, name, line.get("key_id", ""), said, line.get("signature", "")):
                yield found
                return

    def segment_findings(self) -> Iterator[Finding]:
        seq, prev = 1, ""
        for segment in self._segments:
            if found := self._segment_problem(segment):
                yield found
                return
            if segment.dropped_at is None:
                continue
            if (segment.first_seq, segment.prev_hash) != (seq, prev):
                text = f"the segment {segment} does not follow what was dropped before it"
                yield Finding(segment.first_seq, Kind.SEGMENT, text)
                return
            seq, prev = segment.last_seq + 1, segment.last_hash

    def _segment_problem(self, segment: Segment) -> Finding | None:
        first, name = segment.first_seq, f"the segment {segment}"
        said = parsed(bytes(segment.statement))
        facts = {"kind": "segment", "chain": self.chain} | {
            column: getattr(segment, column) for column in ("first_seq", "last_seq", "prev_hash", "last_hash", "sha256")
        }
        public = self.keys.get(segment.key_id)
        if public is None:
            return Finding(first, Kind.SEGMENT, f"{name} is signed with the key {segment.key_id}, which is not trusted")
        if not signing.holds(public, bytes(segment.statement), segment.signature):
            return Finding(first, Kind.SEGMENT, f"the signature of {name} does not hold")
        if facts.items() - said.items():
            return Finding(first, Kind.SEGMENT, f"{name} says something else than what was signed")
        self.held += 1
        if segment.dropped_at is None:
            return None
        if all(self._marked(segment, verb) for verb in ("export", "drop")):
            return None
        return Finding(first, Kind.NOT_EXPORTED, f"{name} was dropped, and no signature says that it was exported")

    def _marked(self, segment: Segment, verb: str) -> bool:
        text, signature = bytes(getattr(segment, f"{verb}_statement")), getattr(segment, f"{verb}_signature")
        if not text:
            return False
        said = parsed(text)
        facts = {"kind": verb, "chain": self.chain, "sha256": segment.sha256, "last_seq": segment.last_seq}
        public = self.keys.get(said.get("key_id", ""))
        return public is not None and not facts.items() - said.items() and signing.holds(public, text, signature)

    def head_findings(self, *, said: int, last: int) -> Iterator[Finding]:
        """Whether signed heads were taken out: by their numbers, by what entries and the outside know, by the hours."""
        number, digest = 0, ""
        known = {bytes(head.statement) for head in self._heads}
        for head in self._heads:
            statement = parsed(bytes(head.statement))
            if statement.get("recipe") != 1:
                if statement.get("number") != number + 1 or statement.get("prev") != digest:
                    text = f"signed heads before the one at entry {head.seq} are missing"
                    yield Finding(head.seq, Kind.HEADS_MISSING, text)
                    return
                number += 1
            digest = hashlib.sha256(bytes(head.statement)).hexdigest()
        row = selectors.chain_heads().get(self.chain)
        newest = max(self._head_at, default=0)
        if (said := max(said, row.heads if row is not None else 0)) > number + self._signed_since():
            yield Finding(newest, Kind.HEADS_MISSING, f"{said} heads were signed, {number} are there")
        elif row is not None and row.heads < number:
            yield Finding(row.seq, Kind.HEAD_BACK, f"its head counts {row.heads} signed heads; {number} are there")
        elif gone := [line for line in self._outside if line["statement"].encode() not in known]:
            at = gone[0]["said"]["seq"]
            yield Finding(at, Kind.HEADS_MISSING, f"the signed head at entry {at} is missing; the outside knows it")
        elif (seq := selectors.unsigned_since(self.chain, after=newest, before=_LATEST)) is not None:
            yield Finding(seq, Kind.HEADS_MISSING, f"no head was signed for the hour of entry {seq}")

    def _signed_since(self) -> int:
        return selectors.signed_heads(self.chain).count() - len(self._heads)
