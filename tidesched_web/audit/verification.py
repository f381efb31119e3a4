from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from django.conf import settings

from tidesched_web.audit import head_file, key_services, selectors, signing
from tidesched_web.audit.canonical import canonical_bytes, digest, moment, parsed
from tidesched_web.audit.findings import ChainReport, Finding, Kind
from tidesched_web.audit.models import AuditEntry
from tidesched_web.audit.signed_evidence import SignedEvidence, Trust

# Columns that repeat the payload for search; each must say the same as the bytes that were hashed.
_REPEATED = (
    "actor", "action", "object_type", "object_id", "object_label", "cluster_id", "tenant_ids", "request_id", "address",
    "reason", "before", "after",
)  # fmt: skip
_SINCE_RECIPE_2 = ("id", "actor_kind", "actor_id")
_SINCE_RECIPE_3 = ("actor_issuer", "actor_subject")


def trust(*, pinned: Iterable[str] = (), heads: Path | None = None) -> Trust:
    path = heads or head_file.own()
    known: dict[str, list[dict[str, Any]]] = {}
    if path is not None and (heads is not None or path.exists()):
        for line in head_file.read(path):
            known.setdefault(line["said"]["chain"], []).append(line)
    return Trust(key_services.trusted_keys(tuple(pinned) or settings.AUDIT_PUBLIC_KEYS), known)


def chains(held: Trust) -> list[str]:
    return sorted({*selectors.chain_names(), *held.heads})


def verify_all(held: Trust | None = None) -> list[ChainReport]:
    """Every chain, by name. An empty log is a finding where accounts exist, since making one is an entry."""
    held = held or trust()
    found = [verify_chain(chain, held) for chain in chains(held)]
    if not found and selectors.has_accounts():
        text = "nothing is left of the audit log, though the installation has accounts"
        found = [ChainReport("platform", 0, 1, "", findings=(Finding(1, Kind.EMPTIED, text),))]
    return found


def verify_chain(chain: str, held: Trust | None = None) -> ChainReport:
    """From the beginning, or the signed end of the newest segment that was dropped, to its head."""
    held = held or trust()
    while True:
        walk = _Walk(chain, held)
        report = walk.report()
        # A segment may be dropped, and its rows removed, while the walk is under way: then it starts again.
        if report.intact or selectors.anchor_of(chain) == walk.evidence.anchor:
            return report


