"""The home of a tenant's people: their own figures and nothing of others, in few queries, in both languages."""

from __future__ import annotations

import datetime as dt
import html
import re
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.web.console import world as story
from tests.web.console.cast import H200, empty_cluster
from tests.web.console.test_pages import MAX_QUERIES, client_of
from tidesched_web.accounts.models import BusinessLine, Membership, Tenant, User
from tidesched_web.quota.models import Queue
from tidesched_web.scheduling.models import QueueUsage, ReclaimVictim, TidePoint, UsageRollup
from tidesched_web.workloads.models import Gang

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> story.World:
    return story.full()


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
    listed = client_of(world.member).get(html.unescape(link[1])).content.decode()
    assert listed.count("/clusters/demo/reclaims/")
    assert "search/embed-lap2-001" in listed
    assert "research/llm-pretrain-lap2-003" not in listed


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
    assert len(queries) <= MAX_QUERIES
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
    assert "card-hours" not in page
