"""The rights of all listeners are read together every `RIGHTS_SECONDS`, so a stream ends soon after a lost right.

On one thread, whose connection is given back after each reading: an open stream holds none.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakKeyDictionary

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connections
from psycopg_pool import PoolTimeout

from tidesched_web.accounts.stream_selectors import NAMED_TO, Caller, access_of_caller, standings
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.live import Sight
from tidesched_web.common.live_hub import Listener
from tidesched_web.common.permissions import Access

RIGHTS_SECONDS = 3.0
# How long streams go on while the database does not say whether they may.
UNCHECKED_SECONDS = 30.0
SIGHT_SECONDS = 30.0
SIGHTS_AT_ONCE = 25

_log = logging.getLogger(__name__)
_reader = ThreadPoolExecutor(1, thread_name_prefix="stream-rights")
_all: WeakKeyDictionary[asyncio.AbstractEventLoop, OpenStreams] = WeakKeyDictionary()


def sight_of(access: Access) -> Sight:
    return Sight(
        named=frozenset(topic for topic, scopes in NAMED_TO.items() if access.has_scope(scopes)),
        clusters=frozenset(visible_clusters(access).values_list("pk", flat=True)),
        tenants=access.tenant_ids,
        everything=access.everything,
        administers=access.administers,
        user_id=None if access.limited_to is not None else access.user_id,
    )


class OpenStream:
    def __init__(self, caller: Caller, standing: str, sight: Sight, listener: Listener) -> None:
        self.caller, self.standing, self.sight, self.listener = caller, standing, sight, listener
        self.seen_at = time.monotonic()


class OpenStreams:
    def __init__(self) -> None:
        self._streams: set[OpenStream] = set()
        self._by_account: Counter[int] = Counter()
        self._watching: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._streams)

    def room_for(self, caller: Caller) -> str:
        if self._by_account[caller.user_id] >= settings.STREAMS_OF_ONE:
            return "too_many_streams"
        return "unavailable" if len(self._streams) >= settings.STREAMS else ""

    def enter(self, stream: OpenStream) -> None:
        self._streams.add(stream)
        self._by_account[stream.caller.user_id] += 1
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())

    def leave(self, stream: OpenStream) -> None:
        if stream not in self._streams:
            return
        self._streams.discard(stream)
        self._by_account[stream.caller.user_id] -= 1
        if not self._by_account[stream.caller.user_id]:
            del self._by_account[stream.caller.user_id]
        if not self._streams and self._watching is not None:
            self._watching.cancel()
            self._watching = None

    async def _watch(self) -> None:
        checked_at = time.monotonic()
        while True:
            await asyncio.sleep(RIGHTS_SECONDS)
            callers = {stream.caller for stream in self._streams}
            due = self._due_for_sight()
            try:
                found, sights = await asyncio.get_running_loop().run_in_executor(_reader, _read, callers, due)
            except (DatabaseError, PoolTimeout, OSError) as error:
                _log.warning("the rights of open streams cannot be read: %s", error)
                if time.monotonic() - checked_at > UNCHECKED_SECONDS:
                    for stream in list(self._streams):
                        stream.listener.end("unreachable")
                continue
            checked_at = time.monotonic()
            for stream in list(self._streams):
                if stream.caller not in callers:
                    continue  # it came meanwhile
                standing = found.get(stream.caller)
                if standing is None:
                    stream.listener.end("signed_out")
                elif standing != stream.standing:
                    stream.listener.end("rights_changed")
                elif stream.caller in sights:
                    stream.sight, stream.seen_at = sights[stream.caller], checked_at

    def _due_for_sight(self) -> list[Caller]:
        now = time.monotonic()
        late = sorted(
            (stream for stream in self._streams if now - stream.seen_at > SIGHT_SECONDS), key=lambda one: one.seen_at
        )
        return list(dict.fromkeys(stream.caller for stream in late))[:SIGHTS_AT_ONCE]


def open_streams() -> OpenStreams:
    loop = asyncio.get_running_loop()
    return _all.setdefault(loop, OpenStreams())


def open_now() -> int:
    return sum(len(one) for one in list(_all.values()))


def _read(callers: Collection[Caller], due: list[Caller]) -> tuple[dict[Caller, str], dict[Caller, Sight]]:
    try:
        sights = {caller: sight_of(access) for caller in due if (access := access_of_caller(caller)) is not None}
        return standings(callers), sights
    finally:
        connections.close_all()