class _Walk:
    def __init__(self, chain: str, held: Trust) -> None:
        self.chain = chain
        # Writers go on meanwhile: the walk has to reach the end of before, and must not go beyond that of afterwards.
        self.before = selectors.chain_heads().get(chain)
        self.evidence = SignedEvidence(chain, held)
        anchor = self.evidence.anchor
        self.seq, self.prev = (anchor.last_seq + 1, anchor.last_hash) if anchor else (1, "")
        self.first_seq, self.checked, self.heads_said = self.seq, 0, 0
        self.signed_once = False
        self.hash_at_head = self.prev if self.before and self.before.seq == self.seq - 1 else None

    def report(self) -> ChainReport:
        found = [*self.evidence.outside_findings(), *self.evidence.segment_findings()]
        broken = next(self._entries(), None)
        if broken is not None:
            found.append(broken)
        else:
            found += self._ends()
            found += self.evidence.head_findings(said=self.heads_said, last=self.seq - 1)
        if not found and self.evidence.is_empty and self.before is None and not self.checked:
            found.append(Finding(1, Kind.EMPTIED, "nothing is left of it"))
        held = self.checked + self.evidence.held
        return ChainReport(self.chain, self.checked, self.first_seq, self.prev, held, tuple(found))

    def _entries(self) -> Iterator[Finding]:
        entries = selectors.chain_entries(self.chain, after=self.first_seq - 1)
        for seq, group in groupby(entries, key=lambda entry: entry.seq):
            rows = list(group)
            if (found := self._problem(rows)) is not None:
                yield found
            self.checked, self.seq, self.prev = self.checked + 1, seq + 1, rows[0].hash
            if self.before is not None and self.before.seq == seq:
                self.hash_at_head = rows[0].hash

    def _problem(self, rows: list[AuditEntry]) -> Finding | None:
        entry = rows[0]
        for row in rows:
            if digest(bytes(row.payload)) != row.hash:
                return Finding(row.seq, Kind.BYTES, f"the bytes of entry {row.seq} do not give its hash")
            said = parsed(bytes(row.payload))
            if said.get("chain") != row.chain:
                text = f"entry {row.seq} is an entry of the chain {said.get('chain')!r}"
                return Finding(row.seq, Kind.FOREIGN, text)
            if said.get("seq") != row.seq:
                text = f"entry {row.seq} is entry {said.get('seq')} by its bytes: it was moved"
                return Finding(row.seq, Kind.MOVED, text)
        if len(rows) > 1:
            return Finding(entry.seq, Kind.ADDED, f"there are {len(rows)} entries {entry.seq}")
        if entry.seq != self.seq:
            return Finding(self.seq, Kind.MISSING, f"entry {self.seq} is missing")
        if entry.prev_hash != self.prev:
            return Finding(entry.seq, Kind.LINK, f"entry {entry.seq} does not follow the entry before it")
        return self._content(entry, said) or self._signature(entry, said) or self.evidence.at(entry.seq, entry.hash)

    def _content(self, entry: AuditEntry, said: dict[str, Any]) -> Finding | None:
        if canonical_bytes(said) != bytes(entry.payload):
            return Finding(entry.seq, Kind.BYTES, f"the bytes of entry {entry.seq} are not canonical")
        names = _REPEATED if said.get("recipe") == 1 else (*_REPEATED, *_SINCE_RECIPE_2)
        columns = {name: getattr(entry, name) for name in (*names, *_SINCE_RECIPE_3)}
        columns |= {"at": moment(entry.at), "prev_hash": entry.prev_hash}
        before = dict.fromkeys(_SINCE_RECIPE_3, "")
        for name, value in columns.items():
            if said.get(name, before.get(name)) != value:
                text = f"column {name} of entry {entry.seq} says something else than the bytes"
                return Finding(entry.seq, Kind.COLUMN, text)
        self.heads_said = max(self.heads_said, said.get("heads", 0))
        return None

    def _signature(self, entry: AuditEntry, said: dict[str, Any]) -> Finding | None:
        if not entry.signature:
            # Entries of recipe 1 were not signed one by one: a head of recipe 1 behind them vouches for them.
            if said.get("recipe") == 1 and not self.signed_once and entry.seq <= self.evidence.early_until:
                return None
            return Finding(entry.seq, Kind.UNSIGNED, f"entry {entry.seq} is not signed")
        self.signed_once = True
        public = self.evidence.keys.get(entry.key_id)
        if public is None:
            text = f"entry {entry.seq} is signed with the key {entry.key_id}, which is not trusted"
            return Finding(entry.seq, Kind.KEY, text)
        message = signing.entry_statement(chain=entry.chain, seq=entry.seq, hash=entry.hash)
        if not signing.holds(public, message, entry.signature):
            return Finding(entry.seq, Kind.SIGNATURE, f"the signature of entry {entry.seq} does not hold")
        return None

    def _ends(self) -> Iterator[Finding]:
        last, after = self.seq - 1, selectors.chain_heads().get(self.chain)
        beyond = self.evidence.newest
        if (self.before is not None and self.before.seq > last) or beyond > last:
            end = max(beyond, self.before.seq if self.before is not None else 0)
            kind = Kind.CUT if self.checked or self.before is not None else Kind.EMPTIED
            yield Finding(last + 1, kind, f"the chain ends before its head: it is known up to entry {end}")
        elif after is None and last > 0:
            yield Finding(last, Kind.HEAD_MISSING, f"its head is missing; the newest entry is {last}")
        elif after is not None and after.seq < last:
            yield Finding(after.seq, Kind.HEAD_BACK, f"its head is at entry {after.seq}; the chain goes on to {last}")
        elif self.before is not None and self.hash_at_head != self.before.hash:
            text = f"its head holds another hash than entry {self.before.seq}"
            yield Finding(self.before.seq, Kind.HEAD_BACK, text)
