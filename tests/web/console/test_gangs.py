"""The pages of gangs: why, what would help and who may know it, misdirected gangs, evictions, timelines, export."""

from __future__ import annotations

import csv
import datetime as dt
import json

import pytest
from django.db import connection
from django.db.models import Q
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from scheduler_core.model.reason import ReasonCode
from tests.web.console import world as story
from tests.web.console.cast import A100, H200, empty_cluster
from tests.web.console.test_pages import MAX_QUERIES, client_of
from tidesched_web.accounts.models import Membership
from tidesched_web.audit.models import AuditEntry
from tidesched_web.quota.models import NamespaceGrant
from tidesched_web.scheduling.models import Alert, Reclaim
from tidesched_web.scheduling.services import ENDS_AFTER, RISES_AFTER
from tidesched_web.scheduling.tasks import retain
from tidesched_web.workloads.models import Gang, GangPod, GangRemedy, GangState, ReasonFigures
from tidesched_web.workloads.remedies import basis, remedy_of
from tidesched_web.workloads.remedy_selectors import due_gangs, with_remedies

pytestmark = pytest.mark.django_db


def page_of(world: story.World, key: str, who: str = "admin") -> str:
    response = client_of(getattr(world, who)).get(f"/clusters/demo/gangs/{world.gangs[key].pk}/")
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def listed(world: story.World, who: str = "admin", query: str = "") -> str:
    return " ".join(client_of(getattr(world, who)).get(f"/clusters/demo/gangs/{query}").content.decode().split())


# -- what would help ---------------------------------------------------------------------------------------------------


def test_what_would_help_stands_on_the_page_and_in_the_list(world) -> None:
    said = "It would start if the quota of queue search-training were 16 × A100-SXM4-80GB higher."
    page = page_of(world, "search/rank-lap2-013")
    assert said in page
    found = GangRemedy.objects.get(gang=world.gangs["search/rank-lap2-013"])
    when = f"{found.at:%Y-%m-%d %H:%M:%S} UTC by the cluster&#x27;s clock"
    assert f"worked out over session {world.sessions[-1].number} · {when}" in page
    assert said in listed(world)
    assert f"worked out over session {world.sessions[-1].number}" in listed(world)
    assert "Try it in the editor" in page


def test_who_sees_no_other_tenant_learns_no_name_from_a_remedy(world) -> None:
    key = "search/embed-lap2-012"
    assert "as soon as research/llm-pretrain-lap2-004 ends" in page_of(world, key)
    for shown in (page_of(world, key, "member"), listed(world, "member")):
        assert "as soon as a gang of another tenant ends" in shown
        assert "llm-pretrain" not in shown
    export = client_of(world.member).get(f"/clusters/demo/gangs/{world.gangs[key].pk}/?format=json").content.decode()
    assert "llm-pretrain" not in export
    assert "llm-pretrain" not in client_of(world.member).get("/clusters/demo/gangs/?format=csv").content.decode()


@pytest.mark.parametrize(
    "over", [{"state": GangState.FINISHED}, {"gone_at": timezone.now()}, {"bound": 0, "phase": "Pending"}]
)
def test_the_end_of_a_gang_that_is_over_is_no_remedy(world, over) -> None:
    key, named = "search/embed-lap2-012", world.gangs["research/llm-pretrain-lap2-004"]
    Gang.objects.filter(pk=named.pk).update(**over)
    for shown in (page_of(world, key), listed(world)):
        assert "as soon as research/llm-pretrain-lap2-004 ends" not in shown
    assert "What would help is being worked out again" in page_of(world, key)
    row = client_of(world.admin).get(f"/api/v1/gangs/{world.gangs[key].pk}/").json()
    assert row["reason"]["remedy"] is None
    assert row["reason"]["remedy_worked_out"] is None
    assert world.gangs[key].pk in [gang.pk for gang in due_gangs(world.cluster.pk, timezone.now())]


