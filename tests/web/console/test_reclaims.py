"""Reclaims: the receipt of one, and what of it each reader sees."""

from __future__ import annotations

import csv
import datetime as dt
import html
import re

import pytest

from tests.web.console.cast import H200, empty_cluster
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.selectors import access_of
from tidesched_web.audit import services as audit
from tidesched_web.quota.models import TideStep
from tidesched_web.scheduling import reclaim_history_selectors
from tidesched_web.scheduling.models import Reclaim, ReclaimVictim
from tidesched_web.scheduling.sight import receipt_within_sight

RANK = "search/rank-v8"


pytestmark = pytest.mark.django_db


def _mine(world):
    return next(row for row in world.reclaims if row.reclaimer == RANK)


def _page(world, who) -> str:
    return client_of(who).get(f"/clusters/demo/reclaims/{_mine(world).pk}/").content.decode()


def test_the_page_shows_quota_and_use_at_that_moment_and_what_each_gang_would_have_cost(world) -> None:
    page = _page(world, world.auditor)
    for said in (
        "Was it within the quota at that moment?", "gains within its quota", "its cards were taken back", "base 32",
        "Why these gangs and no cheaper ones?", "search/embed-lap2-007", "foundation/base-lap2-001",
        "eviction would not make enough room: on gpu-1 it frees 4 of H200, 0 more free, a pod needs 8, 4 short",
        "gpu-3: frees 4, 1 more free, a pod needs 8", "2 more nodes", "37 more gangs came into question.",
    ):  # fmt: skip
        assert said in page, said
    costs = page[page.index("Why these gangs") :]
    order = ["foundation/base-lap2-001", "research/llm-pretrain-lap2-003", "search/embed-lap2-007"]
    assert sorted(order, key=costs.index) == order, "the cheapest first, the one that fell among them"


def test_a_reader_of_one_side_sees_that_sides_numbers_alone(world) -> None:
    gainer, loser = _page(world, world.member), _page(world, world.stranger)
    assert "gains within its quota" in gainer
    assert "its cards were taken back" not in gainer
    assert "its cards were taken back" in loser
    assert "gains within its quota" not in loser
    for page in (gainer, loser):
        assert "37 more gangs" not in page
        assert "foundation/base-lap2-001" not in page


def test_rest_gives_the_receipt_within_sight(world) -> None:
    def document(who):
        return client_of(who).get(f"/api/v1/reclaims/{_mine(world).pk}/").json()

    whole, own = document(world.auditor), document(world.member)
    assert [row["queue"] for row in whole["queues"]] == ["search-rank-inference", "research-training"]
    assert whole["queues"][0] == {
        "queue": "search-rank-inference", "base": {H200: 32}, "plans": [], "quota": {H200: 40},
        "before": {"cpu_milli": 0, "memory_bytes": 0, "cards": {H200: 12}},
        "after": {"cpu_milli": 0, "memory_bytes": 0, "cards": {H200: 16}},
    }  # fmt: skip
    assert [one["gang"] for one in whole["candidates"]] == ["foundation/base-lap2-001", "search/embed-lap2-007"]
    short, dearer = (one["alone"] for one in whole["candidates"])
    assert dearer is None
    assert short["nodes"][0] == {
        "node": "gpu-1", "resource": H200, "free": 0.0, "frees": 4.0, "needs": 8.0, "fits": 0, "short": 4.0,
    }  # fmt: skip
    assert (short["fits"], short["wanted"], short["more_nodes"]) == (0, 1, 2)
    assert (whole["more_candidates"], whole["victims"][0]["queue_priority"]) == (37, 20000)
    assert [row["queue"] for row in own["queues"]] == ["search-rank-inference"]
    assert [one["gang"] for one in own["candidates"]] == ["search/embed-lap2-007"]
    assert (own["more_candidates"], own["freed"], own["victims"][0]["priority"]) == (None, None, None)


