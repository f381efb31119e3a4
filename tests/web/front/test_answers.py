"""Answers in few bytes: packed, and nothing at all where nothing moved."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable

import pytest
from django.db.models import F
from django.http import StreamingHttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone

from tests.web.console import world as story
from tests.web.console.test_pages import client_of
from tidesched_web.front.middleware import Compression, digest
from tidesched_web.scheduling.models import Alert, QueueUsage, Reclaim, Session, TidePoint
from tidesched_web.workloads.models import Gang

pytestmark = pytest.mark.django_db
LIVE = {"HX-Request": "true", "HX-Target": "live", "Accept-Encoding": "gzip"}
PAGES = ("", "nodes/", "quota/", "gangs/", "queues/", "sessions/", "reclaims/", "alerts/")
# What the answer of a request costs beside its body: status line and headers.
HEADERS = 900
# A page asks again at most every 10 s.
ASKED_IN_AN_HOUR = 3600 / 10
MOST_IN_AN_HOUR = 3_000_000


@pytest.fixture
def world() -> story.World:
    return story.full()


@pytest.fixture
def client(world) -> Client:
    return client_of(world.admin)


def test_pages_and_answers_of_the_api_are_packed(client):
    plain = client.get("/clusters/demo/nodes/", headers={"Accept-Encoding": "identity"})
    packed = client.get("/clusters/demo/nodes/", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in plain
    assert packed["Content-Encoding"] == "gzip"
    assert b"</html>" in gzip.decompress(packed.content)
    assert len(packed.content) < len(plain.content) / 5
    assert "Accept-Encoding" in packed["Vary"]
    assert client.get("/api/v1/nodes/", headers={"Accept-Encoding": "gzip"})["Content-Encoding"] == "gzip"


def test_the_length_of_a_packed_answer_says_nothing_of_what_is_in_it(client):
    """What is reflected beside a secret would else be guessed by the length (BREACH)."""
    answers = [client.get("/clusters/demo/nodes/", headers={"Accept-Encoding": "gzip"}) for _ in range(20)]
    assert len({len(answer.content) for answer in answers}) > 1


def test_a_packed_object_has_the_etag_that_a_write_takes(client, world):
    address = f"/api/v1/queues/{world.queues['search-training'].pk}/"
    plain, packed = (client.get(address, headers={"Accept-Encoding": name}) for name in ("identity", "gzip"))
    assert packed["Content-Encoding"] == "gzip"
    assert packed["ETag"] == plain["ETag"]
    assert not packed["ETag"].startswith("W/")


def test_an_event_stream_is_not_packed():
    request = RequestFactory().get("/api/v1/stream", headers={"Accept-Encoding": "gzip"})
    stream = StreamingHttpResponse([b"x" * 500], content_type="text/event-stream")
    assert "Content-Encoding" not in Compression(lambda _request: stream)(request)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_where_nothing_moves_sends_nothing(client, page, subtests):
    for _ in range(2):  # a page that says minutes is another one when a minute ends in between
        first = client.get(f"/clusters/demo/{page}", headers=LIVE)
        assert first.status_code == 200
        asked = {**LIVE, "If-None-Match": first["ETag"]}
        answers = [client.get(f"/clusters/demo/{page}", headers=asked) for _ in range(3)]
        if all(answer.status_code == 304 for answer in answers):
            break
    assert [(answer.status_code, answer.content) for answer in answers] == [(304, b"")] * 3
    assert len(first.content) + HEADERS * ASKED_IN_AN_HOUR < MOST_IN_AN_HOUR


def test_a_page_where_something_moved_is_sent(client, world, subtests):
    """Each live page by what it shows: a digest that leaves out too much would keep the old part for ever."""
    cluster, gang = world.cluster, world.gangs["search/embed-lap2-012"]
    queue = world.queues["search-training"]
    needs = gang.reason_numbers | {"requested": 17}
    moves: dict[str, Callable[[], object]] = {
        "": lambda: TidePoint.objects.filter(cluster=cluster).update(idle=F("idle") + 1000),
        "nodes/": lambda: cluster.nodes.update(unschedulable=True),
        "quota/": lambda: QueueUsage.objects.filter(queue=queue).update(allocated=F("allocated") + 1000),
        "gangs/": lambda: Gang.objects.filter(pk=gang.pk).update(reason_numbers=needs),
        "queues/": lambda: QueueUsage.objects.filter(queue=queue).update(inqueue=F("inqueue") + 3000),
        "sessions/": lambda: Session.objects.filter(pk=world.sessions[-1].pk).update(number=4711),
        "reclaims/": lambda: Reclaim.objects.filter(cluster=cluster).update(reclaimer="search/another"),
        "alerts/": lambda: Alert.objects.filter(cluster=cluster).update(acknowledged_at=timezone.now()),
    }
    assert set(moves) == set(PAGES)
    for page, move in moves.items():
        with subtests.test(page):
            first = client.get(f"/clusters/demo/{page}", headers=LIVE)
            move()
            again = client.get(f"/clusters/demo/{page}", headers={**LIVE, "If-None-Match": first["ETag"]})
            assert again.status_code == 200
            assert again["ETag"] != first["ETag"]


def test_only_times_and_masked_tokens_say_nothing(client) -> None:
    """Two answers that say the same to a reader have one digest; each other attribute counts."""
    said = (
        b'<p data-now="1"\n data-after="3" class="x">%s</p>'
        b'<input name="csrfmiddlewaretoken" value="%s"><input name="revision" value="%s">'
        b'<time datetime="%s" title="%s">%s</time>'
    )

    def digest_of(*parts: bytes) -> str:
        return digest(said % parts, page=True)

    first = digest_of(b"a", b"mask", b"1", b"2026-03-01", b"at noon", b"2 min ago")
    assert digest_of(b"a", b"other", b"1", b"2026-03-01", b"at noon", b"3 min ago") == first
    for parts in (
        (b"b", b"mask", b"1", b"2026-03-01", b"at noon", b"2 min ago"),
        (b"a", b"mask", b"2", b"2026-03-01", b"at noon", b"2 min ago"),
        (b"a", b"mask", b"1", b"2026-03-02", b"at noon", b"2 min ago"),
        (b"a", b"mask", b"1", b"2026-03-01", b"at one", b"2 min ago"),
    ):
        assert digest_of(*parts) != first, parts


def test_a_part_with_a_form_says_nothing_new_though_its_token_is_masked_anew(client) -> None:
    """The page of alerts has forms: a token is masked differently in each answer."""
    first, again = (client.get("/clusters/demo/alerts/", headers={**LIVE, "Accept-Encoding": ""}) for _ in range(2))
    tokens = [re.search(rb'csrfmiddlewaretoken" value="([^"]+)"', answer.content)[1] for answer in (first, again)]
    assert tokens[0] != tokens[1]
    assert first["ETag"] == again["ETag"]


def test_a_figure_where_nothing_moves_sends_nothing(client):
    address = "/clusters/demo/tide/?theme=light"
    first = client.get(address, headers={"Accept": "application/json"})
    again = client.get(address, headers={"Accept": "application/json", "If-None-Match": first["ETag"]})
    assert (first.status_code, again.status_code) == (200, 304)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("sign", [b">", b"<time", b"<time>", b' data-now="', b'name="csrfmiddlewaretoken" value="'])
def test_no_text_makes_a_digest_walk_over_the_same_part_again_and_again(sign: bytes) -> None:
    """A search that begins anew at each sign would take minutes here."""
    assert len(digest(sign * 400_000, page=True)) == 32


def test_a_page_says_the_same_at_another_time_and_with_another_address_does_not() -> None:
    def page(at: str, text: str) -> str:
        written = f'<p data-now="{at}">{text} <time class="num" datetime="2026-03-01">{at}</time></p>'
        return digest(written.encode(), page=True)

    assert page("2 min ago", "a") == page("3 min ago", "a")
    assert page("2 min ago", "a") != page("2 min ago", "b")
    assert digest(b"<time>1</time>", page=False) != digest(b"<time>2</time>", page=False)
