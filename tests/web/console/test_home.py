"""The home of a tenant's people: their own figures and nothing of others, in few queries, in both languages."""

from __future__ import annotations

import datetime as dt
import html
import re
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.quota_writes import write_tide_plan
from tests.web.console.cast import H200, L40S, MPS, empty_cluster
from tests.web.console.test_pages import MAX_QUERIES, client_of
from tidesched_web.accounts.models import BusinessLine, Membership, Tenant, User
from tidesched_web.clusters.models import CardType
from tidesched_web.quota import tide
from tidesched_web.quota.models import CardQuota, Queue, TideStep
from tidesched_web.scheduling.models import QueueUsage, ReclaimVictim, TidePoint, UsageRollup
from tidesched_web.workloads.models import Gang

pytestmark = pytest.mark.django_db


def home(user: User) -> str:
    answer = client_of(user).get("/")
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def own(world, slug: str = "search"):
    waits = Gang.objects.filter(queue__tenant__slug=slug, needs=True, gone_at__isnull=True)
    return list(waits), {
        name: queue for name, queue in world.queues.items() if queue.tenant and queue.tenant.slug == slug
    }


def test_a_tenants_people_land_on_what_is_their_own(world) -> None:
    page = home(world.member)
    waits, _queues = own(world)
    assert waits
    assert "Search" in page
    assert "in demo" in page
    assert f"{len(waits)} gangs of your tenants wait." in page
    assert "Every gang has what it needs" not in page
    for gang in sorted(waits, key=lambda one: one.waiting_since)[:10]:
        assert gang.key in page
    # The reason of the one that waits longest is there in words.
    assert "Needs " in page
    # Members of other tenants are not named, nor their gangs.
    others = Gang.objects.exclude(queue__tenant__slug="search").values_list("namespace", "name")
    assert not [f"{namespace}/{name}" for namespace, name in others if f"{namespace}/{name}" in page]


def test_more_gangs_that_wait_are_counted_and_led_to_in_each_cluster_once(world, monkeypatch) -> None:
    monkeypatch.setattr("tidesched_web.console.home.WAITING", 1)
    hall, tenants = empty_cluster("hall"), Tenant.objects.filter(slug__in=("search", "research"))
    Membership.objects.create(user=world.member, tenant=tenants.get(slug="research"))
    for tenant in tenants:
        line = BusinessLine.objects.create(tenant=tenant, slug="hall", name="Hall")
        Queue.objects.create(
            cluster=hall, name=f"hall-{tenant.slug}", service_type="training", tenant=tenant, business_line=line
        )
    gangs = Gang.objects.filter(queue__tenant__in=tenants, gone_at__isnull=True)
    waits = {gang.key for gang in gangs if gang.needs}
    page = home(world.member)
    assert f"{len(waits) - 1} more gangs wait." in " ".join(page.split())
    links = re.findall(r'href="([^"]+)"\s*>\s*All that wait in (\w+)', page)
    assert links == [("/clusters/demo/gangs/?needs=yes&order=waiting", "demo")]
    listed = client_of(world.member).get(links[0][0]).content.decode()
    assert {gang.key for gang in gangs if f'title="{gang.key}"' in listed} == waits


def test_reclaims_suffered_and_card_hours_are_counted_by_the_clusters_clock(world) -> None:
    queue = world.queues["search-training"]
    now = world.cluster.clock()
    for hours, mean in ((2, 8000), (3, 4000), (30, 99_000)):
        at = (now - dt.timedelta(hours=hours)).replace(minute=0, second=0, microsecond=0)
        UsageRollup.objects.create(
            queue=queue, card=H200, step_seconds=3600, at=at, quota=0, allocated_mean=mean, allocated_max=mean
        )
    suffered = ReclaimVictim.objects.filter(queue__tenant__slug="search", reclaim__at__gte=now - dt.timedelta(hours=24))
    reclaims = suffered.values("reclaim").distinct().count()
    assert reclaims == 1
    page = home(world.member)
    link = re.search(r'href="(/clusters/demo/reclaims/\?loser_tenant=search&(?:amp;)?from=[^"]+)"\s*>1 reclaim<', page)
    assert link
    assert "12 card-hours" in page
    assert "111 card-hours" in page, "of the week, in which thirty hours ago counts too"
    assert "measured 2 h of 24 h" in page
    assert "measured 3 h of 7 d" in page
    listed = client_of(world.member).get(html.unescape(link[1])).content.decode()
    assert listed.count("/clusters/demo/reclaims/")
    assert "search/embed-lap2-001" in listed
    assert "research/llm-pretrain-lap2-003" not in listed


