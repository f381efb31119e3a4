"""Signed heads and sealed segments: who writes a chain anew is found, and what was dropped leaves a signed anchor."""

import datetime as dt
import hashlib
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.utils import timezone

from tests.web.test_audit import entry
from tidesched_web.audit import check_services, segment_services, signing_services
from tidesched_web.audit.canonical import canonical_bytes, digest
from tidesched_web.audit.findings import Kind
from tidesched_web.audit.models import AuditEntry, AuditHead, ChainCheck, Segment, SignedHead, SigningKey
from tidesched_web.audit.verification import verify_chain
from tidesched_web.common.errors import DomainError
from tidesched_web.scheduling.pipeline import audit_alerts

pytestmark = pytest.mark.django_db
CHAIN = "cluster:7"


@pytest.fixture(autouse=True)
def _entries_are_old_enough(monkeypatch):
    monkeypatch.setattr(segment_services, "YOUNGEST", dt.timedelta(0))


def sealed(count=3):
    for number in range(1, count + 1):
        entry(number, after={"weight": number})
    (made,) = segment_services.seal(before=timezone.now(), actor="ann")
    return made


def written_anew(chain):
    """What a person with full access to the database does: another story with hashes that fit."""
    prev = ""
    for row in AuditEntry.objects.filter(chain=chain).order_by("seq"):
        said = json.loads(bytes(row.payload)) | {"actor": "somebody else", "prev_hash": prev}
        row.payload = canonical_bytes(said)
        row.actor, row.prev_hash, row.hash = "somebody else", prev, digest(row.payload)
        row.save()
        prev = row.hash
    AuditHead.objects.filter(chain=chain).update(hash=prev)


def test_a_chain_written_anew_contradicts_its_signed_head():
    for number in range(3):
        entry(number)
    assert [head.seq for head in signing_services.sign_heads()] == [3]
    assert (verify_chain(CHAIN).intact, verify_chain(CHAIN).signatures) == (True, 4)
    written_anew(CHAIN)
    report = verify_chain(CHAIN)
    assert (report.broken_seq, report.kind) == (1, Kind.SIGNATURE), "each entry is signed"


def test_a_chain_cut_behind_its_signed_head_is_found():
    for number in range(3):
        entry(number)
    signing_services.sign_heads()
    AuditEntry.objects.filter(seq=3).delete()
    last = AuditEntry.objects.get(seq=2)
    AuditHead.objects.update(seq=2, hash=last.hash)
    assert (verify_chain(CHAIN).broken_seq, verify_chain(CHAIN).kind) == (3, Kind.CUT)


def test_a_forged_signature_does_not_hold():
    entry()
    signing_services.sign_heads()
    SignedHead.objects.update(signature="00" * 64)
    assert verify_chain(CHAIN).problem == "the signature of the signed head at entry 1 does not hold"
    SignedHead.objects.update(key_id="0" * 16)
    assert verify_chain(CHAIN).kind == Kind.KEY


def test_heads_are_signed_once_an_hour_and_only_when_they_moved(caplog):
    entry()
    with caplog.at_level("INFO"):
        (first,) = signing_services.sign_heads()
    assert f"signature {first.signature}" in caplog.text, "a shipped log has it too"
    entry(2)
    assert signing_services.sign_heads() == [], "not yet an hour"
    SignedHead.objects.update(at=timezone.now() - dt.timedelta(hours=2))
    assert [head.seq for head in signing_services.sign_heads()] == [2]
    SignedHead.objects.update(at=timezone.now() - dt.timedelta(hours=2))
    assert signing_services.sign_heads() == [], "it did not move"
    assert not SigningKey.objects.filter(private_key__contains=b"\x00" * 32).exists()


def test_an_old_key_goes_on_verifying_what_it_signed():
    entry()
    signing_services.sign_heads()
    old = SigningKey.objects.get().key_id
    new = signing_services.new_signing_key(actor="ann", reason="yearly")
    entry(2)
    signing_services.sign_heads(at_once=True)
    assert {head.key_id for head in SignedHead.objects.filter(chain=CHAIN)} == {old, new.key_id}
    assert verify_chain(CHAIN).intact
    assert AuditEntry.objects.filter(action="audit.new_key", actor="ann", reason="yearly").count() == 1


