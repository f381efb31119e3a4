"""The audit log: its chains hold, a change anywhere is found, writers follow each other, outsiders can check it."""

import hashlib
import io
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import rfc8785
from asgiref.sync import async_to_sync
from django.core.management import call_command
from django.db import connection, connections, transaction
from django.test import AsyncClient, Client

from tests import quota_writes
from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.models import PlatformRole, Tenant
from tidesched_web.audit import services as audit
from tidesched_web.audit.models import AuditEntry, AuditHead
from tidesched_web.audit.verification import verify_all, verify_chain
from tidesched_web.common import request_context


def entry(number=1, **facts):
    given = {"chain": "cluster:7", "actor": "ann", "action": "queue.update", "object_type": "queue"} | facts
    return audit.append(**given, object_id=number)


@pytest.mark.django_db
def test_entries_follow_each_other_and_the_hash_can_be_taken_again_from_the_recipe():
    first = entry(before=None, after={"weight": 1.10, "name": "ü", "big": 2**60})
    second = entry(2, tenant_ids=[3, 1, 3], reason="why")
    assert (first.seq, first.prev_hash, second.seq, second.prev_hash) == (1, "", 2, first.hash)
    said = json.loads(bytes(second.payload))
    assert hashlib.sha256(rfc8785.dumps(said)).hexdigest() == second.hash
    assert set(said) == {
        "recipe", "chain", "id", "heads", "seq", "at", "prev_hash", "actor", "actor_kind", "actor_id", "actor_issuer",
        "actor_subject", "action",
        "object_type", "object_id", "object_label", "cluster_id", "tenant_ids", "request_id", "address", "reason",
        "before", "after",
    }  # fmt: skip
    assert said["tenant_ids"] == [1, 3]
    assert verify_chain("cluster:7").intact


@pytest.mark.django_db
def test_many_entries_at_once_hold_what_single_ones_do():
    documents = [None, {}, {"name": "ü\x00", "cards": {"A|B": 1.5}, "open": True}, {"big": 2**60, "list": [1, None]}]
    facts = [
        audit.Fact("queue.update", "queue", number, f"q{number}", [number % 3], documents[number % 4], documents[-1])
        for number in range(120)
    ]
    few = audit.append_all(facts[:4], chain="cluster:7", actor="ann", cluster_id=7, reason="why")
    many = audit.append_all(facts, chain="cluster:7", actor="ann", cluster_id=7, reason="why")
    stored = {row.seq: row for row in AuditEntry.objects.filter(chain="cluster:7")}
    fields = [field.attname for field in AuditEntry._meta.concrete_fields]
    for entry in (*few, *many):
        row = stored[entry.seq]
        assert {name: getattr(row, name) for name in fields if name != "payload"} == {
            name: getattr(entry, name) for name in fields if name != "payload"
        }
    empty = AuditEntry.objects.filter(chain="cluster:7", before__isnull=True).order_by("seq")
    assert list(empty.values_list("seq", flat=True)) == [1, *range(5, 124, 4)]
    assert verify_chain("cluster:7").intact
    assert stored[124].before == {"big": str(2**60), "list": [1, None]}


@pytest.mark.django_db
def test_who_asked_comes_from_the_request():
    with request_context.carried(request_context.RequestContext("request-1", "192.0.2.7")):
        made = entry()
    assert (made.request_id, made.address) == ("request-1", "192.0.2.7")
    assert entry().request_id == ""


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (
            "UPDATE audit_auditentry SET actor = 'bob' WHERE seq = 2",
            "column actor of entry 2 says something else than the bytes",
        ),
        (
            "UPDATE audit_auditentry SET after = '{\"weight\": 9}' WHERE seq = 2",
            "column after of entry 2 says something else",
        ),
        ("UPDATE audit_auditentry SET payload = payload || ' '::bytea WHERE seq = 2", "do not give its hash"),
        (
            "UPDATE audit_auditentry SET payload = '{}', hash = encode(sha256('{}'), 'hex') WHERE seq = 2",
            "is an entry of the chain None",
        ),
        ("DELETE FROM audit_auditentry WHERE seq = 2", "entry 2 is missing"),
        ("UPDATE audit_auditentry SET hash = repeat('0', 64) WHERE seq = 3", "do not give its hash"),
        ("DELETE FROM audit_auditentry WHERE seq = 3", "the chain ends before its head"),
        ("UPDATE audit_auditentry SET at = at + interval '1 second' WHERE seq = 2", "column at of entry 2"),
    ],
)
def test_whatever_is_changed_is_found(statement, problem):
    for number in range(1, 4):
        entry(number, after={"weight": number})
    audit.append(chain="other", actor="a", action="b", object_type="c", object_id=1)
    with connection.cursor() as cursor:
        cursor.execute(statement + " AND chain = 'cluster:7'")
    report = verify_chain("cluster:7")
    assert not report.intact
    assert problem in report.problem
    assert [found.intact for found in verify_all()] == [False, True]


@pytest.mark.django_db
def test_the_command_says_which_chain_broke_and_where(capsys):
    entry()
    out = io.StringIO()
    call_command("audit", "verify", stdout=out)
    assert "cluster:7: 1 entries hold" in out.getvalue()
    AuditEntry.objects.update(reason="another")
    with pytest.raises(SystemExit) as stopped:
        call_command("audit", "verify", "--chain", "cluster:7", stdout=out)
    assert stopped.value.code == 1
    assert "cluster:7: broken at entry 1 (column): column reason" in out.getvalue()