def test_a_gang_whose_job_fails_by_it_is_named_to_its_own_side(world) -> None:
    row = _mine(world)
    for cost in row.receipt["victims"].values():
        cost["last_restart"] = True
    Reclaim.objects.filter(pk=row.pk).update(receipt=row.receipt)
    said = "its last restart: the job fails"
    assert [said in _page(world, who) for who in (world.auditor, world.stranger, world.member)] == [True, True, False]
    told = [
        client_of(who).get(f"/api/v1/reclaims/{row.pk}/").json()["victims"][0]["last_restart"]
        for who in (world.auditor, world.stranger, world.member)
    ]
    assert told == [True, True, None]


def test_the_audit_entry_shows_the_same_and_names_no_gang_of_others_to_who_sees_both_sides(world) -> None:
    row = _mine(world)
    both = sorted({world.queues["search-rank-inference"].tenant_id, world.queues["search-training"].tenant_id})
    after = {"session": 1, **row.receipt, "victims": []}
    entry = audit.append(
        chain=audit.cluster_chain(world.cluster.pk), actor="scheduler", action="reclaim.decide", object_type="reclaim",
        object_id=row.pk, object_label=row.reclaimer, cluster_id=world.cluster.pk, tenant_ids=both, after=after,
    )  # fmt: skip
    whole = client_of(world.auditor).get(f"/audit/{entry.pk}/").content.decode()
    for said in ("Was it within the quota at that moment?", "foundation/base-lap2-001", "37 more gangs"):
        assert said in whole, said
    for address in (f"/audit/{entry.pk}/", f"/api/v1/audit/{entry.pk}/"):
        page = client_of(world.member).get(address).content.decode()
        assert "search-rank-inference" in page
        assert "foundation/base-lap2-001" not in page


@pytest.mark.parametrize(
    ("kind", "states"),
    [
        ("reclaim", {"after": {"reclaimer": RANK, "queue": "search-rank-inference", "victims": [
            {"gang": "ops/night-batch", "queue": "platform-night", "pods": ["night-0"], "cards": {H200: 4}}]}}),
        ("tide_plan", {"before": {"layers": [{"quota": {"search-rank-inference": {H200: {"add": -4}}}}]},
                       "after": {"layers": [{"quota": {"search-rank-inference": {H200: {"add": -4}},
                                                       "platform-night": {H200: {"add": 4}}}}]}}),
    ],
)  # fmt: skip
def test_an_audit_entry_keeps_queues_of_the_platform_from_a_tenants_reader(world, kind, states) -> None:
    """Such a queue has no tenant, so the entry touches the reader's alone; the pages of both kinds hide it too."""
    entry = audit.append(
        chain=audit.cluster_chain(world.cluster.pk), actor="scheduler", action=f"{kind}.decide", object_type=kind,
        object_id=1, object_label="nights", cluster_id=world.cluster.pk,
        tenant_ids=[world.queues["search-rank-inference"].tenant_id], **states,
    )  # fmt: skip
    for address in (f"/audit/{entry.pk}/", f"/api/v1/audit/{entry.pk}/", "/api/v1/audit/"):
        answer = client_of(world.member).get(address)
        assert answer.status_code == 200
        assert "platform-night" not in answer.content.decode(), address
    shown = client_of(world.member).get(f"/api/v1/audit/{entry.pk}/").json()
    assert (shown["before"], shown["after"], shown["object_label"]) == (None, None, "nights")
    assert "platform-night" in client_of(world.auditor).get(f"/audit/{entry.pk}/").content.decode()


def _figure(world, who, query: str = "") -> dict:
    answer = client_of(who).get(f"/clusters/demo/reclaims/taken/{query}")
    assert answer.status_code == 200
    return answer.json()


def _today(world, hours: int = 2) -> None:
    """All reclaims of the story within the day that is shown, in one hour."""
    at = (world.cluster.clock() - dt.timedelta(hours=hours)).replace(minute=10, second=0, microsecond=0)
    Reclaim.objects.filter(cluster=world.cluster).update(at=at, running_at=None)
    Reclaim.objects.filter(state="done").update(running_at=at + dt.timedelta(seconds=50))


