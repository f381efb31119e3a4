"""Every page: who sees it, what it costs, and what it says."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.web.console import world as story
from tests.web.console.cast import H200
from tidesched_web.accounts.models import User
from tidesched_web.scheduling.models import Alert, AlertSeverity

PAGES = [
    "clusters/",
    "clusters/demo/",
    "clusters/demo/quota/",
    "clusters/demo/quota/?view=map",
    "clusters/demo/quota/?q=search&card=H200",
    "clusters/demo/quota/?badge=unused",
    "clusters/demo/queues/",
    "clusters/demo/queues/search-training/",
    "clusters/demo/gangs/",
    "clusters/demo/gangs/?order=waiting",
    "clusters/demo/gangs/{gang}/",
    "clusters/demo/reclaims/",
    "clusters/demo/reclaims/{reclaim}/",
    "clusters/demo/sessions/",
    "clusters/demo/sessions/1479/",
    "clusters/demo/nodes/",
    "clusters/demo/alerts/",
    "clusters/demo/search/?q=lap2",
    "profile/",
    "profile/tokens/",
    "password/",
    "help/",
]
DATA = [
    "clusters/demo/quota/map/?card=NVIDIA-H200",
    "clusters/demo/tide/",
    "clusters/demo/queues/search-training/usage/?card=NVIDIA-H200",
    "clusters/demo/sessions/timings/",
    "clusters/demo/reclaims/taken/",
    "clusters/demo/tenants/search/use/",
]
LISTS = ["queues", "gangs", "reclaims", "sessions", "nodes"]
MAX_QUERIES = 6
# Who may approve changes has one more: what waits for them.
WRITER = 1

pytestmark = pytest.mark.django_db


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def address(page: str, world: story.World) -> str:
    return "/" + page.format(gang=world.gangs["search/embed-lap2-012"].pk, reclaim=world.reclaims[2].pk)


@pytest.mark.parametrize("who", ["admin", "auditor", "member"])
def test_pages_open_and_cost_few_queries(world, who, subtests) -> None:
    client = client_of(getattr(world, who))
    client.get("/clusters/")
    for page in [*PAGES, *DATA]:
        with subtests.test(page), CaptureQueriesContext(connection) as queries:
            response = client.get(address(page, world))
            assert response.status_code == 200
            # The overview has one more, its figures with their trend; that of who may set a cluster up another one:
            # whether that is done. A queue's page has two more: what tide plans lend from it, and what is borrowed.
            most = (
                MAX_QUERIES
                + 2 * (page == "clusters/demo/queues/search-training/")
                + (page == "clusters/demo/")
                + (who == "admin" and page == "clusters/demo/")
                + WRITER * (who == "admin" and page in PAGES)
            )
            assert len(queries) <= most, [query["sql"][:160] for query in queries]


def test_what_a_plugin_sends_away_falls_for_nobody(world) -> None:
    gone = world.reclaims[2]
    type(gone).objects.filter(pk=gone.pk).update(reclaimer="", queue_name="", action="shuffle")
    client = client_of(world.admin)
    page = client.get(address("clusters/demo/reclaims/{reclaim}/", world)).content.decode()
    assert "A plugin of the policy wanted the room: 2 gangs" in page
    assert "No gang: a plugin of the policy wanted these pods elsewhere." in page
    listed = client.get("/clusters/demo/reclaims/").content.decode()
    assert re.search(r'<span\s+class="key"\s*>shuffle</span>', listed)


def test_a_gang_that_is_written_wrongly_is_told_what_is_wrong(world) -> None:
    gang = world.gangs["search/embed-lap2-012"]
    message = "Cannot be scheduled as written: queue 'train-retired' does not exist."
    type(gang).objects.filter(pk=gang.pk).update(reason_code="Misconfigured", reason_numbers={}, reason_message=message)
    page = client_of(world.admin).get(address("clusters/demo/gangs/{gang}/", world)).content.decode()
    assert "queue &#x27;train-retired&#x27; does not exist" in page


def test_a_timeline_gives_reasons_in_the_readers_language(world) -> None:
    client = client_of(world.admin)
    path = address("clusters/demo/gangs/{gang}/", world)
    timeline = client.get(path).content.decode().partition('class="life"')[2].partition("</ol>")[0]
    assert "Needs 16 × H200" in timeline
    User.objects.filter(pk=world.admin.pk).update(language="zh-hans")
    assert "需要 16 × H200" in client.get(path).content.decode().partition('class="life"')[2]


def test_a_gang_without_pods_shows_what_it_asked_for(world) -> None:
    gang = world.gangs["search/embed-lap2-012"]
    type(gang).objects.filter(pk=gang.pk).update(
        state="finished", needs=False, cards={}, manifest={"card_request": {"NVIDIA-H200": 16000}}
    )
    page = client_of(world.admin).get(address("clusters/demo/gangs/{gang}/", world)).content.decode()
    assert '<dd><span class="nowrap">16 × H200</span></dd>' in page


def test_a_service_that_grows_waits_only_for_what_it_lacks(world) -> None:
    gang = world.gangs["search/rank-v7"]
    type(gang).objects.filter(pk=gang.pk).update(
        needs=True, reason_code="WaitingForCards", reason_numbers={"resource": "NVIDIA-H200", "requested": 1}
    )
    admin = client_of(world.admin)
    row = admin.get("/clusters/demo/queues/?q=" + gang.queue_name).content.decode()
    assert "5 waiting" in row, "four of a gang that has not started, one of the service"


def test_alerts_that_read_the_same_to_the_reader_are_one_line(world) -> None:
    """A member does not read whose promise is meant: three sentences of the same words would say no more than one."""
    Alert.objects.filter(cluster=world.cluster, resolved_at=None).update(resolved_at=timezone.now())
    for queue in ("search-training", "vision-training"):
        numbers = {"promised": 8, "card": H200, "queue": queue, "waiting": 1}
        Alert.objects.create(
            cluster=world.cluster, key=f"promise:{queue}", severity=AlertSeverity.WARNING, code="promise_unused",
            numbers=numbers, raised_at=timezone.now(), message=f"8 of {queue} are promised.",
        )  # fmt: skip
    said = "Quota is promised to gangs that do not run, while others wait for it."
    page = client_of(world.member).get("/clusters/demo/").content.decode()
    assert page.count(said) == 1
    assert "2 alerts say this." in page
    page = client_of(world.admin).get("/clusters/demo/").content.decode()
    assert "of queue search-training are promised" in page
    assert "of queue vision-training are promised" in page
    assert "alerts say this" not in page


def test_the_worst_of_a_clusters_messages_is_one_line_and_the_others_unfold(world) -> None:
    Alert.objects.create(
        cluster=world.cluster, key="own", severity=AlertSeverity.CRITICAL, code="own", raised_at=timezone.now(),
        message="The worst of all.",
    )  # fmt: skip
    page = " ".join(client_of(world.admin).get("/clusters/demo/").content.decode().split())
    banners = page.partition('<div class="banners"')[2].partition('aria-labelledby="')[0]
    shown, _details, folded = banners.partition("<details")
    assert shown.count('class="banner ') == 1
    assert "tone-failed" in shown
    assert "The worst of all." in shown
    rest = folded.count('class="banner ')
    more = re.search(r"and (\d+) more alert", folded)
    assert f"<summary>{rest + (int(more[1]) if more else 0)} more</summary>" in folded


def test_what_a_figure_counts_is_told_at_its_name_and_pause_is_in_a_menu(world) -> None:
    page = " ".join(client_of(world.admin).get("/clusters/demo/").content.decode().split())
    names = re.findall(
        r'<dt class="tip" tabindex="0">([^<]+) <span class="tip-text" role="tooltip">([^<]+)</span>', page
    )
    assert len(names) == page.count('<dd class="big">') >= 4
    assert all(name.strip() and said.strip() for name, said in names)
    menu = page.partition('data-bs-toggle="dropdown" aria-expanded="false"> More<')[2].partition("</div></div>")[0]
    assert 'href="/clusters/demo/pause/"' in menu
    assert page.count('href="/clusters/demo/pause/"') == 1