def test_what_is_missing_is_told_with_the_figures_of_the_session_that_is_named(world) -> None:
    gang = world.gangs["vision/segment-lap2-017"]
    lacks(gang, 3)
    GangRemedy.objects.filter(gang=gang).update(numbers=gang.reason_numbers | {"short": 3})
    now = gang.reason_numbers | {"short": 5, "free": 9}
    Gang.objects.filter(pk=gang.pk).update(reason_numbers=now)
    assert "3 × L40S are missing on nodes that hold its pods. It needs 12 × L40S there; free in all: 14," in page_of(
        world, "vision/segment-lap2-017"
    )


def lacks(gang: Gang, short: float, **more: object) -> None:
    """So much is missing, in its row and when the answer was worked out."""
    numbers = gang.reason_numbers | {"short": short} | more
    Gang.objects.filter(pk=gang.pk).update(reason_numbers=numbers)
    GangRemedy.objects.filter(gang=gang).update(basis=basis(gang.reason_code, numbers))


def test_where_no_single_change_helps_the_page_says_what_is_missing(world) -> None:
    gang = world.gangs["vision/segment-lap2-017"]
    assert "No single change that was tried helps." in page_of(world, "vision/segment-lap2-017")
    lacks(gang, 3)
    said = (
        "No single change that was tried helps: 3 × L40S are missing on nodes that hold its pods. It needs 12 × L40S "
        "there; free in all: 14, but not together."
    )
    assert said in page_of(world, "vision/segment-lap2-017")
    GangRemedy.objects.filter(gang=gang).update(
        until=world.cluster.clock() + dt.timedelta(minutes=4), until_why="pods_leave"
    )
    assert "The pods that leave for it are gone at about" in page_of(world, "vision/segment-lap2-017")


@pytest.mark.parametrize(
    "stale", [{"reason_code": "WaitingForCards"}, {"reason_numbers": {"resource": A100, "requested": 32, "limit": 40}}]
)
def test_an_answer_to_other_figures_is_not_shown(world, stale) -> None:
    gang = world.gangs["search/rank-lap2-013"]
    Gang.objects.filter(pk=gang.pk).update(**stale)
    assert "higher." not in page_of(world, "search/rank-lap2-013")


def test_an_old_answer_is_not_shown(world) -> None:
    GangRemedy.objects.update(worked_out_at=timezone.now() - dt.timedelta(minutes=20))
    assert "higher." not in page_of(world, "search/rank-lap2-013")
    assert "What would help is being worked out again" in page_of(world, "search/rank-lap2-013")
    GangRemedy.objects.all().delete()
    assert "What would help is being worked out." in page_of(world, "search/rank-lap2-013")


@pytest.mark.parametrize(
    ("remedy", "holds"),
    [
        ({"change": "gang_ends", "gang": "research/llm-pretrain-lap2-004"}, {6: True, 5: True, 7: False}),
        ({"change": "quota", "queue": "q", "card": H200, "by": 6}, {6: True, 5: False, 7: False}),
        (None, {6: True, 5: False, 7: True}),
    ],
)
def test_an_answer_holds_as_long_as_what_is_missing_does_not_speak_against_it(world, remedy, holds) -> None:
    gang = world.gangs["search/embed-lap2-012"]
    lacks(gang, 6)
    GangRemedy.objects.filter(gang=gang).update(remedy=remedy)
    for short, shown in holds.items():
        Gang.objects.filter(pk=gang.pk).update(reason_numbers=gang.reason_numbers | {"short": short})
        found = with_remedies(Gang.objects.all()).get(pk=gang.pk)
        assert (remedy_of(found, timezone.now()) is not None) is shown, short


def test_an_answer_that_names_a_gang_which_holds_the_cards_by_now_is_not_shown(world) -> None:
    """It does not come before the one that waits any more; another holder says nothing against the answer."""
    gang, name = world.gangs["search/embed-lap2-012"], "search/embed-lap2-012"
    GangRemedy.objects.filter(gang=gang).update(remedy=None, goes_first="search/rank-v7")
    lacks(gang, 6)
    for holder, shown in {"shop/ads-bid": True, "search/rank-v7": False}.items():
        numbers = gang.reason_numbers | {"short": 6, "holders": [{"gang": holder, "queue": "q", "amount": 6}]}
        Gang.objects.filter(pk=gang.pk).update(reason_numbers=numbers)
        assert ("which comes before it in the order" in page_of(world, name)) is shown, holder


