"""What a person does about an open layer: take the cards back now, and read what it lends, to whom, and why not."""

from __future__ import annotations

import datetime as dt
import html
import json
import re
from typing import Any

import pytest
from django.utils.html import strip_tags

from tests.quota_writes import write_tide_plan
from tests.web.console import world as story
from tests.web.console.cast import H200, L40S
from tests.web.console.test_changes import act
from tests.web.console.test_pages import client_of
from tests.web.console.test_tide_plans import LIST, NIGHT, applied
from tidesched_web.accounts.models import User
from tidesched_web.audit.models import AuditEntry
from tidesched_web.changes import services as changes
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.clusters.kubernetes import manifests
from tidesched_web.clusters.models import Cluster, ClusterMode
from tidesched_web.common.permissions import Access
from tidesched_web.console.forms.tide_plan import PlanForm
from tidesched_web.quota import tide
from tidesched_web.quota.models import Queue, SyncState, TidePlan
from tidesched_web.quota.selectors import with_card_quota
from tidesched_web.quota.tide_selectors import document_of, effective_now
from tidesched_web.scheduling.models import QueueUsage
from tidesched_web.workloads.models import Gang

pytestmark = pytest.mark.django_db
ENDED = re.compile(r"^2026-03-04T20:1\d:\d\d\+00:00$")
LENT = "Lent now: 4."
ADMIN = Access(actor="admin", everything=True, administers=True)
LENDER, TAKER = "search-suggest-inference", "maps-route-inference"


@pytest.fixture
def world(world) -> story.World:
    """Wednesday 20:15, the night is open since 18:00: one queue gives up 4 of its 10, another gets 6 more than 14."""
    document = {"enabled": True, "layers": [NIGHT], "exceptions": {"2026-03-05": "none"}}
    write_tide_plan(cluster=world.cluster, name="nights", document=document, actor="tests")
    Gang.objects.update(needs=False)
    hold(LENDER, sent=6, used=3)
    hold(TAKER, sent=20, used=12)
    return world


def hold(queue: str, *, sent: int, used: int, **more: object) -> None:
    """What the cluster was sent for a queue, and what it uses."""
    Queue.objects.filter(name=queue).update(tide={L40S: sent}, **more)
    QueueUsage.objects.filter(queue__name=queue, card=L40S).update(allocated=1000 * used)


def page_of(user: User, path: str = "nights/") -> str:
    answer = client_of(user).get(f"{LIST}{path}")
    assert answer.status_code == 200
    return " ".join(html.unescape(answer.content.decode()).split())


def l40s_of(manifest: dict[str, Any]) -> int:
    return int(json.loads(manifest["metadata"]["annotations"][manifests.CARD_QUOTA])[L40S])


def why(user: User, queue: str) -> list[str]:
    figures = client_of(user).get(f"{LIST}nights/").context["figures"]
    return [strip_tags(text) for one in figures if one.queue.name == queue for text in one.why]


def ask_for(queue: str, reason: str, gangs: int = 1) -> None:
    """Gangs of a queue that wait for the card of the plan."""
    for gang in Gang.objects.filter(queue__name=queue, gone_at__isnull=True)[:gangs]:
        Gang.objects.filter(pk=gang.pk).update(needs=True, reason_code=reason, cards={f"{H200}|{L40S}": 2})


def test_a_switch_by_day_shows_the_figures_of_the_next_opening_and_leads_to_the_plan(world) -> None:
    client = client_of(world.admin)
    noon = {"name": "noon", "days": list(tide.WEEKDAYS), "start": "12:00", "end": "13:00"}
    document = {"enabled": False, "layers": [noon | {"quota": {LENDER: {L40S: {"add": -2}}}}]}
    write_tide_plan(cluster=world.cluster, name="noons", document=document, actor="tests")
    led = client.post(f"{LIST}noons/switch/", {"enabled": "on"})
    page = " ".join(html.unescape(client.get(led["Location"]).content.decode()).split())
    steps = client.post(f"{led['Location']}steps/?revision=1")
    assert ">2026-03-05 12:00:00 UTC<" in steps.content.decode()
    (one,) = steps.context["steps"]
    assert one["figures"] == [{"queue": LENDER, "card": L40S, "base": 10, "now": 10, "then": 8}]
    assert re.search(rf'<a class="btn" href="{LIST}noons/edit/\?change=\d+">', page)
    assert client.post(f"{LIST}noons/switch/", {})["Location"] == f"{LIST}noons/", "it is off already"


