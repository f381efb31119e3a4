"""The page of the audit log: filters, an entry with its difference, what a request did, exports, chains, segments."""

import datetime as dt
import json
import re
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient
from django.utils import timezone

import tidesched_web
from tests.web.console import world as story
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.models import Tenant
from tidesched_web.audit import segment_services, signing_services
from tidesched_web.audit import services as audit
from tidesched_web.audit.models import AuditEntry, ChainCheck, Segment
from tidesched_web.common import request_context
from tidesched_web.console import differences
from tidesched_web.console.audit_words import ACTS, act_words, action_choices
from tidesched_web.scheduling.models import Reclaim
from tidesched_web.workloads.models import Gang

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(world, monkeypatch) -> story.World:
    monkeypatch.setattr(segment_services, "YOUNGEST", dt.timedelta(0))
    search, research = (Tenant.objects.get(slug=slug) for slug in ("search", "research"))
    cluster = world.cluster.pk

    def write(label, tenants, request_id="", **more):
        with request_context.carried(request_context.RequestContext(request_id, "192.0.2.7")):
            return audit.append(
                chain=audit.cluster_chain(cluster), actor=more.pop("actor", "admin"), object_type="queue",
                action=more.pop("action", "queue.update"), object_id=label, object_label=label, cluster_id=cluster,
                tenant_ids=[tenant.pk for tenant in tenants], **more,
            )  # fmt: skip

    own = write(
        "search-training", [search], "request-1", reason="more night", before={"weight": 1, "card_quota": {"H": 8}},
        after={"weight": 2, "card_quota": {"H": 12, "A": 4}},
    )  # fmt: skip
    write("search-rank-inference", [search], "request-1", action="queue.create", after={"weight": 1})
    write("both", [search, research], actor="root", after={"secret": "of both"})
    write("research-training", [research], after={"secret": "foreign"})
    world.own = own
    return world


def test_the_log_is_listed_with_its_filters_as_chips(world):
    client = client_of(world.admin)
    page = client.get("/audit/").content.decode()
    assert "Queue: changed" in page
    assert "more night" in page
    narrowed = client.get("/audit/?actor=root&object_type=queue&from=2020-01-01T00:00&to=2030-01-01T00:00")
    text = narrowed.content.decode()
    assert text.count('<li class="chip">') == 4
    assert ">both<" in text
    assert "research-training" not in text
    assert "from=2020-01-01T00%3A00%3A00%2B00%3A00" in text, "the export has the same filter"
    tenant = Tenant.objects.get(slug="research").pk
    for query, found in (
        (f"tenant={tenant}", {"both", "research-training"}),
        ("q=rank", {"search-rank-inference"}),
        ("action=queue.create", {"search-rank-inference"}),
        ("action=own.act", set()),
        ("action=%3Cscript%3E", {"search-training", "search-rank-inference", "both", "research-training"}),
        ("request_id=request-1", {"search-training", "search-rank-inference"}),
        ("object_id=both", {"both"}),
        ("cluster=999", {"search-training", "search-rank-inference", "both", "research-training"}),
        ("actor=%00", {"search-training", "search-rank-inference", "both", "research-training"}),
        ("q=nothing-of-that-name", set()),
    ):
        rows = client.get(f"/audit/?{query}").context["page"].rows
        assert {row.object_label for row in rows} == found, query


def test_actions_are_chosen_by_their_words_and_a_link_may_name_any(world):
    client = client_of(world.admin)
    page = client.get("/audit/?action=queue.create").content.decode()
    select = re.search(r'<select name="action".*?</select>', page, re.DOTALL)
    assert select, "a choice"
    assert '<optgroup label="Queue">' in select[0]
    assert re.search(r'<option value="queue.create" selected>\s*Queue: made\s*</option>', select[0])
    assert re.search(r'class="text-secondary">Action: </span>Queue: made</span>', page), "the chip has words too"
    other = client.get("/audit/?action=own.act").content.decode()
    assert re.search(r'<option value="own.act" selected>\s*own: act', other), "of a plugin of one's own"
    assert "does not know “queue”" in client.get("/audit/?action=queue").content.decode()


