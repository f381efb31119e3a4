"""The application's role of the database appends to the audit log and can change none of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import ProgrammingError, connection, connections
from django.utils import timezone

from tidesched_web.audit import rights, segment_services, signing_services
from tidesched_web.audit.models import AuditEntry, Segment
from tidesched_web.audit.services import append
from tidesched_web.audit.verification import verify_chain
from tidesched_web.common import database_roles, partitions
from tidesched_web.scheduling import retention

pytestmark = pytest.mark.django_db(transaction=True)

CHAIN, ROLE = "cluster:7", "tidesched_app"


def address(user: str) -> str:
    found = connection.settings_dict
    return psycopg.conninfo.make_conninfo(host=found["HOST"], user=user, dbname=found["NAME"])


@pytest.fixture(autouse=True)
def roles(settings) -> Iterator[None]:
    """As in an installation whose owner and application have a role each."""
    owner, name = connection.settings_dict["USER"], connection.settings_dict["NAME"]
    place = settings.DATABASE_URL.partition("@")[2].rpartition("/")[0]
    settings.DATABASE_URL = f"postgresql://{ROLE}@{place}/{name}"
    settings.DATABASE_OWNER_URL = f"postgresql://{owner}@{place}/{name}"
    granted()
    yield
    with connection.cursor() as cursor:
        cursor.execute(f"DROP OWNED BY {ROLE}")


def granted() -> bool:
    return database_roles.grant(rights.RIGHTS, rights.FUNCTIONS)


@contextmanager
def as_application() -> Iterator[None]:
    """The default connection is that of the application's role."""
    kept = connections["default"]
    other = kept.copy("default")
    other.settings_dict = {**kept.settings_dict, "USER": ROLE}
    connections["default"] = other
    try:
        yield
    finally:
        other.close()
        connections["default"] = kept


def entry(number: int = 1) -> AuditEntry:
    return append(chain=CHAIN, actor="ann", action="queue.quota", object_type="queue", object_id=number)


def exported() -> Segment:
    (segment,) = [one for one in segment_services.seal(before=later(), actor="ann") if one.chain == CHAIN]
    segment_services.mark_exported(segment=segment, actor="ann")
    return segment


def later() -> dt.datetime:
    return timezone.now() + dt.timedelta(days=1)


FORBIDDEN = {
    "an entry is edited": "UPDATE audit_auditentry SET reason = 'x'",
    "its bytes are edited": "UPDATE audit_auditentry SET payload = ''",
    "an entry is deleted": "DELETE FROM audit_auditentry",
    "all entries are emptied": "TRUNCATE audit_auditentry",
    "an entry is edited in its partition": "UPDATE audit_auditentry_rest SET reason = 'x'",
    "an entry is deleted in its partition": "DELETE FROM audit_auditentry_rest",
    "an entry is put past the parent": "INSERT INTO audit_auditentry_rest SELECT * FROM audit_auditentry",
    "the table is dropped": "DROP TABLE audit_auditentry",
    "the table is changed": "ALTER TABLE audit_auditentry DROP COLUMN signature",
    "a partition is dropped": "SELECT tidesched_drop_partition('audit_auditentry', 'audit_auditentry_p2026010100')",
    "a head row is deleted": "DELETE FROM audit_audithead",
    "a signed head is edited": "UPDATE audit_signedhead SET hash = ''",
    "a signed head is deleted": "DELETE FROM audit_signedhead",
    "a public key is replaced": "UPDATE audit_signingkey SET public_key = ''",
    "a key is deleted": "DELETE FROM audit_signingkey",
    "the end of a segment is moved": "UPDATE audit_segment SET last_hash = ''",
    "a segment counts as purged": "UPDATE audit_segment SET purged_at = now()",
    "a segment is deleted": "DELETE FROM audit_segment",
    "triggers are switched off": "SET session_replication_role = replica",
    "another role is taken": "SET ROLE {owner}",
    "the table is taken": "ALTER TABLE audit_auditentry OWNER TO tidesched_app",
    "a role is made": "CREATE ROLE other SUPERUSER",
    "a migration is forgotten": "DELETE FROM django_migrations",
    "a function is replaced": "CREATE OR REPLACE FUNCTION tidesched_purge_audit() RETURNS bigint "
    "LANGUAGE sql AS 'SELECT 1::bigint'",
}


def test_the_database_refuses_each(subtests) -> None:
    entry()
    owner = connection.settings_dict["USER"]
    with psycopg.connect(address(ROLE), autocommit=True) as ours:
        for what, statement in FORBIDDEN.items():
            with subtests.test(what), pytest.raises(psycopg.errors.InsufficientPrivilege):
                ours.execute(statement.format(owner=owner))
    assert verify_chain(CHAIN).intact


# A view in the place of a default partition: who reads it runs its function.
SMUGGLED = """
CREATE TEMP TABLE t (at timestamptz) PARTITION BY RANGE (at);
CREATE FUNCTION pg_temp.smuggled() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS
    'BEGIN DELETE FROM public.audit_auditentry; RETURN now(); END';
CREATE VIEW pg_temp.t_rest AS SELECT pg_temp.smuggled() AS at;
GRANT ALL ON t, pg_temp.t_rest TO PUBLIC;
SELECT tidesched_make_partition('pg_temp.t', '2031-01-01', '2031-01-02');
"""