def test_card_hours_come_as_a_file_with_what_was_measured(world) -> None:
    queue, now = world.queues["search-training"], world.cluster.clock()
    address = "/clusters/demo/tenants/search/card-hours/"
    assert f'href="{address}"' in home(world.member)

    def lines(user: User) -> list[str]:
        answer = client_of(user).get(address)
        assert answer["Content-Type"].startswith("text/csv")
        return answer.content.decode("utf-8-sig").splitlines()

    empty = lines(world.member)
    assert [row.split(",")[5:] for row in empty[1:]] == [["24", "0", "", "", ""], ["168", "0", "", "", ""]]
    at = (now - dt.timedelta(hours=2)).replace(minute=0, second=0, microsecond=0)
    UsageRollup.objects.create(
        queue=queue, card=H200, step_seconds=3600, at=at, quota=0, allocated_mean=2500, allocated_max=4000
    )
    header, day, week = lines(world.member)
    assert header == "tenant,cluster,period,from,to,hours,measured_hours,service_type,card,card_hours"
    whole = "2026-03-04T20:00:00+00:00"
    assert day == f"search,demo,24h,2026-03-03T20:00:00+00:00,{whole},24,1,training,{H200},2.5"
    assert week == f"search,demo,7d,2026-02-25T20:00:00+00:00,{whole},168,1,training,{H200},2.5"
    for user in (world.auditor, world.admin):
        assert lines(user) == [header, day, week]
    for user in (world.stranger, world.newcomer):
        assert client_of(user).get(address).status_code == 404


def test_the_card_hours_of_slices_are_the_part_of_a_card_that_they_are(world) -> None:
    at = (world.cluster.clock() - dt.timedelta(hours=3)).replace(minute=0, second=0, microsecond=0)
    UsageRollup.objects.create(
        queue=world.queues["search-suggest-inference"], card=MPS, step_seconds=3600, at=at, quota=0,
        allocated_mean=4000, allocated_max=4000,
    )  # fmt: skip
    page = " ".join(home(world.member).split())
    assert "<dt>Used, last 24 h</dt> <dd>2 card-hours" in page, "four halves"
    assert re.search(r"<dd>2 card-hours<span\s+class=\"text-secondary\"> · in physical cards</span>", page)
    assert "4 card-hours" in page, "in the table as they are counted"


def test_card_hours_that_are_compared_have_one_unit(world) -> None:
    at = (world.cluster.clock() - dt.timedelta(hours=3)).replace(minute=0, second=0, microsecond=0)
    UsageRollup.objects.create(
        queue=world.queues["search-training"], card=H200, step_seconds=3600, at=at, quota=0,
        allocated_mean=250, allocated_max=1000,
    )  # fmt: skip
    page = " ".join(home(world.member).split())
    assert page.count("0.25 card-hours") == 4, "the head and its row, of a day and of a week"
    assert "card-minutes" not in page.partition("<table")[2].partition("</table>")[0]
    assert "in physical cards" not in page, "whole cards add up to the head"