def test_every_action_that_is_written_can_be_chosen(world):
    known = {value for _word, group in action_choices() for value, _act in group}
    root = Path(tidesched_web.__file__).parent
    texts = "".join(path.read_text(encoding="utf-8") for path in root.rglob("services/**/*.py"))
    texts += "".join(path.read_text(encoding="utf-8") for path in root.rglob("*services.py"))
    written = set(re.findall(r'(?:action=|_append\([^"]*|_audit\([^"]*)"([a-z_]+\.[a-z_]+)"', texts))
    assert len(written) > 20
    assert written - known == set()
    assert set(AuditEntry.objects.values_list("action", flat=True)) - known == set()
    for value in known:
        assert value.partition(".")[2] in ACTS


def test_an_entry_shows_before_after_and_difference(world):
    page = client_of(world.admin).get(f"/audit/{world.own.pk}/").content.decode()
    for word in ("card_quota › H", "+4", "Added", "Its bytes give its hash", "192.0.2.7", "request-1", world.own.hash):
        assert word in page
    assert "Queue: made" in page, "all of this request"
    assert '"recipe":3' in page.replace("&quot;", '"')


def test_a_changed_entry_says_so(world):
    AuditEntry.objects.filter(pk=world.own.pk).update(hash="0" * 64)
    assert "it has been changed" in client_of(world.admin).get(f"/audit/{world.own.pk}/").content.decode()


def test_earlier_and_later_keep_the_filter(world):
    page = client_of(world.admin).get(f"/audit/{world.own.pk}/?request_id=request-1")
    assert page.context["earlier"] is None
    assert page.context["later"].object_label == "search-rank-inference"
    assert f"/audit/{page.context['later'].pk}/?request_id=request-1" in page.content.decode()


def test_a_member_reads_what_touches_their_tenants(world):
    client = client_of(world.member)
    rows = client.get("/audit/").context["page"].rows
    assert {row.object_label for row in rows} == {"search-training", "search-rank-inference", "both"}
    shared = client.get(f"/audit/{AuditEntry.objects.get(object_label='both').pk}/").content.decode()
    assert "of both" not in shared
    assert "also touches another tenant" in shared
    assert "Research" not in shared
    own = client.get(f"/audit/{world.own.pk}/").content.decode()
    assert "+4" in own
    assert "192.0.2.7" not in own
    assert "RFC 8785" not in own
    foreign = AuditEntry.objects.get(object_label="research-training").pk
    assert client.get(f"/audit/{foreign}/").status_code == 404
    for path in ("integrity/", "segments/1/drop/"):
        assert client.get(f"/audit/{path}").status_code == 403
    for path in ("integrity/verify/", "integrity/seal/"):
        assert client.post(f"/audit/{path}").status_code == 403
    nothing = client_of(world.newcomer).get("/audit/").content.decode()
    assert "Nothing has been done yet" in nothing


def test_an_auditor_verifies_and_reads_and_does_not_seal(world):
    client = client_of(world.auditor)
    assert "not been verified yet" in client.get("/audit/integrity/").content.decode()
    said = client.post("/audit/integrity/verify/", follow=True).content.decode()
    assert "Every chain holds." in said
    assert "Verified: 4 of 4 entries. Newest entries, not signed yet: 4." in said
    assert client.post("/audit/integrity/seal/", {"days": 0, "reason": "x"}).status_code == 403
    AuditEntry.objects.filter(pk=world.own.pk).update(reason="another")
    said = client.post("/audit/integrity/verify/", follow=True).content.decode()
    assert "demo is broken at entry 1: column reason of entry 1 says something else than the bytes." in said
    assert ChainCheck.objects.get().broken_seq == 1
    assert "1 chain of the log is broken" in client.get("/audit/").content.decode()


