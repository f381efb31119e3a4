"""Server-sent events: `/api/v1/stream?topics=sessions,gangs`, ids only, bounded by the clusters that the reader sees.

An async generator, so that a page that listens holds no thread and ends with the server. `Last-Event-ID` (or
`?after=`) goes on where a connection broke; what has fallen off the stream is simply fetched again by its reader.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import orjson
from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.translation import gettext as _

from tidesched_web.accounts.models import Scope
from tidesched_web.accounts.selectors import access_of, active_user, live_token
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common import live

RIGHTS_SECONDS = 30.0
LIFETIME_SECONDS = 15 * 60.0
# Within what Redis takes for a number.
_POSITION = re.compile(r"[0-9]{1,19}-[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who listens: an account by its session, or a token by its text."""

    user_id: int | None
    token: str

    def sight(self) -> frozenset[int] | None:
        """The clusters that the caller sees now; None when it may listen no longer."""
        if self.token:
            token = live_token(self.token)
            if token is None:
                return None
            access = access_of(token.user, token)
            if not access.has_scope((Scope.CLUSTER_READ, Scope.QUOTA_READ, Scope.RECLAIM_READ)):
                return None
        else:
            user = active_user(self.user_id)
            if user is None:
                return None
            access = access_of(user)
        return frozenset(visible_clusters(access).values_list("pk", flat=True))


async def _caller(request: HttpRequest) -> Caller:
    kind, _space, text = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer" and text.strip():
        return Caller(None, text.strip())
    user = await request.auser()
    return Caller(user.pk if user.is_authenticated else None, "")


async def stream(request: HttpRequest) -> HttpResponseBase:
    """Answer with a stream of `change` events, each `{topic, id, version, cluster}`."""
    if request.method != "GET":
        return HttpResponse(status=405, headers={"Allow": "GET"})
    caller = await _caller(request)
    sight = await sync_to_async(caller.sight)()
    if sight is None:
        return _problem(401, "not_authenticated", _("Sign in first, or send a live token that may read."))
    topics = {topic for topic in request.GET.get("topics", ",".join(live.TOPICS)).split(",") if topic}
    if unknown := sorted(topics.difference(live.TOPICS)):
        text = _("Unknown topic %(unknown)s; known: %(known)s.")
        return _problem(400, "invalid", text % {"unknown": unknown[0], "known": ", ".join(live.TOPICS)})
    after = request.headers.get("Last-Event-ID", "") or request.GET.get("after", "")
    response = StreamingHttpResponse(
        _events(caller, sight, topics, after if _POSITION.fullmatch(after) else "$"), content_type="text/event-stream"
    )
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"
    return response


def _problem(status: int, code: str, detail: str) -> HttpResponse:
    body = {"type": "about:blank", "status": status, "title": code, "detail": detail, "code": code}
    return HttpResponse(orjson.dumps(body), status=status, content_type="application/problem+json")


async def _events(caller: Caller, sight: frozenset[int] | None, topics: set[str], after: str) -> AsyncIterator[bytes]:
    """The lines of the stream. Rights are read again every `RIGHTS_SECONDS`, and a stream ends after a while."""
    read_at = started = time.monotonic()
    yield b"retry: 2000\n: connected\n\n"
    async for event in live.events(topics, after=after):
        moment = time.monotonic()
        if moment - read_at > RIGHTS_SECONDS:
            sight, read_at = await sync_to_async(caller.sight)(), moment
        if sight is None or moment - started > LIFETIME_SECONDS:
            return
        if event is None:
            yield b": still here\n\n"
        elif event.cluster is None or event.cluster in sight:
            data = {"topic": event.topic, "id": event.id, "version": event.version, "cluster": event.cluster}
            yield b"id: %s\nevent: change\ndata: %s\n\n" % (event.position.encode(), orjson.dumps(data))
