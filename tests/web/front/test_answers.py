"""Answers in few bytes: packed, and nothing at all where nothing moved."""

from __future__ import annotations

import gzip

import brotli  # type: ignore[import-untyped]
import pytest
from django.test import Client

from tests.web.console import world as story
from tests.web.console.test_pages import client_of

pytestmark = pytest.mark.django_db
LIVE = {"HX-Request": "true", "HX-Target": "live", "Accept-Encoding": "gzip, br"}
PAGES = ("", "nodes/", "quota/", "gangs/", "queues/", "sessions/", "reclaims/", "alerts/")
# What the answer of a request costs beside its body: status line and headers.
HEADERS = 900
# A page asks again at most every 2.5 s.
ASKED_IN_AN_HOUR = 3600 / 2.5
MOST_IN_AN_HOUR = 3_000_000


@pytest.fixture
def world() -> story.World:
    return story.full()


@pytest.fixture
def client(world) -> Client:
    return client_of(world.admin)


def test_pages_and_answers_of_the_api_are_packed(client):
    plain = client.get("/clusters/demo/nodes/", headers={"Accept-Encoding": "identity"})
    small = client.get("/clusters/demo/nodes/", headers={"Accept-Encoding": "br"})
    old = client.get("/clusters/demo/nodes/", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in plain
    assert (small["Content-Encoding"], old["Content-Encoding"]) == ("br", "gzip")
    assert b"</html>" in brotli.decompress(small.content)
    assert b"</html>" in gzip.decompress(old.content)
    assert len(small.content) < len(plain.content) / 5
    assert "Accept-Encoding" in small["Vary"]
    answer = client.get("/api/v1/nodes/", headers={"Accept-Encoding": "br"})
    assert answer["Content-Encoding"] == "br"


def test_what_a_form_answers_is_not_packed(client):
    answer = client.post("/clusters/demo/tree/", {"text": "x" * 5000}, headers={"Accept-Encoding": "br"})
    assert "Content-Encoding" not in answer


@pytest.mark.parametrize("page", PAGES)
def test_a_page_where_nothing_moves_sends_nothing(client, page, subtests):
    first = client.get(f"/clusters/demo/{page}", headers=LIVE)
    assert first.status_code == 200
    sent = 0
    for _ in range(3):
        again = client.get(f"/clusters/demo/{page}", headers={**LIVE, "If-None-Match": first["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
        sent += HEADERS + len(again.content)
    assert len(first.content) + sent / 3 * ASKED_IN_AN_HOUR < MOST_IN_AN_HOUR


def test_a_page_where_something_moved_is_sent(client, world):
    first = client.get("/clusters/demo/nodes/", headers=LIVE)
    world.cluster.nodes.update(unschedulable=True)
    again = client.get("/clusters/demo/nodes/", headers={**LIVE, "If-None-Match": first["ETag"]})
    assert again.status_code == 200
    assert again["ETag"] != first["ETag"]


def test_a_figure_where_nothing_moves_sends_nothing(client):
    address = "/clusters/demo/tide/?theme=light"
    first = client.get(address, headers={"Accept": "application/json"})
    again = client.get(address, headers={"Accept": "application/json", "If-None-Match": first["ETag"]})
    assert (first.status_code, again.status_code) == (200, 304)