def test_the_picture_adds_up_what_was_taken_back_by_hour_and_card(world) -> None:
    _today(world)
    (bars,) = _figure(world, world.auditor)["data"]
    lost = sum(sum(v.cards.values()) for v in ReclaimVictim.objects.exclude(reclaim__state="cancelled"))
    assert (bars["name"], bars["y"], len(bars["x"])) == ("H200", [lost], 1)
    shown = client_of(world.auditor).get(f"/clusters/demo/reclaims/{bars['customdata'][0]}&format=csv").content.decode()
    assert len(shown.splitlines()) == 1 + Reclaim.objects.count(), "a click shows the hour's reclaims in the table"
    later = bars["customdata"][0].replace("from=", "was=").replace("to=", "from=")
    shown = client_of(world.auditor).get(f"/clusters/demo/reclaims/{later}&format=csv").content.decode()
    assert len(shown.splitlines()) == 1, "and no others"
    table = client_of(world.auditor).get("/clusters/demo/reclaims/taken/?format=csv").content.decode().splitlines()
    assert len(table) == 1 + 25
    assert sum(float(line.split(",")[1]) for line in table[1:]) == lost


def test_the_pictures_follow_the_filters_of_the_list(world) -> None:
    _today(world)
    gainer = Reclaim.objects.exclude(state="cancelled").filter(queue_name="search-rank-inference")
    lost = sum(sum(v.cards.values()) for v in ReclaimVictim.objects.filter(reclaim__in=gainer))
    query = "?gainer_queue=search-rank-inference"
    (bars,) = _figure(world, world.auditor, query)["data"]
    assert 0 < sum(bars["y"]) == lost < sum(_figure(world, world.auditor)["data"][0]["y"])
    day = client_of(world.auditor).get(f"/clusters/demo/reclaims/day/{query}").content.decode()
    assert "shop-ads-inference" not in day
    page = client_of(world.auditor).get(f"/clusters/demo/reclaims/{query}").content.decode()
    assert f'hx-get="/clusters/demo/reclaims/day/{query}"' in page
    assert 'data-query="gainer_queue=search-rank-inference"' in page


def test_slices_are_in_the_sums_as_their_part_of_a_card(world) -> None:
    """Cards are physical ones wherever several types are added up; of one type its own number is said."""
    _today(world)
    before = reclaim_history_selectors.day_of(access_of(world.admin), world.cluster, None)
    victim = ReclaimVictim.objects.filter(reclaim=_mine(world)).get()
    ReclaimVictim.objects.filter(pk=victim.pk).update(cards={**victim.cards, f"{H200}/mig-1g.18gb-mixed": 14})
    day = reclaim_history_selectors.day_of(access_of(world.admin), world.cluster, None)
    assert (round(day.cards - before.cards, 6), day.parts, before.parts) == (2, 14, 0)
    pair = next(pair for loser in day.losers for pair in loser.pairs if pair.parts)
    assert (pair.loser, pair.cards) == (victim.queue_name, sum(victim.cards.values()) + 2)
    page = " ".join(client_of(world.auditor).get("/clusters/demo/reclaims/day/").content.decode().split())
    assert "14 slices and shares are in them, each as its part of a card." in page
    slices = next(bars for bars in _figure(world, world.auditor)["data"] if bars["name"] != "H200")
    assert ([round(height, 6) for height in slices["y"]], slices["text"]) == ([2], ["14"])


def test_the_picture_of_a_tenant_holds_its_own_losses_alone(world) -> None:
    _today(world)
    (bars,) = _figure(world, world.stranger)["data"]
    assert bars["y"] == [8 + 16], "of research-training, the cancelled one left out"
    day = client_of(world.stranger).get("/clusters/demo/reclaims/day/").content.decode()
    assert "research-training" in day
    assert "a queue of another tenant" in day
    for hidden in ("search-rank-inference", "shop-ads-inference", "foundation-training"):
        assert hidden not in day


def test_who_took_back_from_whom_is_told_with_the_work_and_how_soon_it_ran(world) -> None:
    _today(world)
    late = Reclaim.objects.filter(state="done").order_by("pk").first()
    Reclaim.objects.filter(pk=late.pk).update(running_at=world.cluster.clock() + dt.timedelta(hours=1))
    page = client_of(world.auditor).get("/clusters/demo/reclaims/day/").content.decode()
    assert "1 of 4 gangs that gained were bound by the next session; 2 have run so far" in page
    link = re.search(r'href="(\?loser_queue=research-training&amp;gainer_queue=shop-ads-inference[^"]*)"', page)
    assert link is not None
    rows = client_of(world.auditor).get(f"/clusters/demo/reclaims/{html.unescape(link[1])}&format=csv")
    assert {row["reclaimer"] for row in csv.DictReader(rows.content.decode("utf-8-sig").splitlines())} == {
        "shop/ads-bid"
    }