def test_what_is_in_use_is_not_known_before_the_first_session(world) -> None:
    hall, tenant = empty_cluster("hall"), Tenant.objects.get(slug="search")
    line = BusinessLine.objects.create(tenant=tenant, slug="hall", name="Hall")
    queue = Queue.objects.create(
        cluster=hall, name="hall-training", service_type="training", tenant=tenant, business_line=line
    )
    card = CardType.objects.create(cluster=hall, name=H200)
    CardQuota.objects.create(cluster=hall, card_type=card, service_type="training", queue=queue, cards=8)
    page = client_of(world.member).get("/tenants/search/").content.decode()
    rows = [row for row in page.split("<tr>") if 'data-label="In use"' in row]
    unknown = [row for row in rows if "not known yet</span>" in row.partition('data-label="In use"')[2]]
    assert len(unknown) == 1 < len(rows)
    assert "Use is known after the first session." in home(world.member)


def lending(world, **more: object) -> None:
    """From 18:00 to 06:00 a queue of Search gives up 4 of 10 cards."""
    layer = {
        "name": "night", "days": list(tide.WEEKDAYS), "start": "18:00", "end": "06:00",
        "quota": {"search-suggest-inference": {L40S: {"add": -4}}, "maps-route-inference": {L40S: {"add": 4}}}, **more,
    }  # fmt: skip
    write_tide_plan(cluster=world.cluster, name="nights", document={"enabled": True, "layers": [layer]}, actor="tests")


@pytest.mark.parametrize("path", ["/", "/clusters/demo/queues/search-suggest-inference/"])
def test_what_is_lent_tonight_and_when_it_comes_back_is_said(world, path) -> None:
    def shown() -> str:
        return " ".join(unescape(re.sub(r"<[^>]+>", "", client_of(world.member).get(path).content.decode())).split())

    assert "Nothing is lent now, and no tide plan turns a quota here in the next 8 days." in shown()
    lending(world)
    Queue.objects.filter(name="search-suggest-inference").update(tide={L40S: 6})
    page = re.sub(r"\s+(?=[,.])", "", shown())
    now = "gives up 4 of 10 × L40S · now · since 2026-03-04 18:00:00 UTC · back at 2026-03-05 06:00:00 UTC · by nights"
    assert now in page
    assert "maps-route-inference" not in page, "the other side is not theirs"
    Queue.objects.filter(name="search-suggest-inference").update(tide={L40S: 8})
    assert "Lent at this moment: 2, its quota is 8: what inference uses is never taken from it." in shown()
    lending(world, start="23:00")
    page = re.sub(r"\s+(?=[,.])", "", shown())
    assert (
        "gives up 4 of 10 × L40S · from 2026-03-04 23:00:00 UTC · back at 2026-03-05 06:00:00 UTC · by nights" in page
    )


@pytest.mark.parametrize("path", ["/", "/clusters/demo/queues/search-suggest-inference/"])
def test_what_two_plans_lend_comes_back_by_the_schedule_of_both(world, path) -> None:
    """One lends 2 at every hour, the other 4 more by night: in the morning 4 come back and 2 stay lent."""

    def shown() -> str:
        text = unescape(re.sub(r"<[^>]+>", "", client_of(world.member).get(path).content.decode()))
        return re.sub(r"\s+(?=[,.])", "", " ".join(text.split()))

    queue = Queue.objects.get(name="search-suggest-inference")
    lending(world)
    whole = {
        "name": "", "days": list(tide.WEEKDAYS), "start": "00:00", "end": "24:00",
        "quota": {queue.name: {L40S: {"add": -2}}},
    }  # fmt: skip
    write_tide_plan(cluster=world.cluster, name="always", document={"enabled": True, "layers": [whole]}, actor="tests")
    Queue.objects.filter(pk=queue.pk).update(tide={L40S: 4})
    sent = dt.datetime(2026, 3, 4, 19, 57, 24, tzinfo=dt.UTC)
    TideStep.objects.create(
        cluster=world.cluster, queue=queue, card=L40S, at=sent, answered_at=sent, before=8, after=4, wanted=4,
        plans=["always", "nights"], answer="taken",
    )  # fmt: skip
    page = shown()
    assert "gives up 6 of 10 × L40S · now · since 2026-03-04 19:57:24 UTC · by always, nights" in page
    assert "At 2026-03-05 06:00:00 UTC: 4 of them back, 2 still given up · by always" in page
    assert "No end for 2 of them as long as always stays on." in page
    assert "back at" not in page
    Queue.objects.filter(pk=queue.pk).update(tide={L40S: 7})
    page = shown()
    assert "gives up 6 of 10 × L40S · now · by always, nights" in page, (
        "not since that step: it is not the plan's figure"
    )
    assert "Lent at this moment: 3, its quota is 7" in page