def test_all_figures_of_a_list_are_of_a_session_that_is_named(world) -> None:
    at = world.cluster.clock()
    ReasonFigures.objects.create(cluster=world.cluster, number=4711, at=at)
    gang = world.gangs["search/rank-lap2-013"]
    when = f"{at:%Y-%m-%d %H:%M:%S} UTC by the cluster&#x27;s clock"
    assert listed(world).count("figures of session") == 1
    assert f"figures of session 4711, {when}" in listed(world)
    assert f"figures of session 4711, {when}" in page_of(world, gang.key)
    Gang.objects.filter(pk=gang.pk).update(figures_number=4713, figures_at=at)
    assert listed(world).count("figures of session") == 2, "one row is newer and says so"
    assert f"figures of session 4713, {when}" in page_of(world, gang.key)
    Gang.objects.filter(pk=gang.pk).update(position=1)
    for path in ("", f"queues/{gang.queue_name}/"):
        page = client_of(world.admin).get(f"/clusters/demo/{path}").content.decode()
        assert page.count("figures of session 4711") == 1, path
        assert page.count(f"figures of session 4713, {when}") == 1, path
    rows = listed(world, query="?format=csv")
    assert "4713" in rows
    assert "4711" in rows


def test_a_gang_that_runs_is_told_of_its_further_pods(world) -> None:
    gang = world.gangs["search/rank-lap2-013"]
    Gang.objects.filter(pk=gang.pk).update(state=GangState.RUNNING, replicas=14, ready=13)
    said = "1 more pod of it would start if the quota of queue search-training were 16 × A100-SXM4-80GB higher."
    assert said in page_of(world, "search/rank-lap2-013")
    assert said in listed(world)


def test_a_gang_that_runs_and_waits_for_a_further_pod_is_among_those_that_hold_cards(world) -> None:
    gang = world.gangs["search/rank-lap2-013"]
    Gang.objects.filter(pk=gang.pk).update(state=GangState.RUNNING, replicas=14, bound=13)
    page = client_of(world.admin).get(f"/clusters/demo/queues/{gang.queue_name}/").content.decode()
    waits, _who, holds = page.partition("Who holds cards")
    assert all(gang.key in part for part in (waits, holds))
    assert all("runs in part: 13 of 14 pods have their cards" in part for part in (waits, holds))
    assert "1 of them is counted in both: it runs in part and waits for the rest." in " ".join(page.split())
    there = Gang.objects.filter(queue=gang.queue_id, gone_at=None).filter(Q(needs=True) | Q(state=GangState.RUNNING))
    assert f"{there.count()} gangs are still in it." in page, "a gang that runs in part is one gang"


def test_why_no_end_of_another_gang_helps_is_said(world) -> None:
    gang = world.gangs["vision/segment-lap2-017"]
    GangRemedy.objects.filter(gang=gang).update(goes_first="research/llm-pretrain-lap2-004", held_by_services=28)
    page = page_of(world, "vision/segment-lap2-017")
    assert "would go to research/llm-pretrain-lap2-004 first, which comes before it in the order." in page
    assert "Inference holds 28 × L40S until its services shrink." in page
    assert "More quota would not help: cards are free, but scattered over nodes." in page
    assert "the cards are in use" not in page


def test_what_is_short_of_cards_that_are_scattered_is_said_beside_how_many_are_free(world) -> None:
    lacks(world.gangs["vision/segment-lap2-017"], 10)
    page = page_of(world, "vision/segment-lap2-017")
    assert '<dt>Find no node with room for a whole pod</dt><dd class="num big">10</dd>' in page
    assert "Short of" not in page