def test_a_dropped_segment_leaves_a_signed_anchor():
    first = sealed()
    entry(4)
    with pytest.raises(DomainError, match="never exported"):
        segment_services.drop(segment=first, actor="ann", reason="kept elsewhere")
    text = b"".join(segment_services.segment_lines(first))
    assert hashlib.sha256(text).hexdigest() == first.sha256
    assert segment_services.mark_exported(segment=first, actor="ann")
    assert not segment_services.mark_exported(segment=first, actor="ann")
    with pytest.raises(DomainError, match="Say why"):
        segment_services.drop(segment=first, actor="ann", reason=" ")
    segment_services.drop(segment=first, actor="ann", reason="kept elsewhere")
    assert segment_services.purge() == 3
    assert segment_services.purge() == 0
    report = verify_chain(CHAIN)
    assert (report.intact, report.checked, report.first_seq) == (True, 1, 4)
    assert AuditEntry.objects.filter(action__startswith="audit.").count() == 3
    with pytest.raises(DomainError, match="was dropped"):
        segment_services.segment_lines(Segment.objects.get(pk=first.pk))
    Segment.objects.filter(pk=first.pk).update(last_hash="0" * 64)
    assert verify_chain(CHAIN).kind == Kind.SEGMENT


def test_entries_that_go_without_a_segment_are_missing():
    for number in range(1, 5):
        entry(number)
    AuditEntry.objects.filter(seq__lte=2).delete()
    report = verify_chain(CHAIN)
    assert (report.broken_seq, report.problem) == (1, "entry 1 is missing")


def test_segments_go_in_order_and_hold_what_was_not_sealed_before():
    first = sealed(2)
    entry(3)
    second = next(s for s in segment_services.seal(before=timezone.now(), actor="ann") if s.chain == CHAIN)
    assert (second.first_seq, second.last_seq, second.prev_hash) == (3, 3, first.last_hash)
    assert [s for s in segment_services.seal(before=timezone.now(), actor="ann") if s.chain == CHAIN] == []
    segment_services.mark_exported(segment=second, actor="ann")
    with pytest.raises(DomainError, match="they go first"):
        segment_services.drop(segment=second, actor="ann", reason="r")


def test_a_broken_chain_is_not_sealed():
    for number in range(3):
        entry(number)
    AuditEntry.objects.filter(seq=2).delete()
    with pytest.raises(DomainError, match="entry 2 is missing"):
        segment_services.seal(before=timezone.now(), actor="ann")


def test_a_whole_partition_goes_at_once():
    old = timezone.now() - dt.timedelta(days=10)
    lower = old.replace(minute=0, second=0, microsecond=0)
    sealed()
    name = f"audit_auditentry_p{lower:%Y%m%d%H}"
    with connection.cursor() as cursor:
        cursor.execute("UPDATE audit_auditentry SET at = %s WHERE chain = %s", [old, CHAIN])
        cursor.execute("ALTER TABLE audit_auditentry DETACH PARTITION audit_auditentry_rest")
        cursor.execute(
            f"CREATE TABLE {name} PARTITION OF audit_auditentry FOR VALUES FROM ('{lower.isoformat()}')"
            f" TO ('{(lower + dt.timedelta(hours=1)).isoformat()}')"
        )
        cursor.execute(f"INSERT INTO {name} SELECT * FROM audit_auditentry_rest WHERE chain = '{CHAIN}'")
        cursor.execute(f"DELETE FROM audit_auditentry_rest WHERE chain = '{CHAIN}'")
        cursor.execute("ALTER TABLE audit_auditentry ATTACH PARTITION audit_auditentry_rest DEFAULT")
    segment = Segment.objects.get(chain=CHAIN)
    segment_services.mark_exported(segment=segment, actor="ann")
    segment_services.drop(segment=segment, actor="ann", reason="kept elsewhere")
    segment_services.purge()
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s)", [name])
        assert cursor.fetchone() == (None,)


