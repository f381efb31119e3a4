#!/usr/bin/env python3
"""Verify an audit log of TideSched without TideSched: needs Python 3.11 and the package `cryptography`, nothing else.

    verify_audit.py BUNDLE --key HEX [--key HEX …] [--heads FILE] [--segment FILE …]

BUNDLE is what `manage.py audit bundle` or /api/v1/audit/bundle/ gave, or an export of the audit log (`?format=ndjson`),
whole or filtered. HEX is the public key that was noted when the installation was new; FILE of --heads is a head file
that was kept elsewhere. Exit status 0: all holds; 1: each line names chain, entry, kind and what is wrong; 2: the input
cannot be read. The kinds, and what can and cannot be shown, are in docs/audit.md.
"""

import argparse
import base64
import datetime as dt
import hashlib
import json
import sys
from collections import defaultdict

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

COLUMNS = (
    "at", "prev_hash", "actor", "action", "object_type", "object_id", "object_label", "cluster_id", "tenant_ids",
    "request_id", "address", "reason", "before", "after",
)  # fmt: skip
COLUMNS_2 = (*COLUMNS, "id", "actor_kind", "actor_id")
# Entries of earlier recipes lack them, and their columns are empty.
COLUMNS_3 = ("actor_issuer", "actor_subject")
# The export of the log calls two of them otherwise, and writes the time otherwise.
EXPORTED = {"cluster_id": "cluster", "tenant_ids": "tenants"}
HEAD_EVERY = dt.timedelta(hours=2)


class Unreadable(Exception):
    """The input is not what it should be."""


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def parsed(data):
    """The object in these bytes; empty where there is none, or where a member is there twice."""

    def once(pairs):
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a member is there twice")
        return found

    try:
        found = json.loads(data, object_pairs_hook=once)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def raw(row, name):
    """The bytes of a column."""
    if name + "_base64" in row:
        return base64.b64decode(row[name + "_base64"])
    return (row.get(name) or "").encode()