def test_a_gang_that_left_before_it_ran_is_not_called_finished(world) -> None:
    gang = world.gangs["vision/segment-lap2-017"]
    left = {"state": GangState.FINISHED, "gone_at": timezone.now(), "needs": False, "reason_code": "", "bound": 0}
    ran = {"started_at": world.cluster.clock()}
    for values, word in (
        ({"phase": "Pending"}, "Left without running"), ({"phase": "Inqueue"}, "Left without running"),
        ({"phase": "Completed"}, "Finished"), ({"phase": "Pending", **ran}, "Finished"),
        ({"phase": "Inqueue", "bound": 2}, "Finished"), ({"phase": "Pending", "gone_at": None}, "Finished"),
    ):  # fmt: skip
        Gang.objects.filter(pk=gang.pk).update(**{"started_at": None, **left, **values})
        for page in (page_of(world, "vision/segment-lap2-017"), listed(world, query="?q=segment-lap2-017")):
            part = page.partition('id="live"')[2]
            assert ("Left without running</span>" in part, "Finished</span>" in part) == (
                word == "Left without running", word == "Finished",
            ), values  # fmt: skip
        answer = client_of(world.admin).get("/clusters/demo/gangs/?q=segment-lap2-017&format=csv")
        (row,) = csv.DictReader(answer.content.decode("utf-8-sig").splitlines())
        assert (row["state"], row["left_without_running"]) == ("finished", str(word != "Finished"))


def test_before_the_first_session_no_filter_is_blamed_for_the_empty_list(world) -> None:
    empty_cluster("hall")
    for query in ("?needs=yes", ""):
        page = client_of(world.admin).get(f"/clusters/hall/gangs/{query}").content.decode()
        assert "Gangs are read with the first session." in page, query
        assert "Remove a filter" not in page, query


def test_cards_that_each_pod_needs_on_one_node_are_said(world) -> None:
    gang = world.gangs["search/rank-lap2-013"]
    said = "Each of its pods needs 4 × H200 free on one node; cards on several nodes do not add up for it."
    assert "free on one node" not in page_of(world, "search/rank-lap2-013"), "quota is what it waits for"
    Gang.objects.filter(pk=gang.pk).update(
        reason_code="WaitingForCards", reason_numbers={"resource": H200, "requested": 16, "free": 10, "short": 6}
    )
    for sizes, there in (((4000, 4000), True), ((1000, 1000), False), ((4000, 2000), False)):
        for pod, size in zip(gang.pods.order_by("name")[:2], sizes, strict=True):
            GangPod.objects.filter(pk=pod.pk).update(card=H200, card_milli=size)
        assert (said in page_of(world, "search/rank-lap2-013")) == there, sizes


def test_a_tenant_admin_reads_what_they_may_do(world) -> None:
    assert "What you may do" not in page_of(world, "search/rank-lap2-013", "member")
    Membership.objects.filter(user=world.member).update(role="admin")
    page = page_of(world, "search/rank-lap2-013", "member")
    assert "You may raise the quota of queue search-training as far as your tenant has room." in page
    assert "raise your tenant in the editor too: that asks a platform admin for it." in page
    assert "What you may do" not in page_of(world, "search/rank-lap2-013", "admin")


def test_a_tenant_admin_is_told_to_end_a_gang_of_their_own_only_where_that_helps(world) -> None:
    Membership.objects.filter(user=world.member).update(role="admin")
    gang = world.gangs["search/rank-lap2-013"]
    numbers = gang.reason_numbers | {"holders": [{"gang": "search/rank-v7", "queue": "search-training", "amount": 6}]}
    Gang.objects.filter(pk=gang.pk).update(reason_numbers=numbers)
    for remedy, told in (({"change": "gang_ends", "gang": "search/rank-v7"}, True), (None, False)):
        kept = basis(gang.reason_code, numbers)
        GangRemedy.objects.filter(gang=gang).update(remedy=remedy, basis=kept)
        page = page_of(world, "search/rank-lap2-013", "member")
        assert ("A gang of yours holds what it waits for: search/rank-v7 (6" in page) is told


# What a page says beside a reason, by its code; the other codes have none of it.
BY_QUOTA = {"WaitingForQuota", "ExceedsMaxQuota"}
BY_CARDS = {"WaitingForCards", "Fragmented", "OverCommitted", "ReclaimForbidden"}
BY_PROMISES = {"WaitingForQuota", "OverCommitted", "WaitingForCards", "BehindHigherPriority"}


