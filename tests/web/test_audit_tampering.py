"""Nineteen ways to tamper with the audit log, each made on a copy with all rights over the database.

`audit verify` and the single-file verifier, given the head file and the first public key, both name chain, place and
kind of each, and accept untouched copies.
"""

import importlib.util
import json
import os
import random
from collections.abc import Callable
from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import connection, transaction
from django.utils import timezone

from tests.web.audit_copies import VERIFIER, Clock, Outside, built, by_command, by_outsider, named
from tidesched_web.audit.canonical import canonical_bytes, digest
from tidesched_web.audit.models import AuditEntry, AuditHead, Segment, SignedHead, SigningKey

pytestmark = pytest.mark.django_db
LEFT, CHAIN, OTHER = "cluster:1", "cluster:2", "cluster:3"
COPIES = int(os.environ.get("AUDIT_COPIES", "20"))


class Forger:
    """A person with all rights over the database, a key of their own, and no key of the installation."""

    def __init__(self) -> None:
        self.private = Ed25519PrivateKey.generate()
        self.public = self.private.public_key().public_bytes_raw().hex()
        self.key_id = sha256(bytes.fromhex(self.public)).hexdigest()[:16]
        self.count = AuditEntry.objects.filter(chain=CHAIN).count()
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")  # no trigger fires

    def sql(self, statement: str, *values: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement, values)

    def entry(self, seq: int, chain: str = CHAIN) -> AuditEntry:
        return AuditEntry.objects.get(chain=chain, seq=seq)

    def sign(self, document: dict[str, object]) -> tuple[bytes, str]:
        said = canonical_bytes(document)
        return said, self.private.sign(said).hex()

    def insert_key(self) -> None:
        number = SigningKey.objects.count() + 1
        SigningKey.objects.create(
            number=number, key_id=self.key_id, public_key=self.public, private_key=b"gAAAA", encrypted_with="x"
        )

    def rewrite(self, row: AuditEntry, prev: str, *, signed: bool, **changes: object) -> str:
        """The row with other words, and everything beside them to fit."""
        said = json.loads(bytes(row.payload)) | {"prev_hash": prev} | changes
        row.payload = canonical_bytes(said)
        row.prev_hash, row.hash = prev, digest(row.payload)
        for name, value in changes.items():
            setattr(row, name, value)
        if signed:
            facts = {"recipe": 2, "kind": "entry", "chain": row.chain, "seq": row.seq, "hash": row.hash}
            row.key_id, row.signature = self.key_id, self.sign(facts)[1]
        row.save()
        return row.hash

    def set_head(self, seq: int, chain: str = CHAIN) -> None:
        heads = SignedHead.objects.filter(chain=chain).count()
        AuditHead.objects.filter(chain=chain).update(seq=seq, hash=self.entry(seq, chain).hash, heads=heads)


def field_edited(forger: Forger) -> tuple[int, str]:
    row = forger.entry(4)
    row.payload = bytes(row.payload).replace(b'"object_type":"queue"', b'"object_type":"quota"')
    row.save()
    return 4, "bytes"


def field_edited_with_its_hash(forger: Forger) -> tuple[int, str]:
    forger.rewrite(forger.entry(4), forger.entry(3).hash, signed=False, object_type="quota")
    return 4, "signature"


def column_edited(forger: Forger) -> tuple[int, str]:
    forger.sql("UPDATE audit_auditentry SET actor_id = '8' WHERE chain = %s AND seq = 5", CHAIN)
    return 5, "column"


def issuer_edited(forger: Forger) -> tuple[int, str]:
    forger.sql("UPDATE audit_auditentry SET actor_issuer = 'https://b.example' WHERE chain = %s AND seq = 5", CHAIN)
    return 5, "column"


def number_edited(forger: Forger) -> tuple[int, str]:
    forger.sql("UPDATE audit_auditentry SET id = id + 100000 WHERE chain = %s AND seq = 5", CHAIN)
    return 5, "column"


def deleted(seq: int) -> Callable[[Forger], tuple[int, str]]:
    def delete(forger: Forger) -> tuple[int, str]:
        place = seq if seq > 0 else forger.count
        forger.sql("DELETE FROM audit_auditentry WHERE chain = %s AND seq = %s", CHAIN, place)
        return place, "cut" if seq < 0 else "missing"

    return delete


