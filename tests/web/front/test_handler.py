"""A request runs in one piece on one thread."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from asgiref.sync import SyncToAsync, async_to_sync

from tests.api import cast
from tests.web.front.asgi import Client
from tidesched_web.front.handler import OneThreadHandler
from tidesched_web.front.limiter import Limiter

# The signal of the beginning, the request itself, and what is closed at its end.
MOST_CHANGES = 4


def test_a_request_changes_to_its_thread_a_few_times_only(transactional_db: Any, monkeypatch: Any) -> None:
    headers = {"authorization": f"Bearer {cast.build().token('admin', 'admin')}"}
    changes: list[int] = []
    change = SyncToAsync.__call__

    async def counted(self: Any, *args: Any, **options: Any) -> Any:
        changes.append(threading.get_ident())
        return await change(self, *args, **options)

    async def story() -> tuple[int, int]:
        client = Client(Limiter(OneThreadHandler()))
        await client.ask("GET", "/api/v1/queues/", headers=headers)  # the first one fills what is kept
        monkeypatch.setattr(SyncToAsync, "__call__", counted)
        answer = await client.ask("GET", "/api/v1/queues/", headers=headers)
        return answer.status, len(changes)

    status, counts = async_to_sync(story)()
    assert status == 200
    assert 1 <= counts <= MOST_CHANGES


@pytest.mark.parametrize("path", ["/sign-in/", "/no-such-page/"])
def test_pages_of_strangers_and_faults_come_the_same_way(transactional_db: Any, path: str) -> None:
    answer = async_to_sync(Client(Limiter(OneThreadHandler())).ask)("GET", path)
    assert answer.status == {"/sign-in/": 200}.get(path, 404)
    assert "content-security-policy" in answer.headers
