"""A body that is sent in chunks gets the answer of the same body with its length, from a server as it runs."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
import uvicorn
from asgiref.sync import async_to_sync

from tests.api import cast
from tests.api.story import Story, named_by
from tidesched_web.api.document.served import document
from tidesched_web.embedded.web import SERVER
from tidesched_web.front.handler import OneThreadHandler
from tidesched_web.front.limiter import Limiter
from tidesched_web.quota.models import Queue

WRITES = ("post", "put", "patch", "delete")


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


@pytest.mark.proof
def test_every_write_reads_a_body_in_chunks_as_one_in_one_piece(transactional_db: Any, settings: Any) -> None:
    """A member that nobody knows is named in both answers; with a dry run what is right is told in both."""
    settings.API_REQUESTS_PER_MINUTE = 0
    story, paths = Story(), document()["paths"]
    ids, headers, unlike, asked = named_by(story, paths), of_admin(story.world), {}, 0
    for path, operations in paths.items():
        for method, operation in operations.items():
            kinds = operation.get("requestBody", {}).get("content", {}) if method in WRITES else {}
            names = {name.removeprefix("path."): key for name, key in ids.get(operation["operationId"], {}).items()}
            for kind, body in [(kind, body) for kind, content in kinds.items() for body in _bodies(content)]:
                dry = any(one.get("name") == "dry_run" for one in operation.get("parameters", ()))
                if not (dry or b"in_chunks" in body):
                    continue
                place = path.format(**names) + ("?dry_run=true" if dry else "")
                whole, chunked = both(method.upper(), place, body, headers | {"Content-Type": kind})
                asked += 1
                if (whole.status_code, _said(whole)) != (chunked.status_code, _said(chunked)):
                    unlike[operation["operationId"], kind] = (whole.text, chunked.text)
                if b"in_chunks" in body and "json" in kind:
                    assert "in_chunks" in chunked.text or chunked.status_code != 400, (
                        operation["operationId"],
                        chunked.text,
                    )
    assert unlike == {}
    assert asked > 60


def _bodies(content: dict[str, Any]) -> list[bytes]:
    known = document()["components"].get("examples", {})
    examples = [
        known[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in content.get("examples", {}).values()
    ]
    values = [one["value"] for one in examples[:1]]
    return [
        b'{"in_chunks": 1}',
        *(value.encode() if isinstance(value, str) else json.dumps(value).encode() for value in values),
    ]


def _said(answer: httpx.Response) -> Any:
    """Without what is of each request alone: its id, moments, and keys of rows that a dry run takes back."""
    return re.sub(r'"(request_id|\w*_at|id|url|key|job|number)": ?("[^"]*"|[0-9]+)', "", answer.text)


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


def test_a_coded_body_is_refused_by_the_name_of_its_coding(world):
    place = f"/api/v1/queues/{world.queues['acme-train'].pk}/?dry_run=true"
    answers = both("PATCH", place, gzip.compress(b"{}"), of_admin(world) | {"Content-Encoding": "gzip"})
    for answer in answers:
        assert (answer.status_code, "gzip" in answer.json()["detail"]) == (415, True)