def test_each_reason_has_the_advice_that_is_its_own(world, subtests) -> None:
    Membership.objects.filter(user=world.member).update(role="admin")
    gang = world.gangs["search/rank-lap2-013"]
    for pod in gang.pods.all():
        GangPod.objects.filter(pk=pod.pk).update(card=A100, card_milli=4000)
    Gang.objects.filter(name="distil-lap2-002").update(
        state=GangState.ADMITTED, phase="Inqueue", admitted_at=world.cluster.clock(), cards={A100: 8}
    )
    for code in ReasonCode:
        with subtests.test(code.value):
            Gang.objects.filter(pk=gang.pk).update(reason_code=code.value)
            page = page_of(world, "search/rank-lap2-013", "member")
            assert ("You may raise the quota of queue search-training" in page) == (code in BY_QUOTA)
            assert ("The quota is no obstacle: the cards are in use." in page) == (code in BY_CARDS - {"Fragmented"})
            assert ("The quota is no obstacle: enough cards are free, but scattered" in page) == (code == "Fragmented")
            assert ("Each of its pods needs 4 × A100-SXM4-80GB free on one node" in page) == (code in BY_CARDS)
            assert ("promised, does not run" in page) == (code in BY_PROMISES)


# -- misdirected gangs -------------------------------------------------------------------------------------------------


def misdirect(world: story.World, key: str, queue: str, **values: object) -> Gang:
    """A gang of namespace `search`, which tenant Search was granted, in a queue that it may not use."""
    NamespaceGrant.objects.get_or_create(
        cluster=world.cluster, namespace="search", queue=world.queues["search-training"]
    )
    gang = world.gangs[key]
    Gang.objects.filter(pk=gang.pk).update(queue=world.queues.get(queue), queue_name=queue, **values)
    return gang


def test_a_tenant_sees_its_gang_in_a_mistyped_queue_and_which_one_it_may_have_meant(world) -> None:
    message = "Cannot be scheduled as written: queue search-trainin does not exist."
    gang = misdirect(
        world,
        "search/rank-lap2-013",
        "search-trainin",
        reason_code="Misconfigured",
        reason_numbers={},
        reason_message=message,
    )
    page = page_of(world, "search/rank-lap2-013", "member")
    assert message in page
    assert "Did you mean queue <strong>search-training</strong>?" in page
    assert message in listed(world, "member")
    assert "its page says" not in listed(world)
    stranger = client_of(world.stranger)
    assert stranger.get(f"/clusters/demo/gangs/{gang.pk}/").status_code == 404
    assert "rank-lap2-013" not in listed(world, "stranger")


def test_a_tenant_sees_its_gang_in_anothers_queue_without_that_queues_figures(world) -> None:
    numbers = {"resource": H200, "requested": 77, "limit": 41717, "allocated": 23, "short": 36}
    gang = misdirect(
        world,
        "search/embed-lap2-012",
        "research-training",
        reason_code="ExceedsMaxQuota",
        reason_numbers=numbers,
        reason_message="Needs 77, the quota is 41717.",
    )
    for shown in (page_of(world, "search/embed-lap2-012", "member"), listed(world, "member")):
        assert "research-training" in shown, "its own PodGroup says so"
        assert "41717" not in shown
        assert "41,717" not in shown
    export = client_of(world.member).get(f"/clusters/demo/gangs/{gang.pk}/?format=json").json()
    assert export["reason"]["numbers"] == {"resource": H200, "requested": 77}
    assert "the quota is 41,717" in page_of(world, "search/embed-lap2-012")
    assert "search/embed-lap2-012" in listed(world, "stranger"), "it is in a queue of Research"


def test_a_gang_of_a_shared_namespace_in_anothers_granted_queue_is_not_there(world) -> None:
    gang = misdirect(world, "search/embed-lap2-012", "research-training")
    NamespaceGrant.objects.create(cluster=world.cluster, namespace="search", queue=world.queues["research-training"])
    assert client_of(world.member).get(f"/clusters/demo/gangs/{gang.pk}/").status_code == 404