# --- taken back by hand -----------------------------------------------------------------------------------------------


def test_what_an_open_layer_lends_is_taken_back_until_its_next_start(world) -> None:
    client = client_of(world.admin)
    assert f'action="{LIST}nights/take-back/"' in page_of(world.admin)
    led = client.post(f"{LIST}nights/take-back/")
    change = QuotaChange.objects.get(state=ChangeState.DRAFT)
    assert led["Location"] == f"/clusters/demo/changes/{change.pk}/"
    page = client.get(led["Location"]).content.decode()
    said = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert re.search(r"layer night: ended by hand – 2026-03-04 20:1\d UTC", said)
    assert "What would happen at the next session?" in page
    assert "ended_at" not in TidePlan.objects.get().layers[0], "nothing before it is applied"
    act(client, change, "apply", reason="the flood came early", when="now")
    plan = TidePlan.objects.get()
    assert plan.enabled
    assert ENDED.match(plan.layers[0]["ended_at"])
    entry = AuditEntry.objects.get(action="tide_plan.update")
    assert entry.reason == "the flood came early"
    own, now = tide.plan_of(plan.name, document_of(plan)), world.cluster.clock()
    assert tide.open_layers([own], now) == ()
    assert tide.open_layers([own], dt.datetime(2026, 3, 6, 19, tzinfo=dt.UTC)) == ((0, 0),)
    page = page_of(world.admin)
    assert "Layer night was taken back at 2026-03-04 20:1" in page
    assert "It opens again at 2026-03-06 18:00:00 UTC." in page
    assert "take-back" not in page
    assert "No layer is open now." in page


def test_what_a_take_back_announces_is_the_same_on_every_page_in_rest_and_afterwards(world) -> None:
    """The lender uses 9 of its 10, so of the 4 that the layer takes from it only one is lent."""
    hold(LENDER, sent=9, used=9)
    client = client_of(world.admin)

    def written(objects: list[dict[str, Any]]) -> set[tuple[str, int, int]]:
        return {(one["name"], l40s_of(one["before"]), l40s_of(one["after"])) for one in objects}

    said = {(one.queue.name, one.now, one.otherwise) for one in client.get(f"{LIST}nights/").context["figures"]}
    assert (LENDER, 9, 10) in said
    client.post(f"{LIST}nights/take-back/")
    change = QuotaChange.objects.get(state=ChangeState.DRAFT)
    assert written(changes.check(cluster=world.cluster, edits=change.edits, access=ADMIN)["objects"]) == said
    act(client, change, "apply", reason="flood", when="now")
    rows = with_card_quota(Queue.objects.filter(cluster=world.cluster, name__in=[LENDER, TAKER]))
    holds = effective_now(world.cluster, rows)
    assert {(row.name, holds[row.pk][L40S]) for row in rows} == {(queue, then) for queue, _now, then in said}


def test_nothing_is_taken_back_where_nothing_is_open(world) -> None:
    client = client_of(world.admin)
    TidePlan.objects.update(enabled=False)
    assert "take-back" not in page_of(world.admin)
    done = client.post(f"{LIST}nights/take-back/", follow=True)
    assert "no layer of the plan is open now" in done.content.decode()
    assert "ended_at" not in TidePlan.objects.get().layers[0]