def test_an_empty_picture_says_whether_anything_could_have_been_seen(world) -> None:
    empty_cluster("hall")
    for who, cluster, said in (
        (world.auditor, "demo", "Nothing was taken back in these 24 hours."),
        (world.stranger, "demo", "Nothing was taken back from your queues in these 24 hours."),
        (world.auditor, "hall", "Nothing has been recorded for this picture yet. It fills as sessions run."),
    ):
        page = client_of(who).get(f"/clusters/{cluster}/reclaims/").content.decode()
        assert f'data-empty="{said}"' in page, said


def test_the_list_says_shortly_what_of_a_reclaim_is_not_shown(world) -> None:
    def row(who) -> str:
        page = client_of(who).get(f"/clusters/demo/reclaims/?q={RANK}").content.decode()
        (line,) = [one for one in page.split("<tr>") if f"/reclaims/{_mine(world).pk}/" in one]
        cells = {
            label: " ".join(re.sub(r"<[^>]+>", "", cell).split())
            for label, cell in re.findall(r'data-label="(Needed|Freed)">(.*?)</td>', line, re.DOTALL)
        }
        return f"{cells['Needed']}; {cells['Freed']}"

    assert row(world.auditor) == "4 × H200; 8 × H200 for 4 × H200"
    assert row(world.member) == "4 × H200; 4 × H200, freed: –"
    assert row(world.stranger) == "–; 8 × H200"
    said = "–: of a gang of another tenant, shown to that tenant only."
    shown = [
        said in client_of(who).get("/clusters/demo/reclaims/").content.decode() for who in (world.auditor, world.member)
    ]
    assert shown == [False, True]


def test_the_step_of_a_tide_plan_that_was_in_force_is_the_first_of_those_that_a_reclaim_leads_to(world) -> None:
    row = _mine(world)
    for seconds, after in ((-3600, 36), (0, 40), (2, 32)):
        at = row.at + dt.timedelta(seconds=seconds)
        TideStep.objects.create(
            cluster=world.cluster, queue=row.queue, card=H200, plans=["nights"], layers=["nights: night"], since=at,
            at=at, answered_at=at, before=after - 4, after=after, wanted=after, answer="taken",
        )  # fmt: skip
    link = re.search(r'href="(/clusters/demo/tide-steps/[^"]*)"', _page(world, world.auditor))
    assert link is not None
    page = client_of(world.auditor).get(html.unescape(link[1])).content.decode()
    assert re.findall(r"→ <strong>(\d+)</strong>", page) == ["40", "36"]


def test_a_day_without_reclaims_is_empty(world) -> None:
    Reclaim.objects.filter(cluster=world.cluster).update(at=world.cluster.clock() - dt.timedelta(days=3))
    assert _figure(world, world.auditor)["data"] == []
    assert "<table" not in client_of(world.auditor).get("/clusters/demo/reclaims/day/").content.decode()


def test_the_picture_is_two_requests_of_few_queries(world, django_assert_max_num_queries) -> None:
    _today(world)
    client = client_of(world.auditor)
    client.get("/clusters/demo/")
    for address in ("taken/?theme=dark", "day/"):
        with django_assert_max_num_queries(6):
            client.get(f"/clusters/demo/reclaims/{address}")


FILTERS = (
    "queue=search-training", "tenant=search", "gainer_tenant=shop", "loser_tenant=research", "loser=lap2-001",
    "gainer_service=inference",
    "gainer_queue=shop-ads-inference", "loser_queue=foundation-training", "card=NVIDIA-H200", "q=rank-v7",
    "state=done", "made_by=tidesched", "from=2000-01-01T00:00:00Z&to=2001-01-01T00:00:00Z",
)  # fmt: skip