def inserted(forger: Forger) -> tuple[int, str]:
    row = forger.entry(6)
    row.pk = None
    forger.rewrite(row, row.prev_hash, signed=True, reason="added later")
    return 6, "added"


def inserted_and_all_later_ones_moved_on(forger: Forger) -> tuple[int, str]:
    rows = list(AuditEntry.objects.filter(chain=CHAIN, seq__gte=6).order_by("-seq"))
    forger.insert_key()
    for row in rows:
        row.seq += 1
        row.save()
    new = forger.entry(5)
    new_id = new.pk + 100_000
    new.pk, prev = None, new.hash
    prev = forger.rewrite(new, prev, signed=True, seq=6, reason="added later", id=new_id)
    for row in AuditEntry.objects.filter(chain=CHAIN, seq__gte=7).order_by("seq"):
        prev = forger.rewrite(row, prev, signed=True, seq=row.seq)
    forger.set_head(forger.count + 1)
    return 6, "key"


def swapped(forger: Forger) -> tuple[int, str]:
    one, two = forger.entry(3), forger.entry(4)
    one.seq, two.seq = 4, 3
    one.save()
    two.save()
    return 3, "moved"


def copied_to_another_chain(forger: Forger) -> tuple[int, str]:
    row = AuditEntry.objects.filter(chain=OTHER).order_by("-seq").first()
    row.pk, row.chain, row.seq = None, CHAIN, forger.count + 1
    row.save()
    forger.set_head(forger.count + 1)
    return forger.count + 1, "foreign"


def tail_cut(forger: Forger) -> tuple[int, str]:
    place = SignedHead.objects.filter(chain=CHAIN).order_by("id")[1].seq
    forger.sql("DELETE FROM audit_auditentry WHERE chain = %s AND seq > %s", CHAIN, place)
    return place + 1, "cut"


def tail_cut_with_its_heads(forger: Forger) -> tuple[int, str]:
    place, kind = tail_cut(forger)
    SignedHead.objects.filter(chain=CHAIN, seq__gte=place).delete()
    Segment.objects.filter(chain=CHAIN, last_seq__gte=place).delete()
    forger.set_head(place - 1)
    return place, kind


def head_row_deleted(forger: Forger) -> tuple[int, str]:
    AuditHead.objects.filter(chain=CHAIN).delete()
    return forger.count, "head_missing"


def signed_head_deleted(forger: Forger) -> tuple[int, str]:
    heads = list(SignedHead.objects.filter(chain=CHAIN).order_by("id"))
    heads[1].delete()
    return heads[2].seq, "heads_missing"


def head_row_set_back(forger: Forger) -> tuple[int, str]:
    forger.set_head(forger.count - 1)
    return forger.count - 1, "head_back"


def signature_replaced(forger: Forger) -> tuple[int, str]:
    AuditEntry.objects.filter(chain=CHAIN, seq=2).update(signature=forger.entry(3).signature)
    return 2, "signature"


def signature_of_a_head_replaced(forger: Forger) -> tuple[int, str]:
    one, two = SignedHead.objects.filter(chain=CHAIN).order_by("id")[:2]
    SignedHead.objects.filter(pk=one.pk).update(signature=two.signature)
    return one.seq, "signature"


def signatures_of_hours_deleted(forger: Forger) -> tuple[int, str]:
    heads = list(SignedHead.objects.filter(chain=CHAIN).order_by("id"))
    SignedHead.objects.filter(pk__in=[heads[1].pk, heads[2].pk]).delete()
    return heads[3].seq, "heads_missing"


def signatures_of_the_last_hours_deleted(forger: Forger) -> tuple[int, str]:
    heads = list(SignedHead.objects.filter(chain=CHAIN).order_by("id"))
    SignedHead.objects.filter(pk__in=[head.pk for head in heads[2:]]).delete()
    forger.set_head(forger.count)
    return heads[1].seq, "heads_missing"


