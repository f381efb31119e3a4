"""Search over everything that the reader may see, in one query, and over the pages."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.web.console.test_pages import MAX_QUERIES, WRITER, client_of
from tidesched_web.accounts.selectors import access_of
from tidesched_web.changes import services as changes
from tidesched_web.changes.search_selectors import HITS, found
from tidesched_web.clusters.models import Cluster
from tidesched_web.scheduling.models import Reclaim

pytestmark = pytest.mark.django_db
PATH = "/clusters/demo/search/"


def kinds(user, text: str) -> dict[str, int]:
    page = client_of(user).get(PATH, {"q": text}).content.decode()
    parts = re.findall(r'id="found-(\w+)">(.*?)</section>', page, re.DOTALL)
    return {kind: body.count("data-hit") for kind, body in parts}


def test_each_kind_is_found_by_who_may_see_it(world, subtests) -> None:
    cluster = Cluster.objects.get(slug="demo")
    made = changes.draft(
        cluster=cluster,
        edits={"tenant/research": {"description": "more"}},
        access=access_of(world.admin),
        reason="zebra crossing",
    )
    reclaim = Reclaim.objects.filter(cluster=cluster).exclude(reclaimer="").first()
    for kind, text in (
        ("queue", "training"), ("gang", "lap2"), ("gang", "search/embed"), ("node", "h200-0"), ("tenant", "Research"),
        ("project", "r"), ("change", "zebra"), ("change", f"#{made.pk}"), ("reclaim", reclaim.reclaimer[:-1]),
        ("user", "aud"), ("page", "uota t"),
    ):  # fmt: skip
        with subtests.test(kind=kind, text=text):
            answer = client_of(world.admin).get(PATH, {"q": text})
            page = answer.content.decode() if answer.status_code == 200 else answer.headers["Location"]
            assert f'id="found-{kind}"' in page or (answer.status_code == 302 and f"/{kind}" in page)


def test_a_reader_finds_nothing_of_others(world) -> None:
    cluster = Cluster.objects.get(slug="demo")
    changes.draft(
        cluster=cluster, edits={"tenant/research": {"description": "x"}}, access=access_of(world.admin), reason="zebra"
    )
    access = access_of(world.member)
    foreign = {"queue": "research-training", "gang": "research/", "tenant": "research", "project": "research"}
    for kind, text in {**foreign, "change": "zebra", "user": "admin"}.items():
        assert kind not in {hit.kind for hit in found(access, cluster, text)}, kind
    assert {hit.kind for hit in found(access, cluster, "search")} >= {"queue", "tenant"}
    assert found(access_of(world.newcomer), cluster, "a") == []
    assert client_of(world.newcomer).get(PATH, {"q": "a"}).status_code == 404
    assert "user" in kinds(world.auditor, "a")


def test_it_asks_once_and_shows_a_few_of_each(world) -> None:
    cluster = Cluster.objects.get(slug="demo")
    with CaptureQueriesContext(connection) as queries:
        hits = found(access_of(world.admin), cluster, "a")
    assert len(queries) <= 2
    assert max(sum(hit.kind == kind for hit in hits) for kind in {hit.kind for hit in hits}) <= HITS
    client = client_of(world.admin)
    with CaptureQueriesContext(connection) as queries:
        client.get(PATH, {"q": "a"})
    assert len(queries) <= MAX_QUERIES + WRITER


def test_one_hit_is_opened_and_odd_texts_are_answered(world) -> None:
    client = client_of(world.admin)
    assert "/gangs/" in client.get(PATH, {"q": "search/embed-lap2-012"}).headers["Location"]
    for text in ("\x00", "%", "_", "'", "9" * 40, "#0", "/", "a/b/c", "change 99999999"):
        assert client.get(PATH, {"q": text}).status_code in (200, 302), text


def test_the_whole_name_of_one_gang_opens_it_although_reclaims_name_it_too(world) -> None:
    gang = world.gangs["search/rank-v7"]
    Reclaim.objects.filter(cluster=world.cluster).update(reclaimer=gang.key)
    answer = client_of(world.admin).get(PATH, {"q": gang.key})
    assert answer["Location"] == f"/clusters/demo/gangs/{gang.pk}/"


def test_a_kind_of_which_as_many_are_listed_as_can_be_says_that_there_may_be_more(world) -> None:
    client = client_of(world.admin)
    said = f"At most {HITS} of a kind are listed: write more of the name to find others."
    assert said in " ".join(client.get(PATH, {"q": "eval-lap1"}).content.decode().split())
    assert "of a kind are listed" not in client.get(PATH, {"q": "embed-lap2"}).content.decode()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("adopt", "/clusters/demo/adoption/"),
        ("adoption", "/clusters/demo/adoption/"),
        ("Drift", "/clusters/demo/drift/"),
        ("refused", "/clusters/demo/drift/"),
        ("policy", "/clusters/demo/policy/"),
        ("plugins", "/clusters/demo/policy/"),
        ("STATUS", "/status/"),
        ("workers", "/status/"),
        ("last push", "/clusters/demo/connection/"),
    ],
)
def test_a_page_is_found_by_its_name_and_by_what_it_is_about(world, text, address) -> None:
    page = client_of(world.admin).get(PATH, {"q": text}).content.decode()
    part = page.partition('id="found-page"')[2].partition("</section>")[0]
    assert f'href="{address}"' in part


def test_pages_of_the_platform_are_found_by_no_member(world) -> None:
    client = client_of(world.member)
    for text in ("adopt", "status", "last push"):
        page = client.get(PATH, {"q": text}).content.decode()
        assert not {"/clusters/demo/adoption/", "/status/", "/clusters/demo/connection/"} & set(
            re.findall(r'data-hit href="([^"]+)"', page)
        )
