"""Lists whose SQL is kept: each reader gets the page that their own query gives, at every place of the list."""

from __future__ import annotations

import pytest

from tidesched_web.api import prepared_lists
from tidesched_web.api.v1.quota import Queues
from tidesched_web.api.v1.workloads import Gangs

QUERIES = {
    "gangs/": (
        "", "limit=1", "state=waiting", "cluster=east", "cluster=west", "queue=acme-train", "waiting=false",
        "gone=true",
    ),
    "queues/": (
        "", "limit=1", "limit=2", "cluster=east&service_type=training", "tenant=acme", "name=far-train", "state=Closed",
    ),
}  # fmt: skip
READERS = ("admin", "owner", "stranger", "rival", "token:quota:read", "admin")


@pytest.fixture(autouse=True)
def forgotten():
    prepared_lists._kept.clear()


def walk(client, path):
    """All pages forwards, then back to the first."""
    pages, address = [], f"/api/v1/{path}"
    for step in ("next", "previous"):
        while address:
            answer = client.get(address)
            if answer.status_code != 200:
                return answer.json()["code"]
            pages.append(answer.json())
            address = pages[-1][step]
        address = pages[-1]["previous"]
    return pages


def all_of_them(world):
    return {
        (number, path, query): walk(world.client(reader), f"{path}?{query}")
        for number, reader in enumerate(READERS)
        for path, queries in QUERIES.items()
        for query in queries
    }


def test_each_reader_gets_their_own_pages(world, settings, monkeypatch):
    settings.API_REQUESTS_PER_MINUTE = 0
    with monkeypatch.context() as plainly:
        for view in (Gangs, Queues):
            plainly.setattr(view, "prepared", False)
        plain = all_of_them(world)
    assert not prepared_lists._kept
    assert sum(isinstance(pages, list) for pages in plain.values()) > 60
    for _again in range(2):
        assert all_of_them(world) == plain
    assert 20 < len(prepared_lists._kept) <= prepared_lists.MOST_SHAPES


def test_shapes_are_bounded(world, monkeypatch):
    monkeypatch.setattr(prepared_lists, "MOST_SHAPES", 3)
    for limit in range(1, 9):
        world.client("admin").read("queues/", limit=limit)
    assert len(prepared_lists._kept) == 3


def test_what_is_wrong_in_a_parameter_is_said_each_time(world):
    client = world.client("admin")
    for _again in range(2):
        assert client.get("/api/v1/queues/?service_type=idle").status_code == 400
        assert client.get("/api/v1/queues/?cluster=nowhere").json()["code"] == "unknown_object"
        assert client.get("/api/v1/gangs/?cursor=x").json()["code"] == "invalid_cursor"