# -- evictions, promises, timeline -------------------------------------------------------------------------------------


def evict(world: story.World, key: str, times: int, *, needed: float, freed: float) -> None:
    reclaimer = next(row for row in world.reclaims if row.queue_name)
    for _ in range(times):
        row = Reclaim.objects.create(
            cluster=world.cluster,
            session=reclaimer.session,
            at=world.cluster.clock() - dt.timedelta(minutes=9),
            wall_at=timezone.now(),
            action="reclaim",
            reclaimer="search/rank-v7",
            queue=world.queues["search-rank-inference"],
            queue_name="search-rank-inference",
            needed={"cards": {H200: needed}},
            freed={"cards": {H200: freed}},
            rule="",
        )
        gang = world.gangs[key]
        row.victims.create(gang=key, queue=gang.queue, queue_name=gang.queue_name, cards={H200: freed})


def test_a_gang_that_was_evicted_again_and_again_is_marked(world) -> None:
    evict(world, "research/llm-pretrain-lap2-004", 3, needed=4, freed=8)
    for shown in (page_of(world, "research/llm-pretrain-lap2-004"), listed(world)):
        assert "evicted 3 times" in shown
        assert "8 freed for 4" in shown
    owner = page_of(world, "research/llm-pretrain-lap2-004", "stranger")
    assert "evicted 3 times" in owner
    assert "freed for" not in owner, "how much another tenant needed is not for them"


def test_the_cool_down_of_an_evicted_gang_is_said(world) -> None:
    gang = world.gangs["research/llm-pretrain-lap2-004"]
    Gang.objects.filter(pk=gang.pk).update(spared_until=world.cluster.clock() + dt.timedelta(minutes=5))
    assert "protected from eviction until" in page_of(world, "research/llm-pretrain-lap2-004")
    over = world.cluster.clock() - dt.timedelta(minutes=5)
    Gang.objects.filter(pk=gang.pk).update(spared_until=over)
    page = page_of(world, "research/llm-pretrain-lap2-004")
    assert "protected from eviction until" not in page
    assert f"over since {over:%Y-%m-%d %H:%M:%S} UTC by the cluster&#x27;s clock: it may be evicted again" in page


def test_more_holders_than_a_session_names_lead_to_the_list_of_all(world) -> None:
    gang, held = world.gangs["search/embed-lap2-012"], []
    card = gang.reason_numbers["resource"]
    others = Gang.objects.filter(cards__has_key=card, state__in=("running", "admitted"), gone_at__isnull=True)
    for number in range(12):
        held.append(Gang.objects.create(
            cluster=world.cluster, namespace="search", name=f"holder-{number}", uid=f"h{number}", queue=gang.queue,
            queue_name=gang.queue_name, service_type="training", priority=1, min_member=1, replicas=1, state="running",
            cards={card: 1}, submitted_at=world.cluster.clock(), seen_at=timezone.now(),
        ))  # fmt: skip
    named = [{"gang": one.key, "queue": one.queue_name, "amount": 1} for one in held]
    numbers = gang.reason_numbers | {"holders": named[:9]}
    Gang.objects.filter(pk=gang.pk).update(reason_code="WaitingForCards", reason_numbers=numbers)
    assert "all that hold it" not in page_of(world, "search/embed-lap2-012"), "these are all"
    Gang.objects.filter(pk=gang.pk).update(reason_numbers=numbers | {"holders": named[:10]})
    more = others.exclude(pk=gang.pk).count() - 10
    page = page_of(world, "search/embed-lap2-012")
    assert f"and {more} more: all that hold it" in page
    assert f'href="/clusters/demo/gangs/?card={card}&amp;state=running"' in page
    assert "All that hold it, as far as you see them" in page_of(world, "search/embed-lap2-012", "member")


def test_gangs_of_one_name_show_their_whole_namespaces(world) -> None:
    gang = world.gangs["search/embed-lap2-012"]
    assert "namesakes" not in listed(world)
    Gang.objects.filter(pk=world.gangs["search/rank-lap2-013"].pk).update(namespace="search-too", name=gang.name)
    page = listed(world)
    for key in (gang.key, f"search-too/{gang.name}"):
        row = page.partition(f'title="{key}"')[0].rpartition("<tr>")[2]
        assert 'class="named namesakes"' in row, key
    assert page.count("namesakes") == 2