def test_only_platform_admins_take_back_and_others_are_told_so(world) -> None:
    client = client_of(world.member)
    assert client.post(f"{LIST}nights/take-back/").status_code == 403
    assert client_of(world.stranger).post(f"{LIST}nights/take-back/").status_code == 404
    said = "Ask a platform admin to change this."
    for user in (world.member, world.auditor):
        page = page_of(user)
        assert said in page
        assert "take-back" not in page
    assert said not in page_of(world.admin)


def test_the_editor_keeps_a_layer_ended_until_its_mark_is_taken_away(world) -> None:
    client = client_of(world.admin)
    applied(client, client.post(f"{LIST}nights/take-back/"))
    plan = TidePlan.objects.get()
    ended = plan.layers[0]["ended_at"]
    assert PlanForm.of("nights", document_of(plan), 1).document() == document_of(plan)
    page = client.get(f"{LIST}nights/edit/").content.decode()
    (box,) = re.findall(r'<input[^>]*name="l0-ended"[^>]*>', page)
    assert "checked" in box
    assert ended in box
    sent = {
        "name": "nights", "position": "0", "time_zone": "UTC", "exceptions": "2026-03-05 none", "enabled": "on",
        "layer": "0", "l0-name": "night", "l0-days": list(tide.WEEKDAYS), "l0-start": "18:00",
        "l0-end": "06:00", "l0-line": ["0", "1"], "l0-x0-queue": LENDER, "l0-x0-card": L40S, "l0-x0-act": "take",
        "l0-x0-cards": "4", "l0-x1-queue": TAKER, "l0-x1-card": L40S, "l0-x1-act": "add", "l0-x1-cards": "6",
    }  # fmt: skip
    first = sent | {"version": str(plan.version), "position": "1", "l0-ended": ended}
    applied(client, client.post(f"{LIST}nights/edit/", first))
    assert TidePlan.objects.get().layers[0]["ended_at"] == ended
    second = sent | {"version": str(plan.version + 1), "position": "1"}
    applied(client, client.post(f"{LIST}nights/edit/", second))
    assert "ended_at" not in TidePlan.objects.get().layers[0]
    wrong = client.post(f"{LIST}nights/edit/", sent | {"version": str(plan.version + 2), "l0-ended": "tonight"})
    assert wrong.status_code == 400
    assert "“tonight” is no moment with its time zone" in html.unescape(wrong.content.decode())


# --- what each queue has ----------------------------------------------------------------------------------------------


