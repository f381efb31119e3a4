"""A connection test takes its time: the request waits for it, others are answered meanwhile, and it connects once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.core.cache import cache
from django.db import connection

from tests.api import cast
from tests.cluster.answering_server import TOKEN, AnsweringServer, pem
from tests.waiting import until_async
from tests.web.front.asgi import Answer, Client, Connection
from tidesched_web.clusters.models import Cluster, ConnectionTest
from tidesched_web.front.handler import OneThreadHandler
from tidesched_web.front.limiter import Limiter
from tidesched_web.jobs import running
from tidesched_web.jobs.models import Job


@pytest.fixture
def server(tmp_path: Any) -> Iterator[AnsweringServer]:
    made = AnsweringServer(tmp_path)
    yield made
    made.stop()


def test_a_connection_test_is_waited_for_and_made_once(server, settings, transactional_db) -> None:
    """Asked twice under one key, and again when it is done."""
    cache.clear()
    world = cast.build()
    settings.WEB_REQUESTS_AT_ONCE = 2
    headers = {"authorization": f"Bearer {world.token('admin', 'admin')}", "content-type": "application/json"}
    given = {"name": "Hall 3", "mode": "schedule", "api_url": server.url, "token": TOKEN, "reason": "A new hall."}
    body = orjson.dumps(given | {"ca_certificate": pem(server.authority[0])})

    async def story() -> None:
        client = Client(Limiter(OneThreadHandler()))

        def connect() -> tuple[Answer, Connection]:
            named = headers | {"idempotency-key": "hall", "content-length": str(len(body))}
            return client.open("POST", "/api/v1/clusters/", body=body, headers=named)

        made, first = connect()
        job = await until_async(Job.objects.afirst)
        other = await client.ask("GET", "/api/v1/clusters/", headers=headers)
        again, second = connect()
        await second.task
        assert (other.status, made.begun.is_set()) == (200, False)
        assert (again.status, again.json()["code"]) == (409, "request_in_flight")
        await sync_to_async(done)(job.pk)
        await first.task
        assert (made.status, made.json()["slug"]) == (201, "hall-3"), made.body
        again, second = connect()
        await second.task
        assert (again.status, again.headers["idempotency-replayed"]) == (201, "true")

    async_to_sync(story)()
    assert (ConnectionTest.objects.count(), Job.objects.count()) == (1, 1)
    assert Cluster.objects.filter(slug="hall-3").count() == 1


def done(job_id: int) -> None:
    """What a worker does."""
    try:
        running.run(job_id)
    finally:
        connection.close()