def test_the_owners_function_runs_nothing_that_the_application_made() -> None:
    entry()
    refused = pytest.raises(psycopg.errors.InsufficientPrivilege, match="is a table of tidesched_app")
    with psycopg.connect(address(ROLE), autocommit=True) as ours, refused:
        ours.execute(SMUGGLED)
    assert AuditEntry.objects.filter(chain=CHAIN).count() == 1


def test_what_the_application_does_it_may() -> None:
    with as_application():
        assert not rights.role_may_change_entries()
        for number in range(3):
            entry(number)
        signing_services.new_signing_key(actor="ann", reason="yearly")
        entry(4)
        signing_services.sign_heads(at_once=True)
        signing_services.encrypt_signing_keys_anew()
        assert verify_chain(CHAIN).intact
        done = retention.run()
        assert "partitions_made" in done
    assert rights.role_may_change_entries(), "the owner may"


def test_entries_of_a_dropped_segment_leave_by_the_owners_function(monkeypatch) -> None:
    monkeypatch.setattr(segment_services, "YOUNGEST", dt.timedelta(days=-2))
    with as_application():
        entry()
        segment = exported()
        assert segment_services.purge() == 0, "exported is not dropped"
        segment_services.drop(segment=segment, actor="ann", reason="kept elsewhere")
        assert segment_services.purge() == 1
        assert segment_services.purge() == 0
        entry(2)
        assert verify_chain(CHAIN).intact


def test_an_unsigned_drop_removes_nothing(monkeypatch) -> None:
    monkeypatch.setattr(segment_services, "YOUNGEST", dt.timedelta(days=-2))
    with as_application():
        entry()
        segment = exported()
        Segment.objects.filter(pk=segment.pk).update(dropped_at=timezone.now(), dropped_by="mallory")
        assert segment_services.purge() == 0
        assert AuditEntry.objects.filter(chain=CHAIN).count() == 1


def test_a_drop_under_a_false_signature_is_found_by_the_verification(monkeypatch) -> None:
    """The database checks no signatures; the row of the segment cannot be taken away, and gives it away."""
    monkeypatch.setattr(segment_services, "YOUNGEST", dt.timedelta(days=-2))
    with as_application():
        entry()
        false = {"drop_statement": b"{}", "drop_signature": "00" * 64, "dropped_at": timezone.now()}
        Segment.objects.filter(pk=exported().pk).update(**false, dropped_by="mallory")
        assert segment_services.purge() == 1
        entry(2)
        report = verify_chain(CHAIN)
    assert not report.intact
    assert "not_exported" in {finding.kind for finding in report.findings}


def test_partitions_are_made_and_old_ones_dropped_as_the_application() -> None:
    noon = dt.datetime(2031, 5, 1, 12, tzinfo=dt.UTC)
    with as_application():
        for table in ("scheduling_decision", "audit_auditentry"):
            assert len(partitions.ensure(table, hours=1, ahead=2, now=noon)) == 3
        assert len(partitions.drop_oldest("scheduling_decision", keep_bytes=0, keep_partitions=0)) >= 3
        with pytest.raises(ProgrammingError, match="are not deleted by tidesched_app"):
            partitions.drop_oldest("audit_auditentry", keep_bytes=0, keep_partitions=0)


def test_rights_that_were_widened_by_hand_are_taken_back() -> None:
    assert not granted(), "nothing to do"
    with connection.cursor() as cursor:
        cursor.execute(f"GRANT DELETE ON audit_auditentry TO {ROLE}")
        cursor.execute(f"GRANT UPDATE (hash) ON audit_signedhead TO {ROLE}")
    assert granted()
    assert not granted()
    with psycopg.connect(address(ROLE)) as ours, pytest.raises(psycopg.errors.InsufficientPrivilege):
        ours.execute("UPDATE audit_signedhead SET hash = ''")


def test_a_role_without_bounds_is_refused() -> None:
    def alter(word: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER ROLE {ROLE} {word}")

    for word, back, why in (
        ("SUPERUSER", "NOSUPERUSER", "is a superuser"),
        ("CREATEROLE", "NOCREATEROLE", "CREATEROLE"),
    ):
        alter(word)
        try:
            with pytest.raises(ImproperlyConfigured, match=rf"{why}.*: it could change the audit log"):
                granted()
        finally:
            alter(back)


def test_a_role_that_owns_a_table_of_the_schema_is_refused() -> None:
    """Its owner may grant itself every right on a table again, and put a trigger or a rule on it."""

    def run(*statements: str) -> None:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    run("CREATE TABLE stray_of_a_role (id int)", f"ALTER TABLE stray_of_a_role OWNER TO {ROLE}")
    try:
        with pytest.raises(ImproperlyConfigured, match=r"owns tables of the schema: it could change the audit log"):
            granted()
    finally:
        run("DROP TABLE stray_of_a_role")


def test_one_role_for_both_is_left_alone(settings) -> None:
    settings.DATABASE_OWNER_URL = settings.DATABASE_URL
    assert not granted()
    settings.DATABASE_OWNER_URL = ""
    assert not granted()