def signatures_of_the_entries_of_an_hour_deleted(forger: Forger) -> tuple[int, str]:
    AuditEntry.objects.filter(chain=CHAIN, seq__gte=3, seq__lte=5).update(signature="", key_id="")
    return 3, "unsigned"


def rewritten_and_signed_with_an_inserted_key(forger: Forger) -> tuple[int, str]:
    forger.insert_key()
    prev = ""
    for row in AuditEntry.objects.filter(chain=CHAIN).order_by("seq"):
        prev = forger.rewrite(row, prev, signed=True, actor="mallory")
    digest_before = ""
    for head in SignedHead.objects.filter(chain=CHAIN).order_by("id"):
        facts = json.loads(bytes(head.statement)) | {"hash": forger.entry(head.seq).hash, "prev": digest_before}
        head.statement, head.signature = forger.sign(facts)
        head.key_id, head.hash = forger.key_id, facts["hash"]
        head.save()
        digest_before = sha256(head.statement).hexdigest()
    Segment.objects.filter(chain=CHAIN).delete()
    forger.set_head(forger.count)
    return 1, "key"


def rewritten_as_if_before_signatures(forger: Forger) -> tuple[int, str]:
    prev = ""
    for row in AuditEntry.objects.filter(chain=CHAIN).order_by("seq"):
        row.signature = row.key_id = ""
        prev = forger.rewrite(row, prev, signed=False, actor="mallory", recipe=1)
    SignedHead.objects.filter(chain=CHAIN).delete()
    Segment.objects.filter(chain=CHAIN).delete()
    forger.set_head(forger.count)
    return 1, "unsigned"


def forged_segment(forger: Forger) -> tuple[int, str]:
    Segment.objects.filter(chain=CHAIN).delete()
    forger.insert_key()
    rows = list(AuditEntry.objects.filter(chain=CHAIN, seq__lte=3).order_by("seq"))
    now = timezone.now()
    facts = {
        "chain": CHAIN, "first_seq": 1, "last_seq": 3, "prev_hash": "", "last_hash": rows[-1].hash, "sha256": "0" * 64,
    }  # fmt: skip
    said, signature = forger.sign({"recipe": 2, "kind": "segment", **facts, "at": "2026-03-01T12:00:00.000000Z"})
    marks = {}
    for verb in ("export", "drop"):
        mark = {name: facts[name] for name in ("chain", "first_seq", "last_seq", "sha256")}
        mark |= {"recipe": 2, "kind": verb, "key_id": forger.key_id}
        marks[f"{verb}_statement"], marks[f"{verb}_signature"] = forger.sign(mark)
    Segment.objects.create(
        **facts, **marks, first_at=now, last_at=now, size=1, key_id=forger.key_id, statement=said, signature=signature,
        sealed_at=now, sealed_by="ann", exported_at=now, dropped_at=now, purged_at=now,
    )  # fmt: skip
    AuditEntry.objects.filter(chain=CHAIN, seq__lte=3).delete()
    return 1, "segment"


def segment_dropped_without_export(forger: Forger) -> tuple[int, str]:
    segment = Segment.objects.get(chain=CHAIN)
    now = timezone.now()
    Segment.objects.filter(pk=segment.pk).update(
        exported_at=now, exported_by="ann", dropped_at=now, dropped_by="ann", purged_at=now
    )
    AuditEntry.objects.filter(chain=CHAIN, seq__lte=segment.last_seq).delete()
    return 1, "not_exported"


def forged_after_the_newest_head(forger: Forger) -> tuple[int, str]:
    forger.insert_key()
    last = forger.entry(forger.count)
    last.pk, last.seq = last.pk + 1000, last.seq + 1
    forger.rewrite(last, last.hash, signed=True, seq=last.seq, id=last.pk, reason="never happened")
    forger.set_head(forger.count + 1)
    return forger.count + 1, "key"


def all_tables_emptied(forger: Forger) -> tuple[int, str]:
    for model in (AuditEntry, AuditHead, SignedHead, Segment, SigningKey):
        model.objects.all().delete()
    return 1, "emptied"