def test_verifications_are_kept_and_repeated_once_a_day(monkeypatch):
    entry()
    asked = check_services.ask(actor="ann")
    assert [report.intact for report in asked.done] == [True]
    assert check_services.check_due() == []
    AuditEntry.objects.update(reason="another")
    ChainCheck.objects.update(finished_at=timezone.now() - dt.timedelta(days=2))
    (report,) = check_services.check_due()
    assert ChainCheck.objects.get(chain=CHAIN).broken_seq == report.broken_seq == 1
    monkeypatch.setattr(check_services, "AT_ONCE", 0)
    assert check_services.ask(actor="ann").waiting == [CHAIN]
    assert ChainCheck.objects.get(chain=CHAIN).requested_by == "ann"
    assert len(check_services.check_due()) == 1


def test_a_verification_that_fails_says_so_and_comes_again(monkeypatch):
    entry()
    monkeypatch.setattr(check_services, "verify_chain", lambda *_: 1 / 0)
    assert check_services.check_due() == []
    said = ChainCheck.objects.get(chain=CHAIN)
    assert (said.finished_at, said.requested_at, said.broken_seq) == (None, None, None)
    assert "reference" in said.problem
    assert audit_alerts.look() == 1
    assert check_services.ask(actor="ann").done == []
    monkeypatch.undo()
    assert [report.intact for report in check_services.check_due()] == [True]
    assert audit_alerts.look() == 0


OUTSIDER = """
import sys, json, hashlib
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
lines = open(sys.argv[1], 'rb').read()
public, statement, signature = sys.argv[2], sys.argv[3].encode(), bytes.fromhex(sys.argv[4])
Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(signature, statement)
said = json.loads(statement)
assert hashlib.sha256(lines).hexdigest() == said['sha256']
prev, seq = said['prev_hash'], said['first_seq']
for line in lines.split(b'\\n')[:-1]:
    entry = json.loads(line)
    assert (entry['prev_hash'], entry['seq'], entry['chain']) == (prev, seq, said['chain'])
    # RFC 8785 again, by hand: every value here is text, a whole number, true, false, null, a list or an object.
    again = json.dumps(entry, sort_keys=True, separators=(',', ':'), ensure_ascii=False).encode()
    assert again == line
    prev, seq = hashlib.sha256(line).hexdigest(), seq + 1
assert (prev, seq - 1) == (said['last_hash'], said['last_seq'])
"""


def test_an_outsider_checks_an_exported_segment_with_a_script_of_their_own(tmp_path: Path):
    segment = sealed()
    file = tmp_path / "segment.ndjson"
    file.write_bytes(b"".join(segment_services.segment_lines(segment)))

    def check(path, signature=segment.signature):
        public = SigningKey.objects.get(key_id=segment.key_id).public_key
        command = [sys.executable, "-c", OUTSIDER, path, public, bytes(segment.statement).decode(), signature]
        return subprocess.run(command, capture_output=True, check=False, cwd=tmp_path).returncode

    assert check(file) == 0
    assert check(file, "00" * 64) == 1
    forged = tmp_path / "forged.ndjson"
    forged.write_bytes(file.read_bytes().replace(b'"weight":2', b'"weight":9'))
    assert check(forged) == 1


def test_the_commands():
    out = io.StringIO()

    def run(*args):
        out.truncate(0)
        out.seek(0)
        call_command("audit", *args, stdout=out)
        return out.getvalue()

    entry()
    assert '"kind":"head"' in run("sign")
    assert run("keys").split()[0] == SigningKey.objects.get().key_id
    assert "cluster:7#1-1, 1 entries, sealed" in run("seal", "--older-than", "0")
    pk = str(Segment.objects.get(chain=CHAIN).pk)
    assert json.loads(run("export", pk))["chain"] == CHAIN
    assert "exported" in run("segments")
    run("drop", pk, "--reason", "kept elsewhere")
    assert not AuditEntry.objects.filter(chain=CHAIN).exists()
    assert "0 entries hold from 2 on" in run("verify", "--chain", CHAIN)
    assert len(run("keys", "--new").splitlines()) == 2
    with pytest.raises(CommandError, match="no segment 99"):
        run("export", "99")