def test_an_admin_seals_exports_and_drops(world):
    client = client_of(world.admin)
    signing_services.sign_heads()
    assert client.post("/audit/integrity/seal/", {"days": 0, "reason": ""}).status_code == 400
    said = client.post("/audit/integrity/seal/", {"days": 0, "reason": "yearly"}, follow=True).content.decode()
    assert "1 segment is sealed." in said
    segment = Segment.objects.get()
    drop = f"/audit/segments/{segment.pk}/drop/"
    assert "never exported" in client.post(drop, {"reason": "kept", "confirm": "on"}).content.decode()
    text = download(world.admin, f"/api/v1/audit/segments/{segment.pk}/file/")
    assert [json.loads(line)["seq"] for line in text.splitlines()] == [1, 2, 3, 4]
    assert Segment.objects.get().exported_by == "admin"
    assert client.post(drop, {"reason": "kept"}).status_code == 400
    assert "is dropped" in client.post(drop, {"reason": "kept", "confirm": "on"}, follow=True).content.decode()
    segment_services.purge()
    assert "search-training" not in client.get("/audit/").content.decode()
    assert "All chains hold" in client.post("/audit/integrity/verify/", follow=True).content.decode()
    assert client.get("/audit/segments/999/drop/").status_code == 404


def download(user, path):
    async def fetch():
        client = AsyncClient()
        await client.aforce_login(user)
        response = await client.get(path)
        assert response.status_code == 200
        return b"".join([chunk async for chunk in response.streaming_content]).decode()

    return async_to_sync(fetch)()


def test_the_export_of_the_page_is_what_its_filter_leaves(world):
    page = client_of(world.member).get("/audit/?request_id=request-1")
    lines = download(world.member, page.context["export"] + "format=ndjson").splitlines()
    assert [json.loads(line)["object_label"] for line in lines] == ["search-training", "search-rank-inference"]
    table = download(world.member, page.context["export"] + "format=csv").splitlines()
    assert len(table) == 3


def test_chains_heads_and_segments_by_rest(world):
    signing_services.sign_heads()
    segment_services.seal(before=timezone.now(), actor="ann")
    auditor, member = client_of(world.auditor), client_of(world.member)
    (chain, _platform) = auditor.get("/api/v1/audit/chains/").json()["results"]
    assert (chain["seq"], chain["signed_seq"], chain["intact"]) == (4, 4, None)
    (head,) = auditor.get("/api/v1/audit/heads/").json()["results"]
    assert json.loads(head["statement"])["hash"] == chain["hash"]
    lines = auditor.get("/api/v1/audit/heads/?format=ndjson").content.splitlines()
    assert len(json.loads(lines[0])["public_key"]) == 64
    (segment,) = auditor.get("/api/v1/audit/segments/").json()["results"]
    assert (segment["state"], segment["entries"]) == ("sealed", 4)
    assert auditor.get("/api/v1/audit/segments/999/file/").status_code == 404
    for path in ("chains", "heads", "segments", f"segments/{segment['id']}/file"):
        assert member.get(f"/api/v1/audit/{path}/").status_code == 403


def test_lines_of_a_difference():
    found = differences.lines({"a": 1, "b": {"c": True}, "gone": "x"}, {"a": 3.5, "b": {"c": True}, "l": [{"n": 1}]})
    assert [(line.path, line.before, line.after, line.kind, line.by) for line in found] == [
        ("a", "1", "3.5", "changed", "+2.5"),
        ("gone", "x", "", "removed", ""),
        ("l › 1 › n", "", "1", "added", ""),
        ("b › c", "true", "true", "same", ""),
    ]
    assert differences.lines(None, None) == []
    assert act_words("queue.create") == "Queue: made"
    assert act_words("gangreclaim.decide") == "Reclaim of gangs: decided"
    assert act_words("own.act") == "own: act"


def test_an_entry_has_one_number_and_all_of_its_request_drops_other_filters(world):
    client, pk = client_of(world.admin), world.own.pk
    listed = client.get("/audit/?object_type=queue").content.decode()
    assert f'<span title="{world.own.chain} {world.own.seq}">#{pk}</span>' in listed
    assert f'href="/audit/?request_id={world.own.request_id}"' in listed, "the filter by kind is not kept"
    assert f"#{pk}</li>" in client.get(f"/audit/{pk}/").content.decode()
    row = client.get("/api/v1/audit/", {"object_type": "queue", "request_id": world.own.request_id}).json()["results"]
    assert pk in {entry["id"] for entry in row}