def test_a_promise_that_is_not_used_is_a_holder_with_its_age(world) -> None:
    gang = world.gangs["search/rank-lap2-013"]
    since = world.cluster.clock() - dt.timedelta(hours=19)
    Gang.objects.filter(name="distil-lap2-002").update(
        state=GangState.ADMITTED, phase="Inqueue", admitted_at=since, cards={A100: 8}
    )
    page = page_of(world, "search/rank-lap2-013")
    holders = page.partition('id="holders"')[2].partition("</table>")[0]
    assert "search/distil-lap2-002" in holders
    assert "promised, does not run" in holders
    assert "19 h" in holders
    assert gang.reason_code == "WaitingForQuota"


def test_an_unused_promise_can_be_withdrawn_where_it_is_shown(world) -> None:
    admitted = Gang.objects.filter(name="distil-lap2-002")
    since = world.cluster.clock() - dt.timedelta(hours=12)
    admitted.update(state=GangState.ADMITTED, phase="Inqueue", admitted_at=since, cards={A100: 8}, bound=0)
    address = f"/clusters/demo/gangs/{admitted.get().pk}/"
    link = f'href="{address}withdraw/"'
    for page in (address, f"/clusters/demo/queues/{admitted.get().queue_name}/"):
        assert link in client_of(world.admin).get(page).content.decode()
        assert link not in client_of(world.auditor).get(page).content.decode()
    assert link in page_of(world, "search/rank-lap2-013"), "among those who hold what it waits for"
    client = client_of(world.admin)
    for fact in ({"reason_code": "WaitingForReclaim"}, {"bound": 1}):
        before = admitted.values(*fact).get()
        admitted.update(**fact)
        assert link not in client.get(address).content.decode(), "cards are taken back for it, or it has some"
        assert client.post(f"{address}withdraw/", {"reason": "Others wait."}).status_code == 400
        admitted.update(**before)
    assert client.post(f"{address}withdraw/", {"reason": ""}).status_code == 400
    assert client.post(f"{address}withdraw/", {"reason": "Others wait."}).status_code == 302
    until = admitted.get().withdrawn_until
    assert until > world.cluster.clock()
    assert "Its promise was withdrawn" in client.get(address).content.decode()
    entry = AuditEntry.objects.get(action="promise.withdraw")
    assert (entry.object_label, entry.reason) == ("search/distil-lap2-002", "Others wait.")


def test_a_promise_that_is_not_used_while_others_wait_is_an_alert_until_it_is(world) -> None:
    admitted = Gang.objects.filter(name="distil-lap2-002")

    client = client_of(world.admin)

    def alerts_after(minutes: int, **now: object) -> list[str]:
        """The queues that it is said of once the task that watches has run."""
        since = world.cluster.clock() - dt.timedelta(minutes=minutes)
        admitted.update(
            **{"state": GangState.ADMITTED, "phase": "Inqueue", "cards": {A100: 8}, "admitted_at": since} | now
        )
        retain()
        answer = client.get("/api/v1/alerts/", {"code": "promise_unused", "state": "open"})
        return [row["numbers"]["queue"] for row in answer.json()["results"]]

    Gang.objects.filter(state=GangState.ADMITTED).exclude(name="distil-lap2-002").update(state=GangState.RUNNING)
    assert alerts_after(29) == []
    assert alerts_after(31) == [admitted.get().queue_name]
    page = " ".join(client.get("/clusters/demo/alerts/").content.decode().split())
    assert f"8 × A100-SXM4-80GB of queue {admitted.get().queue_name} are promised to gangs that do not run" in page
    waits = Gang.objects.filter(queue=admitted.get().queue, reason_code="WaitingForQuota")
    assert alerts_after(31, state=GangState.RUNNING, phase="Running") != [], "it may be so for a moment only"
    Alert.objects.filter(code="promise_unused").update(lapsed_at=timezone.now() - ENDS_AFTER)
    assert alerts_after(31, state=GangState.RUNNING, phase="Running") == []
    lately = world.cluster.clock() - RISES_AFTER + dt.timedelta(seconds=30)
    since = dict(waits.values_list("pk", "reason_since"))
    waits.update(reason_since=lately)
    assert alerts_after(31) == [], "no gang has waited for that quota for long"
    for pk, moment in since.items():
        Gang.objects.filter(pk=pk).update(reason_since=moment)
    assert alerts_after(31) != []
    assert waits.update(reason_code="NoNodeMatches") > 0
    assert alerts_after(31) != []
    Alert.objects.filter(code="promise_unused").update(lapsed_at=timezone.now() - ENDS_AFTER)
    assert alerts_after(31) == [], "no gang waits for that quota"