@pytest.mark.parametrize("query", FILTERS)
def test_page_export_and_rest_leave_the_same_reclaims(world, query) -> None:
    # A page passes over a tenant that its select does not offer, as every filter of a page does; REST finds nothing.
    other_tenant = query.endswith(("tenant=shop", "tenant=research"))
    for who in (world.auditor,) if other_tenant else (world.auditor, world.member):
        client = client_of(who)
        rows = csv.DictReader(
            client.get(f"/clusters/demo/reclaims/?format=csv&{query}").content.decode("utf-8-sig").splitlines()
        )
        exported = [int(row["id"]) for row in rows]
        rest = [row["id"] for row in client.get(f"/api/v1/reclaims/?{query}").json()["results"]]
        page = client.get(f"/clusters/demo/reclaims/?{query}").content.decode()
        listed = [int(pk) for pk in re.findall(r'<th scope="row" class="id"[^>]*><a href="[^"]*/(\d+)/"', page)]
        assert exported == rest == listed
        if who == world.auditor:
            assert bool(exported) is not query.startswith("from="), "each filter but the last finds some"


@pytest.mark.parametrize(
    "address",
    ["queues/search-training/", "gangs/search/embed-lap2-007/", "/tenants/search/"],
)
def test_pages_lead_to_the_reclaims_that_touched_them_and_to_the_audit_log(world, address) -> None:
    path = address if address.startswith("/") else f"/clusters/demo/{address}"
    page = client_of(world.admin).get(path, follow=True).content.decode()
    to_reclaims = re.search(r'href="(/clusters/demo/reclaims/\?[^"]+)"', page)
    to_audit = re.search(r'href="(/audit/\?[^"]+)"', page)
    assert to_reclaims is not None
    assert to_audit is not None
    for link in (to_reclaims[1], to_audit[1]):
        assert client_of(world.admin).get(html.unescape(link)).status_code == 200


def test_what_one_victim_had_is_not_told_by_what_was_freed(world) -> None:
    """The tenant that gained took 8 cards from one gang of another tenant, for the 4 that it needed."""
    assert "8 × H200" in _page(world, world.auditor)
    page = _page(world, world.member)
    assert "4 × H200" in page
    assert "8 × H200" not in page


def test_the_mark_of_ones_own_gang_does_not_tell_what_anothers_freed(world) -> None:
    """The tenant's gang reclaims from another gang of the tenant and from one of another tenant."""
    Reclaim.objects.filter(pk=_mine(world).pk).update(at=world.cluster.clock() - dt.timedelta(minutes=10))
    ReclaimVictim.objects.create(
        reclaim=_mine(world), gang="search/embed-lap2-007", queue=world.queues["search-training"],
        queue_name="search-training", pods=["embed-0"], cards={H200: 4}, work_lost_card_seconds=1,
    )  # fmt: skip
    for who, told in ((world.auditor, True), (world.member, False)):
        page = client_of(who).get("/clusters/demo/gangs/?q=embed-lap2-007").content.decode()
        assert "search/" in page
        assert ("8 freed for 4" in page) is told


def test_a_gang_that_is_evicted_again_and_again_and_too_much_freed_are_marked(world) -> None:
    """Twice within the hour; 8 freed for 4."""
    _today(world)
    twice = ReclaimVictim.objects.filter(gang__endswith="lap2-002").first()
    ReclaimVictim.objects.filter(reclaim=_mine(world)).update(gang=twice.gang)
    for address in ("", f"{_mine(world).pk}/"):
        page = client_of(world.auditor).get(f"/clusters/demo/reclaims/{address}").content.decode()
        assert "evicted 2 times" in page
        assert "8 freed for 4" in page
    assert "cool-down of the policy" in page
    hidden = client_of(world.member).get(f"/clusters/demo/reclaims/{_mine(world).pk}/").content.decode()
    assert "evicted 2 times" not in hidden
    assert "8 freed for 4" not in hidden