@pytest.mark.django_db(transaction=True)
def test_sixteen_writers_make_one_chain_without_gap_and_a_rolled_back_one_leaves_no_trace():
    start = threading.Barrier(16)

    def write(index):
        try:
            start.wait()
            for step in range(5):
                with transaction.atomic():
                    entry(f"{index}-{step}")
                    if step == 3:
                        transaction.set_rollback(True)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=write, args=(index,)) for index in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report = verify_chain("cluster:7")
    assert (report.intact, report.checked) == (True, 64)
    assert AuditHead.objects.get(chain="cluster:7").seq == 64
    times = list(AuditEntry.objects.order_by("seq").values_list("at", flat=True))
    assert times == sorted(times)


@pytest.fixture
def readers(db):
    tenants = [quota_writes.ensure_tenant(slug=slug, actor="root") for slug in ("acme", "rival")]
    people = {}
    for name, role in (("auditor", PlatformRole.AUDITOR), ("member", ""), ("nobody", "")):
        people[name] = accounts.create_user(username=name, password=None, platform_role=role, actor="root")
    accounts.set_membership(user=people["member"], tenant=tenants[0], role="member", actor="root")
    with request_context.carried(request_context.RequestContext("", "192.0.2.7")):
        entry(1, tenant_ids=[tenants[0].pk], object_label="own", after={"weight": 1})
        entry(2, tenant_ids=[tenant.pk for tenant in tenants], object_label="shared", after={"weight": 2})
        entry(3, tenant_ids=[tenants[1].pk], object_label="foreign", after={"weight": 3})
    return people


def shown(user, **query):
    client = Client()
    client.force_login(user)
    return client.get("/api/v1/audit/", {"object_type": "queue", **query}).json()["results"]


def test_a_member_reads_what_touches_their_tenants_and_of_shared_entries_not_the_content(readers):
    own = {row["object_label"]: row for row in shown(readers["member"])}
    assert set(own) == {"own", "shared"}
    assert (own["own"]["after"], own["own"]["address"], own["own"]["payload"]) == ({"weight": 1}, "", None)
    assert (own["shared"]["after"], len(own["shared"]["tenants"])) == (None, 1)
    assert shown(readers["nobody"]) == []
    everything = shown(readers["auditor"])
    assert [row["object_label"] for row in everything] == ["foreign", "shared", "own"]
    assert everything[0]["address"] == "192.0.2.7"
    assert hashlib.sha256(everything[0]["payload"].encode()).hexdigest() == everything[0]["hash"]


def test_the_filter_by_a_hidden_tenant_answers_as_for_one_that_is_not_there(readers):
    hidden, absent = Tenant.objects.get(slug="rival").pk, 999_999
    assert shown(readers["member"], tenant=hidden) == shown(readers["member"], tenant=absent) == []
    assert len(shown(readers["auditor"], tenant=hidden)) == 2


def test_the_bundle_is_for_those_who_see_everything_and_holds_no_private_key(readers):
    @async_to_sync
    async def fetch(name):
        client = AsyncClient()
        await client.aforce_login(readers[name])
        response = await client.get("/api/v1/audit/bundle/")
        parts = [chunk async for chunk in response.streaming_content] if response.streaming else []
        return response.status_code, b"".join(parts)

    status, text = fetch("auditor")
    rows = [json.loads(line) for line in text.splitlines()]
    assert (status, {row["table"] for row in rows}) == (200, {"key", "head", "entry", "end"})
    assert b"private_key" not in text
    assert fetch("member")[0] == fetch("nobody")[0] == 403


def test_filters_of_the_log(readers):
    assert len(shown(readers["auditor"], object_id="2")) == 1
    assert len(shown(readers["auditor"], to="2020-01-01T00:00:00Z")) == 0
    assert len(shown(readers["auditor"], chain="cluster:7", actor="ann", **{"from": "2020-01-01T00:00:00Z"})) == 3


@pytest.mark.parametrize("form", ["ndjson", "csv"])
def test_an_export_holds_every_entry_in_order(readers, form, monkeypatch):
    from tidesched_web.api.v1 import audit as view

    monkeypatch.setattr(view, "EXPORT_PAGE", 2)

    async def fetch():
        client = AsyncClient()
        await client.aforce_login(readers["auditor"])
        response = await client.get("/api/v1/audit/", {"format": form, "chain": "cluster:7"})
        assert response.headers["Content-Disposition"] == f'attachment; filename="audit.{form}"'
        return b"".join([chunk async for chunk in response.streaming_content]).decode()

    lines = async_to_sync(fetch)().splitlines()
    if form == "ndjson":
        rows = [json.loads(line) for line in lines]
        assert [row["seq"] for row in rows] == [1, 2, 3]
        assert all(hashlib.sha256(row["payload"].encode()).hexdigest() == row["hash"] for row in rows)
    else:
        assert lines[0].startswith("id,url,chain,seq,at,actor")
        assert len(lines) == 4


def test_the_outsiders_check_in_the_docs_accepts_an_export_and_refuses_a_forged_one(readers):
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")
    program = page.partition("```python\n")[2].partition("```")[0]

    @async_to_sync
    async def export():
        client = AsyncClient()
        await client.aforce_login(readers["auditor"])
        response = await client.get("/api/v1/audit/", {"format": "ndjson"})
        return b"".join([chunk async for chunk in response.streaming_content]).decode()

    def check(text):
        done = subprocess.run([sys.executable, "-c", program], input=text, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.rpartition("}")[2].strip()

    lines = export().splitlines(keepends=True)
    assert check("".join(lines)) == (0, "0")
    assert check("".join(lines[:3] + lines[4:])) == (0, "1"), "a filtered export is accepted, and its gap is said"
    assert check("".join(lines).replace("own", "won"))[0] == 1
