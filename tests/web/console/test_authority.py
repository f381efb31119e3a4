"""What pages say to whom: owner, colleague of another tenant, auditor, newcomer. Who opens them: `tests/matrix`."""

from __future__ import annotations

import csv

import pytest
from django.test import Client

from tests.web.console.test_pages import client_of
from tidesched_web.audit.models import AuditEntry
from tidesched_web.clusters.models import Cluster
from tidesched_web.scheduling.models import Alert, Decision, Session
from tidesched_web.scheduling.selectors import first_unsent
from tidesched_web.workloads.models import GangPod

pytestmark = pytest.mark.django_db


def resolving() -> str:
    alert = Alert.objects.filter(resolved_at__isnull=True).values_list("pk", flat=True).first()
    return f"/clusters/demo/alerts/{alert}/resolve/"


def test_a_newcomer_is_told_whom_to_ask(world) -> None:
    assert "Ask a platform admin" in client_of(world.newcomer).get("/").content.decode()


def test_a_fragment_of_a_stranger_reloads_the_page(world) -> None:
    response = Client().get("/clusters/demo/", headers={"HX-Request": "true", "HX-Target": "live"})
    assert response.status_code == 204
    assert response["HX-Refresh"] == "true"


def test_lists_hold_only_what_is_ones_own(world) -> None:
    client = client_of(world.member)
    gangs = client.get("/clusters/demo/gangs/").content.decode()
    assert "search/rank-v7" in gangs
    assert "research/" not in gangs
    queues = client.get("/clusters/demo/queues/").content.decode()
    assert "search-training" in queues
    assert "research-training" not in queues
    found = client.get("/clusters/demo/search/?q=llm").content.decode()
    assert "llm-pretrain" not in found
    export = client.get("/clusters/demo/gangs/?format=csv").content.decode()
    assert ",rank-v7," in export
    assert "research" not in export


def test_who_holds_cards_is_not_told_to_strangers(world) -> None:
    path = f"/clusters/demo/gangs/{world.gangs['search/embed-lap2-012'].pk}/"
    told = client_of(world.admin).get(path).content.decode()
    assert "research/llm-pretrain-lap2-004" in told
    hidden = client_of(world.member).get(path).content.decode()
    assert "Needs 16 × H200" in hidden
    assert "research-training" not in hidden
    assert "a gang of another tenant" in hidden
    overview = client_of(world.member).get("/clusters/demo/").content.decode()
    assert "held by" not in overview


def test_nodes_do_not_tell_whose_a_card_is(world) -> None:
    page = client_of(world.member).get("/clusters/demo/nodes/").content.decode()
    assert "search/rank-v7" in page
    assert "research/llm-pretrain" not in page