def test_what_the_reclaimer_needs_is_not_told_to_the_side_that_only_came_into_question(world) -> None:
    """The owner of a candidate reads that room decided, and not how much another tenant's pod asks for."""
    own = {row["queue_id"] for row in _mine(world).receipt["candidates"] if row["queue"] == "foundation-training"}
    receipt = receipt_within_sight(_mine(world).receipt, own, made_it=False)
    (candidate,) = receipt["candidates"]
    assert (candidate["rule"], candidate["alone"]) == ("its leaving would not make enough room", None)
    seen = receipt_within_sight(_mine(world).receipt, own, made_it=True)["candidates"][0]
    assert seen["alone"]["nodes"][0]["needs"] == 8


def test_the_head_of_the_list_sums_gangs_and_work_of_the_same_gangs(world) -> None:
    """A member's reclaims touch gangs of other tenants too: neither they nor their work are in the reader's sum."""
    whole = ReclaimVictim.objects.all()
    own = whole.filter(queue__tenant_id=world.queues["search-training"].tenant_id)
    seen = Reclaim.objects.filter(victims__in=own) | Reclaim.objects.filter(queue__tenant__slug="search")
    others = whole.filter(reclaim__in=seen).exclude(pk__in=own)
    assert own.count()
    assert others.count()

    def line(who) -> str:
        page = " ".join(client_of(who).get("/clusters/demo/reclaims/").content.decode().split())
        return re.search(r'class="subtitle">([^<]*)<', page)[1]

    def hours(rows) -> str:
        return f"{sum(row.work_lost_card_seconds for row in rows) / 3600:g} card-hours of work lost"

    said = line(world.member)
    assert f"{own.count()} gangs of your tenants were evicted, {hours(own)}." in said
    assert f"{others.count()} gangs of other tenants were evicted for yours" in said
    assert f"{whole.count()} gangs were evicted, {hours(whole)}." in line(world.auditor)


def test_the_sentence_of_a_reclaim_leaves_out_what_the_reader_may_not_know(world) -> None:
    def line(who) -> str:
        return " ".join(re.search(r'class="subtitle key">([^<]*)<', _page(world, who))[1].split())

    assert line(world.auditor) == f"{RANK} needed 4 × H200; 1 gang was evicted and freed 8 × H200."
    assert line(world.member) == f"{RANK} needed 4 × H200; 1 gang was evicted."
    assert line(world.stranger) == f"{RANK} took cards back: 1 gang was evicted and freed 8 × H200."


def test_the_receipt_says_what_decided_between_gangs_that_look_the_same(world) -> None:
    row = _mine(world)
    fell = "research/llm-pretrain-lap2-003"
    lost = row.receipt["victims"][fell]["work_lost_card_seconds"]
    dearer, same = row.receipt["candidates"]
    dearest = dearer | {"gang": "research/much-more", "frees": 8, "work_lost_card_seconds": lost + 9000, "alone": None}
    dearest["rule"] = "dearer than a gang of the chosen set whose place it could take"
    row.receipt["candidates"].append(dearest)
    dearer |= {"gang": "research/just-more", "frees": 8, "work_lost_card_seconds": lost + 12, "alone": None}
    dearer["rule"] = "dearer than a gang of the chosen set whose place it could take"
    same |= {"gang": "research/llm-pretrain-lap2-009", "frees": 8, "work_lost_card_seconds": lost}
    same["rule"] = "costs as much as a gang of the chosen set whose place it could take, and comes later by name"
    ReclaimVictim.objects.filter(reclaim=row).update(work_lost_card_seconds=lost)
    Reclaim.objects.filter(pk=row.pk).update(receipt=row.receipt)
    page = _page(world, world.auditor)
    assert f"It would lose 12 card-seconds of work more than {fell}." in page
    assert f"It would lose 2.5 card-hours of work more than {fell}." in page
    assert f"It costs the same as {fell}; the first name decides." in page


def test_the_sum_of_a_queue_is_over_all_of_its_pairs(world, monkeypatch) -> None:
    every = reclaim_history_selectors.day_of(access_of(world.admin), world.cluster, None).losers
    monkeypatch.setattr(reclaim_history_selectors, "MOST_PAIRS", 1)
    day = reclaim_history_selectors.day_of(access_of(world.admin), world.cluster, None)
    assert day.losers == every[:1]
    assert day.more_pairs == sum(len(one.pairs) for one in every[1:])