def test_an_entry_leads_to_its_change_and_account(world):
    made = audit.append(
        chain=f"cluster:{world.cluster.pk}", actor="ann", action="quota_change.apply", object_type="quota_change",
        object_id=12, cluster_id=world.cluster.pk,
    )  # fmt: skip
    page = client_of(world.admin).get(f"/audit/{made.pk}/").content.decode()
    assert f'href="/clusters/{world.cluster.slug}/changes/12/"' in page


@pytest.mark.parametrize("kind", ["tenant", "user", "queue", "reclaim", "quota_change", "tide_plan", "session", ""])
def test_an_entry_of_an_object_that_has_no_number_opens(world, kind):
    made = audit.append(
        chain="platform", actor="visitor", action="auth.sign_in_failed", object_type=kind, object_id="",
        cluster_id=world.cluster.pk,
    )  # fmt: skip
    answer = client_of(world.admin).get(f"/audit/{made.pk}/")
    assert answer.status_code == 200
    assert f"#{made.pk}</li>" in answer.content.decode()


def test_a_reclaim_and_its_entry_lead_to_each_other(world):
    row = Reclaim.objects.filter(cluster=world.cluster).first()
    made = audit.append(
        chain=f"cluster:{world.cluster.pk}", actor="scheduler", action="reclaim.decide", object_type="reclaim",
        object_id=row.pk, object_label="a/b", cluster_id=world.cluster.pk,
    )  # fmt: skip
    Reclaim.objects.filter(pk=row.pk).update(audit_entry_id=made.pk)
    client, address = client_of(world.admin), f"/clusters/{world.cluster.slug}/reclaims/{row.pk}/"
    assert f'<a href="/audit/{made.pk}/">#{made.pk}</a>' in client.get(address).content.decode()
    assert f'href="{address}"' in client.get(f"/audit/{made.pk}/").content.decode()


def test_a_gang_leads_to_the_entries_of_what_it_took_and_of_what_was_taken_from_it(world):
    took = Reclaim.objects.filter(cluster=world.cluster, victims__isnull=False).first()
    lost = took.victims.first()
    made = audit.append(
        chain=f"cluster:{world.cluster.pk}", actor="scheduler", action="reclaim.decide", object_type="reclaim",
        object_id=took.pk, object_label=took.reclaimer, cluster_id=world.cluster.pk,
    )  # fmt: skip
    Reclaim.objects.filter(pk=took.pk).update(audit_entry_id=made.pk)
    client = client_of(world.admin)
    for gang in (took.reclaimer, lost.gang):
        query = f"cluster={world.cluster.pk}&gang={gang}"
        page = client.get(f"/audit/?{query}")
        assert made.pk in {row.pk for row in page.context["page"].rows}, gang
        assert f"gang={gang.replace('/', '%2F')}" in page.context["export"]
        found = client.get(f"/api/v1/audit/?{query}").json()["results"]
        assert made.pk in {row["id"] for row in found}, gang
    assert client.get("/audit/?gang=nobody/here").context["page"].rows == []
    gang = Gang.objects.filter(cluster=world.cluster).first()
    page = client.get(f"/clusters/{world.cluster.slug}/gangs/{gang.pk}/").content.decode()
    assert f'href="/audit/?cluster={world.cluster.pk}&amp;gang={gang.key}"' in page


def test_the_filter_by_an_objects_number_is_a_chip_that_can_be_removed(world):
    page = client_of(world.admin).get("/audit/?object_id=both&actor=root").content.decode()
    assert "Object number" in page
    chips = page[page.index('<ul class="chips') : page.index("</ul>", page.index('<ul class="chips'))]
    assert 'href="?actor=root"' in chips, "what is left when the number is removed"
    assert '<input type="hidden" name="object_id" value="both"' in page, "another filter keeps it"
