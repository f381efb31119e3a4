import asyncio
import time
from collections.abc import AsyncIterator

import orjson
from starlette.requests import Request
from starlette.responses import StreamingResponse

from tidesched_web.simcluster import selectors
from tidesched_web.simcluster.errors import expired
from tidesched_web.simcluster.requests import Target, whole_number
from tidesched_web.simcluster.store import Change, Store

_BOOKMARK_SECONDS = 5.0
_LONGEST_SECONDS = 3600


class Bell:
    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.closed = False

    def ring(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    def close(self) -> None:
        self.closed = True
        self.ring()

    async def wait(self, seconds: float) -> None:
        event = self._event
        try:
            await asyncio.wait_for(event.wait(), seconds)
        except TimeoutError:
            return


def watch(store: Store, bell: Bell, target: Target, request: Request) -> StreamingResponse:
    """Without a version (or with 0) what is there comes first, as ADDED; an older one than is kept is a 410."""
    query = request.query_params
    test = selectors.parse(query.get("labelSelector", ""), query.get("fieldSelector", ""))
    seconds = min(whole_number(request, "timeoutSeconds", _LONGEST_SECONDS), _LONGEST_SECONDS)
    bookmarks = query.get("allowWatchBookmarks", "") in ("true", "1")
    version = whole_number(request, "resourceVersion", 0)
    if version and (version < store.oldest - 1 or version > store.version):
        raise expired(version, store.oldest)
    lines = _stream(store, bell, target, test, version, time.monotonic() + seconds, bookmarks)
    return StreamingResponse(lines, media_type="application/json")


async def _stream(
    store: Store,
    bell: Bell,
    target: Target,
    test: selectors.Test | None,
    version: int,
    deadline: float,
    bookmarks: bool,
) -> AsyncIterator[bytes]:
    if not version:
        version = store.version
        for _, _, body in store.bodies(target.kind, target.namespace):
            if test is None or test(selectors.facts_of(orjson.loads(body))):
                yield _line("ADDED", body)
    last_bookmark = time.monotonic()
    while not bell.closed:
        if version < store.oldest - 1:
            yield _line("ERROR", orjson.dumps(expired(version, store.oldest).to_status()))
            return
        # Read before the changes: later ones ring the bell again.
        reached = store.version
        changes = store.changes_after(target.kind, target.namespace, version)
        for change in changes:
            if line := _as_seen(change, test):
                yield line
            version = change.version
        if changes:
            continue
        version = max(version, reached)
        now = time.monotonic()
        if bookmarks and now - last_bookmark >= _BOOKMARK_SECONDS:
            last_bookmark = now
            yield _bookmark(target, version)
        if now >= deadline:
            break
        await bell.wait(min(deadline - now, _BOOKMARK_SECONDS))
    if bookmarks:
        yield _bookmark(target, version)


def _as_seen(change: Change, test: selectors.Test | None) -> bytes | None:
    """The line for one watcher: an object that enters its selection is ADDED, one that leaves it is DELETED."""
    if test is None:
        return _line(change.type, change.body)
    is_in = change.type != "DELETED" and test(change.facts)
    was_in = change.prior is not None and test(change.prior)
    if is_in:
        return _line("MODIFIED" if was_in else "ADDED", change.body)
    return _line("DELETED", change.body) if was_in else None


def _bookmark(target: Target, version: int) -> bytes:
    kind = target.kind
    obj = {"kind": kind.kind, "apiVersion": kind.group_version, "metadata": {"resourceVersion": str(version)}}
    return _line("BOOKMARK", orjson.dumps(obj))


def _line(type_: str, body: bytes) -> bytes:
    return b'{"type":"' + type_.encode() + b'","object":' + body + b"}\n"