def test_an_alert_whose_cause_comes_and_goes_is_raised_once(world) -> None:
    """Looked at once a minute: a gang that waits for the quota in every other minute only."""
    since = world.cluster.clock() - dt.timedelta(minutes=31)
    Gang.objects.filter(state=GangState.ADMITTED).exclude(name="distil-lap2-002").update(state=GangState.RUNNING)
    Gang.objects.filter(name="distil-lap2-002").update(
        state=GangState.ADMITTED, phase="Inqueue", cards={A100: 8}, admitted_at=since
    )
    waits = Gang.objects.filter(queue__gangs__name="distil-lap2-002", reason_code="WaitingForQuota")
    ids = list(waits.values_list("pk", flat=True))
    for code in ("WaitingForQuota", "WaitingForCards") * 4:
        Gang.objects.filter(pk__in=ids).update(reason_code=code)
        retain()
    rows = Alert.objects.filter(code="promise_unused")
    assert [alert.resolved_at for alert in rows] == [None]


def test_a_gang_that_waits_since_it_was_submitted_says_so_once(world) -> None:
    facts = page_of(world, "search/embed-lap2-012").partition('id="facts-title"')[2].partition("</dl>")[0]
    assert "Submitted, and waits since" in facts
    assert facts.count("355") + facts.count("5 h 55 min") == 1


def test_in_what_a_node_is_too_small(world) -> None:
    GangRemedy.objects.filter(gang=world.gangs["foundation/base-lap2-002"]).update(
        too_large=[{"resource": "memory", "asked": 2**40, "largest": 2**39}]
    )
    page = page_of(world, "foundation/base-lap2-002")
    assert "Each pod asks for 1,024 GiB memory; the largest node has 512 GiB." in page


def test_a_code_that_these_pages_do_not_know_shows_its_own_words(world) -> None:
    gang = world.gangs["search/embed-lap2-012"]
    Gang.objects.filter(pk=gang.pk).update(
        reason_code="SomethingNew", reason_numbers={}, reason_message="Waits for the moon."
    )
    for shown in (page_of(world, "search/embed-lap2-012"), listed(world)):
        assert "SomethingNew" in shown
        assert "Waits for the moon." in shown


def test_the_export_of_one_gang(world) -> None:
    gang = world.gangs["search/embed-lap2-012"]
    answer = client_of(world.admin).get(f"/clusters/demo/gangs/{gang.pk}/?format=json")
    document = json.loads(answer.content)
    assert document["reason"]["code"] == "WaitingForCards"
    assert document["would_help"].startswith("It would start as soon as")
    assert len(document["pods"]) == 2
    assert "attachment" in answer["Content-Disposition"]


@pytest.mark.parametrize("who", ["admin", "member"])
def test_the_page_of_each_gang_costs_few_queries(world, who, subtests) -> None:
    client = client_of(getattr(world, who))
    client.get("/clusters/")
    for key in ("search/embed-lap2-012", "search/rank-lap2-013", "search/rank-v7"):
        with subtests.test(key), CaptureQueriesContext(connection) as queries:
            assert client.get(f"/clusters/demo/gangs/{world.gangs[key].pk}/").status_code == 200
            assert len(queries) <= MAX_QUERIES, [query["sql"][:160] for query in queries]
