"""A body that is sent in chunks gets the answer of the same body with its length, from a server as it runs."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
import uvicorn
from asgiref.sync import async_to_sync

from tests.api import cast
from tidesched_web.embedded.web import SERVER
from tidesched_web.front.handler import OneThreadHandler
from tidesched_web.front.limiter import Limiter
from tidesched_web.quota.models import Queue


async def in_chunks(body: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(body), 7):
        yield body[at : at + 7]


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[str]:
    config = uvicorn.Config(Limiter(OneThreadHandler()), port=0, log_level="critical", **SERVER)
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        await server.shutdown()


def both(method: str, path: str, body: bytes, headers: dict[str, str]) -> list[httpx.Response]:
    """The answers to the body in one piece, and in chunks."""

    async def asked() -> list[httpx.Response]:
        async with serving() as address, httpx.AsyncClient(base_url=address, timeout=60) as client:
            return [
                await client.request(method, path, content=content, headers=headers)
                for content in (body, in_chunks(body))
            ]

    answers: list[httpx.Response] = async_to_sync(asked)()
    assert answers[1].request.headers["transfer-encoding"] == "chunked"
    return answers


@pytest.fixture
def world(transactional_db: Any) -> cast.World:
    return cast.build()


def of_admin(world: cast.World) -> dict[str, str]:
    token = world.token("admin", "admin")
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "If-Match": "*"}


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PATCH", "queues/{queue}/?dry_run=true", {"weight": 7, "reason": "in chunks"}, 200),
        ("PATCH", "queues/{queue}/", {"weight": 7}, 400),
        ("POST", "tenants/?dry_run=true", {"slug": "new", "name": "New", "reason": "in chunks"}, None),
        ("DELETE", "queues/{queue}/?dry_run=true", {"reason": "in chunks"}, None),
        ("DELETE", "queues/{queue}/", {}, None),
    ],
)
def test_each_method_answers_the_same(world, method, path, body, status):
    place = f"/api/v1/{path.format(queue=world.queues['acme-train'].pk)}"
    whole, chunked = both(method, place, json.dumps(body).encode(), of_admin(world))
    assert chunked.status_code == whole.status_code == (status or whole.status_code), chunked.text
    of_each = {"request_id": "", "id": 0, "url": ""}
    known = {**whole.json(), **of_each}
    assert {**chunked.json(), **of_each} == known
    if status == 200:
        assert [field["after"] for field in known["plan"]["fields"]] == [7]


def test_a_change_in_chunks_is_made(world):
    """It answered 200 and changed nothing."""
    queue = world.queues["acme-train"]
    body = json.dumps({"weight": 7, "reason": "in chunks"}).encode()

    async def asked() -> httpx.Response:
        async with serving() as address, httpx.AsyncClient(base_url=address, timeout=60) as client:
            path = f"/api/v1/queues/{queue.pk}/"
            return await client.patch(path, content=in_chunks(body), headers=of_admin_)

    of_admin_ = of_admin(world)
    answer = async_to_sync(asked)()
    assert (answer.status_code, answer.json()["weight"]) == (200, 7)
    assert Queue.objects.get(pk=queue.pk).weight == 7


def test_a_form_in_chunks_is_read(transactional_db):
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    body = urlencode({"username": "nobody", "password": "x" * 20}).encode()
    whole, chunked = both("POST", "/sign-in/", body, kind)
    assert chunked.status_code == whole.status_code
    assert ('value="nobody"' in chunked.text) == ('value="nobody"' in whole.text)