def test_the_page_of_a_plan_says_what_each_queue_has_and_would_have_without_it(world) -> None:
    response = client_of(world.admin).get(f"{LIST}nights/")
    shown = {
        (one.queue.name, one.base, one.now, one.otherwise, one.used // 1000) for one in response.context["figures"]
    }
    assert shown == {(TAKER, 14, 20, 14, 12), (LENDER, 10, 6, 10, 3)}
    assert "Without this plan" in response.content.decode()
    own = {one.queue.name for one in client_of(world.member).get(f"{LIST}nights/").context["figures"]}
    assert own == {LENDER}


def test_after_it_is_paused_it_says_what_each_would_have_and_when_it_would_step_next(world) -> None:
    client = client_of(world.admin)
    applied(client, client.post(f"{LIST}nights/switch/"))
    Queue.objects.update(tide={})
    response = client.get(f"{LIST}nights/")
    shown = {(one.queue.name, one.now, one.otherwise) for one in response.context["figures"]}
    assert shown == {(TAKER, 14, 20), (LENDER, 10, 6)}
    page = " ".join(response.content.decode().split())
    assert "If it were on" in page
    assert "If it were on, at 2026-03-05 06:00:00 UTC, by the plans:" in page
    assert "What became of the open layer" not in page


# --- why nothing is lent ----------------------------------------------------------------------------------------------


def test_a_layer_that_lends_says_whether_anybody_asks_for_it(world) -> None:
    assert why(world.admin, LENDER) == [LENT, "No training gang waits for L40S, so what it gives up is not asked for."]
    assert why(world.member, LENDER) == [LENT, "No training gang of yours waits for L40S."]
    ask_for("research-training", "WaitingForQuota", 2)
    assert why(world.admin, LENDER) == [
        LENT,
        "2 gangs wait for L40S: Waits for quota 2.",
        "They wait for quota of their own queues. What inference gives up raises no quota of training: a layer does.",
    ]
    assert why(world.member, LENDER) == [LENT, "No training gang of yours waits for L40S."], (
        "those of others are not theirs"
    )
    ask_for("search-training", "Fragmented")
    assert why(world.admin, LENDER) == [LENT, "3 gangs wait for L40S: Waits for quota 2, Cards are scattered 1."]


@pytest.mark.parametrize("who", ["admin", "member"])
def test_who_waits_is_a_link_to_so_many_gangs_of_the_list(world, who: str) -> None:
    ask_for("research-training", "WaitingForQuota", 2)
    ask_for("search-training", "Fragmented")
    client = client_of(getattr(world, who))
    page = client.get(f"{LIST}nights/").content.decode()
    link, n = re.search(r'href="(/clusters/demo/gangs/[^"]*)">(\d+) gangs? waits? for L40S', page).groups()
    gangs = client.get(html.unescape(link)).content.decode()
    assert len(re.findall(r"<th scope=\"row\"", gangs)) == int(n) == (3 if who == "admin" else 1)


def test_what_the_lender_uses_itself_stays_with_it(world) -> None:
    hold(LENDER, sent=9, used=9)
    (said, lent, _asked) = why(world.admin, LENDER)
    assert said == (
        "It uses 9 itself, and what inference uses is never taken from it: 3 of the 4 that it gives up stay with it "
        "until it uses less."
    )
    assert lent == "Lent now: 1."
    hold(LENDER, sent=10, used=10)
    assert [text[:12] for text in why(world.admin, LENDER)] == ["It uses 10 i"], (
        "nothing is lent, so no borrower is named"
    )


def test_a_figure_that_the_cluster_does_not_have_yet_says_what_stands_in_the_way(world) -> None:
    hold(LENDER, sent=10, used=3)
    assert why(world.admin, LENDER) == ["It is being sent: the cluster has not taken it yet."]
    Queue.objects.filter(name=LENDER).update(sync_state=SyncState.FAILED, sync_error="denied by webhook")
    assert why(world.admin, LENDER) == ["The cluster does not take what was sent: denied by webhook"]
    Queue.objects.filter(name=LENDER).update(sync_state=SyncState.PENDING, sync_error="")
    Cluster.objects.filter(pk=world.cluster.pk).update(mode=ClusterMode.OBSERVE)
    assert why(world.admin, LENDER) == ["In mode observe nothing is sent to the cluster: its own figures hold there."]


def test_another_plan_that_decides_the_figure_is_said(world) -> None:
    layer = NIGHT | {"quota": {LENDER: {L40S: {"set": 10}}}}
    document = {"enabled": True, "position": 5, "layers": [layer]}
    write_tide_plan(cluster=world.cluster, name="never", document=document, actor="tests")
    hold(LENDER, sent=10, used=3)
    assert why(world.admin, LENDER) == ["Another plan that is open now decides this figure."]


def test_a_queue_that_gets_more_says_what_waits_and_whether_it_uses_it(world) -> None:
    assert why(world.admin, TAKER) == ["No gang waits in it for L40S."]
    hold(TAKER, sent=17, used=17)
    assert why(world.admin, TAKER) == ["3 of the 6 more wait until inference gives them up."]
    Queue.objects.filter(name=TAKER).update(sync_state=SyncState.PENDING)
    assert why(world.admin, TAKER) == ["It is being sent: the cluster has not taken it yet."]
    hold(TAKER, sent=20, used=20)
    assert why(world.admin, TAKER) == []