def test_a_row_of_a_node_that_was_drawn_for_one_is_not_shown_to_another(world) -> None:
    shown = [client_of(who).get("/clusters/demo/nodes/").content.decode() for who in (world.admin, world.member)]
    assert ["research/llm-pretrain" in page for page in shown] == [True, False]
    held = GangPod.objects.filter(gang__namespace="research", phase="Running", leaving=False).exclude(card="")
    pod = held.exclude(node="")[0]
    GangPod.objects.filter(pk=pod.pk).update(leaving=True)
    again = client_of(world.admin).get("/clusters/demo/nodes/").content.decode()
    assert again.count("slot-leaving") == shown[0].count("slot-leaving") + max(1, pod.card_milli // 1000)


def test_a_reclaim_tells_its_other_side_by_name_only(world) -> None:
    mine = next(row for row in world.reclaims if row.reclaimer == "search/rank-v8")
    page = client_of(world.member).get(f"/clusters/demo/reclaims/{mine.pk}/").content.decode()
    assert "research/llm-pretrain-lap2-003" in page
    assert "/gangs/research/" not in page, "a link would lead to nothing"
    assert "/gangs/search/rank-v8/" in page
    assert "research-training" not in page
    assert "foundation/base-lap2-001" not in page
    victim = client_of(world.stranger).get(f"/clusters/demo/reclaims/{mine.pk}/").content.decode()
    assert "search/rank-v8" in victim
    assert "/gangs/search/rank-v8/" not in victim, "a link would lead to nothing"
    assert "What a gang of another tenant needed is shown to that tenant only" in victim
    assert "search-rank-inference" not in victim


def test_how_much_the_other_side_of_a_reclaim_has_is_not_told(world) -> None:
    """Neither on its page nor in the list, the export, the overview or the session."""
    mine = next(row for row in world.reclaims if row.reclaimer == "search/rank-v8")
    for address in (
        f"/clusters/demo/reclaims/{mine.pk}/",
        "/clusters/demo/reclaims/?q=search/rank-v8",
        "/clusters/demo/",
        f"/clusters/demo/sessions/{mine.session.number}/",
    ):
        told = client_of(world.admin).get(address).content.decode()
        hidden = client_of(world.stranger).get(address).content.decode()
        unsaid = (
            "took cards back"
            if "?" not in address
            else 'title="Of a gang of another tenant: shown to that tenant only."'
        )
        assert unsaid not in told, address
        assert unsaid in hidden, address
        assert "only its tenant" not in hidden, "a dash in a table, and a sentence without it"
    rows = client_of(world.stranger).get("/clusters/demo/reclaims/?format=csv").content.decode().splitlines()
    row = next(row for row in csv.DictReader(rows) if row["reclaimer"] == "search/rank-v8")
    assert row["needed"] == ""


def test_a_filter_of_reclaims_says_nothing_of_the_other_side(world) -> None:
    """The text in a hidden queue's name, and a tenant of others, find what a text or tenant that is nowhere finds."""
    client = client_of(world.stranger)
    for name, hidden in {"q": "search-rank-inference", "loser": "foundation-training"}.items():
        asked = client.get(f"/clusters/demo/reclaims/?{name}={hidden}&format=csv").content
        assert asked == client.get(f"/clusters/demo/reclaims/?{name}=nowhere-at-all&format=csv").content
        assert len(asked.splitlines()) == 1
    of_others = client.get("/clusters/demo/reclaims/?gainer_tenant=search&format=csv").content
    assert of_others == client.get("/clusters/demo/reclaims/?gainer_tenant=nowhere&format=csv").content


def test_the_error_of_a_session_is_for_those_who_see_everything(world) -> None:
    session = Session.objects.order_by("-id").first()
    Session.objects.filter(pk=session.pk).update(error="research/llm-pretrain broke something")
    address = f"/clusters/demo/sessions/{session.number}/"
    assert "broke something" in client_of(world.auditor).get(address).content.decode()
    assert "broke something" not in client_of(world.member).get(address).content.decode()


def test_the_session_that_keeps_what_would_have_been_done_is_named(world) -> None:
    client, cluster = client_of(world.admin), world.cluster
    sent, first, second, newest = world.sessions[-4:]
    assert first_unsent(cluster, newest.pk) is None
    Session.objects.filter(pk__in=[first.pk, newest.pk]).update(state="dry_run", counts={"held": "paused"})
    Session.objects.filter(pk=second.pk).update(state="stopped")
    Decision.objects.filter(session_id=newest.pk).delete()
    assert first_unsent(cluster, sent.pk) is None
    assert first_unsent(cluster, second.pk) == first_unsent(cluster, newest.pk) == first.number
    link = f'href="/clusters/demo/sessions/{first.number}/"'
    assert link in client.get(f"/clusters/demo/sessions/{newest.number}/").content.decode()
    assert link not in client.get("/clusters/demo/pause/").content.decode()
    client.post("/clusters/demo/pause/", {"reason": "drill", "confirm": "on"})
    assert link in client.get("/clusters/demo/pause/").content.decode()
    Session.objects.filter(pk__lt=first.pk).delete()
    assert first_unsent(cluster, newest.pk) is None, "its beginning is no longer known"


@pytest.mark.parametrize("who", ["auditor", "member"])
def test_only_admins_pause_and_resolve(world, who) -> None:
    client = client_of(getattr(world, who))
    assert client.get("/clusters/demo/pause/").status_code == 403
    assert client.post("/clusters/demo/pause/", {"reason": "x", "confirm": "on"}).status_code == 403
    assert client.post(resolving()).status_code == 403
    assert Cluster.objects.get().paused_at is None
    assert "/pause/" not in client.get("/clusters/demo/").content.decode()


def test_pause_and_resume_with_a_reason(world) -> None:
    client = client_of(world.admin)
    refused = client.post("/clusters/demo/pause/", {"reason": " ", "confirm": "on"})
    assert refused.status_code == 400
    assert "the reason goes into the audit log" in refused.content.decode()
    assert client.post("/clusters/demo/pause/", {"reason": "drill"}).status_code == 400
    assert Cluster.objects.get().paused_at is None
    done = client.post("/clusters/demo/pause/", {"reason": "drill", "confirm": "on"}, follow=True)
    assert "demo is paused." in done.content.decode()
    assert "“drill”" in done.content.decode()
    assert Cluster.objects.get().paused_by == "admin"
    assert client.post("/clusters/demo/pause/", {"reason": "over", "confirm": "on"}).status_code == 302
    assert Cluster.objects.get().paused_at is None
    assert list(AuditEntry.objects.order_by("id").values_list("action", "actor", "reason")) == [
        ("cluster.pause", "admin", "drill"),
        ("cluster.resume", "admin", "over"),
    ]


def test_resolving_an_alert_is_audited(world) -> None:
    client = client_of(world.admin)
    path = resolving()
    assert client.get(path).status_code == 405
    assert client.post(path).status_code == 302
    assert not Alert.objects.filter(resolved_at__isnull=True).exists()
    assert AuditEntry.objects.get().action == "alert.resolve"
    assert client.post(path).status_code == 302
    assert AuditEntry.objects.count() == 1


def test_an_act_that_the_pause_page_does_not_have_is_said_and_not_sent_again(world):
    client = client_of(world.admin)
    refused = client.post("/clusters/demo/pause/", {"act": "stop", "reason": "drill", "confirm": "on"})
    page = refused.content.decode()
    assert (refused.status_code, page.count('role="alert"')) == (400, 1)
    assert "stop is not one of the available choices" in page
    assert '<input type="hidden" name="act" value="pause"' in page


def test_a_name_that_no_object_can_have_is_a_fault_of_the_form(world):
    sent = {"namespace": "/sign-out/", "queue": "search-training", "reason": "drill"}
    assert client_of(world.admin).post("/clusters/demo/new/grant/", sent).status_code == 400