# The nineteen, each in the ways in which it may be done.
TAMPERINGS: dict[str, list[Callable[[Forger], tuple[int, str]]]] = {
    "a hashed field edited": [field_edited, field_edited_with_its_hash],
    "a column beside the bytes edited": [column_edited, issuer_edited, number_edited],
    "the first entry deleted": [deleted(1)],
    "a middle entry deleted": [deleted(5)],
    "the last entry deleted": [deleted(-1)],
    "one inserted": [inserted, inserted_and_all_later_ones_moved_on],
    "two swapped": [swapped],
    "one copied to another chain": [copied_to_another_chain],
    "the tail cut with its heads": [tail_cut_with_its_heads],
    "the tail cut without its heads": [tail_cut],
    "a head row deleted": [head_row_deleted, signed_head_deleted],
    "a head row set back": [head_row_set_back],
    "a signature replaced": [signature_replaced, signature_of_a_head_replaced],
    "the signatures of some hours deleted": [
        signatures_of_hours_deleted,
        signatures_of_the_last_hours_deleted,
        signatures_of_the_entries_of_an_hour_deleted,
    ],
    "everything rewritten and signed with an inserted key": [
        rewritten_and_signed_with_an_inserted_key,
        rewritten_as_if_before_signatures,
    ],
    "a forged segment over the first entries": [forged_segment],
    "a segment dropped without export": [segment_dropped_without_export],
    "entries forged after the newest head": [forged_after_the_newest_head],
    "all audit tables emptied": [all_tables_emptied],
}


@pytest.fixture
def outside(monkeypatch, tmp_path) -> Outside:
    clock = Clock(monkeypatch)
    return built(clock, tmp_path, random.Random(7), chains=(LEFT, CHAIN, OTHER), hours=6, most=4)


def test_each_of_the_nineteen_tamperings_is_named_by_both_verifiers(outside, tmp_path):
    assert len(TAMPERINGS) == 19
    assert by_command(outside)[0] == by_outsider(outside, tmp_path)[0] == 0
    wrong = []
    for name, ways in TAMPERINGS.items():
        for way in ways:
            with transaction.atomic():  # the copy
                place = (CHAIN, *way(Forger()))
                for verifier, (status, said) in {
                    "audit verify": by_command(outside),
                    "the single file": by_outsider(outside, tmp_path),
                }.items():
                    if status != 1 or place not in named(said):
                        wrong.append(f"{name} ({way.__name__}), {verifier}: wanted {place}, status {status}:\n{said}")
                    elif name != "all audit tables emptied" and {found[0] for found in named(said)} != {CHAIN}:
                        wrong.append(f"{name} ({way.__name__}), {verifier}: other chains too:\n{said}")
                transaction.set_rollback(True)
    assert wrong == [], "\n".join(wrong)


def test_without_the_head_file_and_the_pin_the_installation_itself_finds_all_but_what_only_they_can_show(outside):
    """Its own keys are those that TIDESCHED_KEYS can decrypt; a cut with all its heads needs the head file."""
    from tidesched_web.audit.verification import verify_all

    unseen = []
    for ways in TAMPERINGS.values():
        for way in ways:
            with transaction.atomic():
                way(Forger())
                if all(report.intact for report in verify_all()) and AuditEntry.objects.exists():
                    unseen.append(way.__name__)
                transaction.set_rollback(True)
    assert unseen == ["tail_cut_with_its_heads"]


def test_copies_that_nobody_touched_are_accepted(monkeypatch, tmp_path, capsys):
    spec = importlib.util.spec_from_file_location("verify_audit", VERIFIER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    from tidesched_web.audit import bundle

    refused = []
    for seed in range(COPIES):
        rng = random.Random(seed)
        with transaction.atomic():
            some = tuple(f"cluster:{number}" for number in range(1, rng.randrange(2, 5)))
            kept = built(Clock(monkeypatch), tmp_path, rng, chains=some, hours=rng.randrange(2, 7), most=4)
            path = tmp_path / "bundle.ndjson"
            path.write_bytes(b"".join(bundle.pages()))
            status, said = by_command(kept)
            chains = module.verify_bundle(path, [kept.key], kept.heads, [])
            findings = [chain.findings for chain in chains.values() if chain.findings]
            if status or findings or len(chains) != len(some) + 1:
                refused.append((seed, said, findings))
            transaction.set_rollback(True)
    assert refused == []