def test_the_quota_of_a_tenant_is_what_holds_now_with_its_base(world) -> None:
    queue = world.queues["search-training"]
    base = queue.card_quotas.get(card_type__name=H200).cards
    Queue.objects.filter(pk=queue.pk).update(tide={H200: base + 5})
    QueueUsage.objects.filter(queue=queue, card=H200).update(quota=1000 * (base + 5))
    assert f"base {base}" in home(world.member)


def test_the_figures_say_how_old_they_are(world) -> None:
    part = home(world.member).partition('id="part-1"')[2].partition("</section>")[0]
    assert f"as of session {world.sessions[-1].number}" in part


def test_a_stranger_sees_nothing_of_it(world) -> None:
    page = home(world.stranger).partition('id="live"')[2].partition("</main>")[0]
    assert "Research" in page
    assert "Search" not in page
    assert not re.search(r"\bsearch/", page)
    newcomer = home(world.newcomer)
    assert "Nothing to see yet" in newcomer


def test_who_sees_everything_goes_to_the_cluster(world) -> None:
    for user in (world.admin, world.auditor):
        assert client_of(user).get("/")["Location"] == "/clusters/demo/"


def test_home_costs_few_queries_however_many_tenants_and_clusters(world) -> None:
    client = client_of(world.member)
    client.get("/")
    for number in range(3):
        cluster = empty_cluster(f"hall-{number}")
        tenant = Tenant.objects.create(slug=f"t{number}", name=f"T{number}")
        Membership.objects.create(user=world.member, tenant=tenant)
        line = BusinessLine.objects.create(tenant=tenant, slug="b", name="B")
        Queue.objects.create(
            cluster=cluster, name=f"q{number}", service_type="training", tenant=tenant, business_line=line
        )
    with CaptureQueriesContext(connection) as queries:
        page = client.get("/").content.decode()
    # Beside the six of each page: card-hours, and the plans and queues of what is lent.
    assert len(queries) <= MAX_QUERIES + 3
    assert "No session has run yet" in page
    assert "T2" in page


def test_a_tenant_without_queues_is_told_what_comes_next(world) -> None:
    Membership.objects.filter(user=world.newcomer).delete()
    Membership.objects.create(user=world.newcomer, tenant=Tenant.objects.create(slug="late", name="Latecomers"))
    page = home(world.newcomer)
    assert "No queue yet" in page
    assert "Latecomers" in page


def test_no_page_of_a_member_says_that_every_gang_has_what_it_needs(world) -> None:
    Gang.objects.filter(queue__tenant__slug="search").update(needs=False)
    assert TidePoint.objects.filter(waiting__gt=0).exists()
    assert "No gang of your tenants waits" in home(world.member)
    for who in (world.member, world.admin):
        Gang.objects.update(needs=False)
        page = unescape(client_of(who).get("/clusters/demo/").content.decode())
        assert "Every gang has what it needs" not in page


def test_home_speaks_chinese(world) -> None:
    User.objects.filter(pk=world.member.pk).update(language="zh-hans")
    page = home(world.member)
    assert "我的租户" in page
    assert "过去 24 小时被回收" in page
    assert "card-hours" not in re.sub(r'href="[^"]*"', "", page)