def canonical(document):
    """RFC 8785 of a statement: text and whole numbers only."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def holds(public, data, signature):
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), data)
    except (InvalidSignature, ValueError):
        return False
    return True


def key_id(public):
    return sha256(bytes.fromhex(public))[:16]


def trusted_keys(pinned, rows):
    """The pinned keys, and those that a trusted one has endorsed."""
    trusted = {key_id(public): public for public in pinned}
    for row in sorted(rows, key=lambda row: row["number"]):
        by, said = trusted.get(row["endorsed_by"]), raw(row, "endorsement")
        facts = parsed(said)
        same = (facts.get("kind"), facts.get("number"), facts.get("public_key")) == (
            "key", row["number"], row["public_key"],
        )  # fmt: skip
        if by and same and holds(by, said, row["endorsement_signature"]):
            trusted[key_id(row["public_key"])] = row["public_key"]
    return trusted


def moment(text):
    return dt.datetime.fromisoformat(text)


def entry_problem(row, keys, *, early_until, exported=False):
    """(kind, text) of what is wrong with one entry by itself, or None."""
    data, seq = raw(row, "payload"), row["seq"]
    if sha256(data) != row["hash"]:
        return "bytes", f"the bytes of entry {seq} do not give its hash"
    said = parsed(data)
    if said.get("chain") != row["chain"]:
        return "foreign", f"entry {seq} is an entry of the chain {said.get('chain')!r}"
    if said.get("seq") != seq:
        return "moved", f"entry {seq} is entry {said.get('seq')} by its bytes: it was moved"
    for name in (*(COLUMNS if said.get("recipe") == 1 else COLUMNS_2), *COLUMNS_3):
        before = "" if name in COLUMNS_3 else None
        column = row.get(EXPORTED.get(name, name) if exported else name, before)
        same = moment(column) == moment(said["at"]) if name == "at" else column == said.get(name, before)
        if not same:
            return "column", f"column {name} of entry {seq} says something else than the bytes"
    if not row["signature"]:
        if said.get("recipe") == 1 and seq <= early_until:
            return None
        return "unsigned", f"entry {seq} is not signed"
    if row["key_id"] not in keys:
        return "key", f"entry {seq} is signed with the key {row['key_id']}, which is not trusted"
    statement = {"recipe": 2, "kind": "entry", "chain": row["chain"], "seq": seq, "hash": row["hash"]}
    if not holds(keys[row["key_id"]], canonical(statement), row["signature"]):
        return "signature", f"the signature of entry {seq} does not hold"
    return None


class Chain:
    """One chain: what was signed of it, and its entries as they come."""

    def __init__(self, name, keys, newest_head_at):
        self.name, self.keys, self.newest_head_at = name, keys, newest_head_at
        self.head, self.end, self.heads, self.outside, self.segments = None, None, [], [], []
        self.findings, self.checked, self.heads_said, self.signed = [], 0, 0, False
        self.late = None

    def found(self, seq, kind, text):
        self.findings.append((seq, kind, text))

    def begin(self):
        """Everything before the entries: the segments that left, and where the walk starts."""
        self.seq, self.prev, self.halted = 1, "", False
        for row in self.outside:
            if row["key_id"] not in self.keys:
                self.found(row["seq"], "key", f"the head file is signed with the key {row['key_id']}: not trusted")
            elif not holds(self.keys[row["key_id"]], raw(row, "statement"), row["signature"]):
                self.found(row["seq"], "signature", f"the signature in the head file at entry {row['seq']} fails")
        for row in sorted(self.segments, key=lambda row: row["first_seq"]):
            if not self.segment(row):
                break
        self.early_until = max((row["seq"] for row in self.heads if row["said"].get("recipe") == 1), default=0)
        self.head_at = {row["seq"]: row for row in self.heads}
        self.outside_at = {row["seq"]: row for row in self.outside}
        self.segment_at = {row["last_seq"]: row for row in self.segments}
        self.first = self.seq
        self.hash_at_head = self.prev if self.head and self.head["seq"] == self.seq - 1 else None

    def segment(self, row):
        first, name = row["first_seq"], f"the segment {self.name}#{row['first_seq']}-{row['last_seq']}"
        said = parsed(raw(row, "statement"))
        columns = ("chain", "first_seq", "last_seq", "prev_hash", "last_hash", "sha256")
        if row["key_id"] not in self.keys:
            return self.found(first, "segment", f"{name} is signed with the key {row['key_id']}: not trusted")
        if not holds(self.keys[row["key_id"]], raw(row, "statement"), row["signature"]):
            return self.found(first, "segment", f"the signature of {name} does not hold")
        if said.get("kind") != "segment" or any(said.get(column) != row[column] for column in columns):
            return self.found(first, "segment", f"{name} says something else than what was signed")
        if row["dropped_at"] is None:
            return True
        for verb in ("export", "drop"):
            mark = parsed(raw(row, verb + "_statement"))
            key = self.keys.get(mark.get("key_id"))
            same = (mark.get("kind"), mark.get("chain"), mark.get("sha256"), mark.get("last_seq")) == (
                verb, self.name, row["sha256"], row["last_seq"],
            )  # fmt: skip
            if not (key and same and holds(key, raw(row, verb + "_statement"), row[verb + "_signature"])):
                text = f"{name} was dropped, and no signature says that it was exported"
                return self.found(first, "not_exported", text)
        if (first, row["prev_hash"]) != (self.seq, self.prev):
            return self.found(first, "segment", f"{name} does not follow what was dropped before it")
        self.seq, self.prev = row["last_seq"] + 1, row["last_hash"]
        return True

    def entries(self, rows):
        """The entries at one place; more than one is one too many."""
        seq = rows[0]["seq"]
        if self.halted or seq < self.first:
            return
        problem = next((p for row in rows if (p := entry_problem(row, self.keys, early_until=self.early_until))), None)
        if problem and problem[0] in ("bytes", "foreign", "moved"):
            self.found(seq, *problem)
        elif len(rows) > 1:
            self.found(seq, "added", f"there are {len(rows)} entries {seq}")
        elif seq != self.seq:
            self.found(self.seq, "missing", f"entry {self.seq} is missing")
        elif rows[0]["prev_hash"] != self.prev:
            self.found(seq, "link", f"entry {seq} does not follow the entry before it")
        elif problem:
            self.found(seq, *problem)
        elif self.signed and not rows[0]["signature"]:
            self.found(seq, "unsigned", f"entry {seq} is not signed, though earlier ones are")
        else:
            self.step(rows[0])
            return
        self.halted = True

    def step(self, row):
        seq, digest = row["seq"], row["hash"]
        self.checked, self.seq, self.prev = self.checked + 1, seq + 1, digest
        if self.head and self.head["seq"] == seq:
            self.hash_at_head = digest
        self.signed = self.signed or bool(row["signature"])
        said = parsed(raw(row, "payload"))
        self.heads_said = max(self.heads_said, said.get("heads", 0))
        newest = max(self.head_at, default=0)
        if seq > newest and self.late is None and moment(row["at"]) < self.newest_head_at - HEAD_EVERY:
            self.late = seq
        if head := self.head_at.get(seq):
            statement = raw(head, "statement")
            if head["key_id"] not in self.keys:
                self.found(seq, "key", f"the signed head at entry {seq} is of a key that is not trusted")
            elif not holds(self.keys[head["key_id"]], statement, head["signature"]):
                self.found(seq, "signature", f"the signature of the signed head at entry {seq} does not hold")
            elif [head["said"].get(n) for n in ("kind", "chain", "seq", "hash")] != ["head", self.name, seq, digest]:
                self.found(seq, "rewritten", f"the signed head at entry {seq} says something else")
        if (outside := self.outside_at.get(seq)) and outside["said"].get("hash") != digest:
            self.found(seq, "rewritten", f"the head file says something else of entry {seq}: written anew")
        if (segment := self.segment_at.get(seq)) and segment["last_hash"] != digest:
            self.found(seq, "segment", f"a segment ends with another hash than entry {seq}")
        self.halted = bool(self.findings)

    def finish(self):
        """Everything after the entries: does the chain end where it is known to end, are all heads there."""
        if self.halted:
            return
        last = self.seq - 1
        known = [0, *self.head_at, *self.outside_at, *self.segment_at]
        if (self.head and self.head["seq"] > last) or max(known) > last:
            kind = "cut" if self.checked or self.head else "emptied"
            self.found(last + 1, kind, f"the chain ends before its head: it is known up to entry {max(known)}")
        elif self.end is None and last:
            self.found(last, "head_missing", f"its head is missing; the newest entry is {last}")
        elif self.end and self.end["seq"] < last:
            self.found(self.end["seq"], "head_back", f"its head is at {self.end['seq']}; the chain goes on to {last}")
        elif self.head and self.hash_at_head != self.head["hash"]:
            self.found(self.head["seq"], "head_back", f"its head holds another hash than entry {self.head['seq']}")
        elif not (last or self.head):
            self.found(1, "emptied", "nothing is left of it")
        self.count_heads()

    def count_heads(self):
        number, digest = 0, ""
        for row in self.heads:
            if row["said"].get("recipe") != 1:
                if (row["said"].get("number"), row["said"].get("prev")) != (number + 1, digest):
                    self.found(row["seq"], "heads_missing", f"signed heads before the one at {row['seq']} are missing")
                    return
                number += 1
            digest = sha256(raw(row, "statement"))
        before, after = ((row or {}).get("heads", 0) for row in (self.head, self.end))
        newest, known = max(self.head_at, default=0), {row["statement"] for row in self.heads}
        gone = [row["seq"] for row in self.outside if row["statement"] not in known]
        if max(self.heads_said, after) > number + max(0, after - before):
            self.found(newest, "heads_missing", f"{max(self.heads_said, after)} heads were signed, {number} are there")
        elif self.head and before < number:
            self.found(self.head["seq"], "head_back", f"its head counts {before} signed heads; {number} are there")
        elif gone:
            self.found(gone[0], "heads_missing", f"the head file knows a signed head at entry {gone[0]}: it is missing")
        elif self.late is not None:
            self.found(self.late, "heads_missing", f"no head was signed for the hour of entry {self.late}")


def lines_of(path):
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123 - the file may be a pipe
            for text in file:
                if text.strip():
                    yield json.loads(text)
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: {error}") from None


def verify_bundle(path, pinned, head_file, segment_files):
    """Findings by chain, and how many entries of each hold."""
    tables, ends, chains, group, current = defaultdict(list), {}, {}, [], None

    def settle():
        if group:
            chains[group[0]["chain"]].entries(group)
            group.clear()

    def begin():
        keys = trusted_keys(pinned, tables["key"])
        for row in tables["signed_head"]:
            row["said"] = parsed(raw(row, "statement"))
        newest = max((moment(row["at"]) for row in tables["signed_head"]), default=None)
        newest = newest or dt.datetime.min.replace(tzinfo=dt.UTC) + HEAD_EVERY
        outside = list(lines_of(head_file)) if head_file else []
        for row in outside:
            row["said"] = parsed(row["statement"].encode())
        named = {row["chain"] for name in ("head", "signed_head", "segment") for row in tables[name]}
        for name in named | {row["chain"] for row in outside}:
            chain = chains[name] = Chain(name, keys, newest)
            chain.head = next((row for row in tables["head"] if row["chain"] == name), None)
            chain.heads = [row for row in tables["signed_head"] if row["chain"] == name]
            chain.segments = [row for row in tables["segment"] if row["chain"] == name]
            chain.outside = [row for row in outside if row["chain"] == name]
            chain.begin()
        digests = {row["sha256"] for row in tables["segment"]}
        for file in segment_files:
            with open(file, "rb") as opened:  # noqa: PTH123 - as above
                if hashlib.file_digest(opened, "sha256").hexdigest() not in digests:
                    raise Unreadable(f"{file} is the file of none of the segments")
        return keys, newest

    for row in lines_of(path):
        table = row.get("table")
        if table == "end":
            ends[row["chain"]] = row
        elif table != "entry":
            tables[table].append(row)
        else:
            current = current or begin()
            if row["chain"] not in chains:  # a chain of which nothing else is left
                chains[row["chain"]] = Chain(row["chain"], *current)
                chains[row["chain"]].begin()
            if group and (group[0]["chain"], group[0]["seq"]) != (row["chain"], row["seq"]):
                settle()
            group.append(row)
    current = current or begin()
    settle()
    for name, chain in chains.items():
        chain.end = ends.get(name)
        chain.finish()
    if not chains:
        chains["platform"] = Chain("platform", *current)
        chains["platform"].found(1, "emptied", "nothing is left of the audit log")
    return chains


def verify_export(path, pinned):
    """An export, whole or filtered: each entry by itself, and its link where the one before it is there too."""
    keys, ends, problems, count, gaps = {key_id(public): public for public in pinned}, {}, [], 0, 0
    for row in lines_of(path):
        if row.get("payload") is None:
            raise Unreadable(f"{path}: entries without bytes; an export by an account that sees everything has them")
        count += 1
        problem = entry_problem(row, keys, early_until=row["seq"], exported=True)
        seq, digest = ends.get(row["chain"], (row["seq"] - 1, row["prev_hash"]))
        if problem is None and row["seq"] == seq + 1 and row["prev_hash"] != digest:
            problem = "link", f"entry {row['seq']} does not follow the entry before it"
        gaps += row["seq"] != seq + 1
        if problem:
            problems.append((row["chain"], row["seq"], *problem))
        ends[row["chain"]] = (row["seq"], row["hash"])
    return count, gaps, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("--key", action="append", required=True, help="a public key that you trust, in hexadecimal")
    parser.add_argument("--heads", help="a head file that was kept elsewhere")
    parser.add_argument("--segment", action="append", default=[], help="the file of a segment that left the log")
    options = parser.parse_args()
    try:
        first = next(lines_of(options.bundle), {"table": "none"})
        if "table" not in first:
            count, gaps, problems = verify_export(options.bundle, options.key)
            for chain, seq, kind, text in problems:
                print(f"{chain}: broken at entry {seq} ({kind}): {text}")
            print(f"{count} entries were read, {len(problems)} do not hold; {gaps} places lack the entry before them.")
            print("An export shows whether the entries that it holds are genuine, not whether others are missing.")
            return 1 if problems else 0
        chains = verify_bundle(options.bundle, options.key, options.heads, options.segment)
    except (Unreadable, OSError, KeyError, TypeError, ValueError) as error:
        print(f"cannot be read: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    for name, chain in sorted(chains.items()):
        for seq, kind, text in chain.findings:
            print(f"{name}: broken at entry {seq} ({kind}): {text}")
        if not chain.findings:
            print(f"{name}: {chain.checked} entries hold from {chain.first} on, the last hash is {chain.prev}")
    return 1 if any(chain.findings for chain in chains.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
