"""A page that listens holds no thread and no database connection."""

import math
import re
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt

from tidesched_web.accounts.mfa import refuse_where_demanded
from tidesched_web.accounts.selectors import access_of, live_token
from tidesched_web.accounts.stream_selectors import MAY_LISTEN, Caller, caller_of_session, caller_of_token, standings
from tidesched_web.api.problem_json import answer, throttled
from tidesched_web.api.stream_rights import OpenStream, open_streams, sight_of
from tidesched_web.api.throttling import anonymous_waits
from tidesched_web.common import live
from tidesched_web.common.errors import DomainError
from tidesched_web.common.live_hub import Listener, Unreachable, hub

LIFETIME_SECONDS = 15 * 60.0
FULL_SECONDS = 30
# Within what Redis takes for a number.
_POSITION = re.compile(r"[0-9]{1,19}-[0-9]{1,10}")


def _admitted(request: HttpRequest) -> tuple[Caller, str, live.Sight] | None:
    kind, _space, text = request.headers.get("Authorization", "").partition(" ")
    plain = text.strip()
    if kind.lower() == "bearer" and plain:
        token = live_token(plain)
        if token is None:
            return None
        access = access_of(token.user, token)
        if not access.has_scope(MAY_LISTEN):
            return None
        caller = caller_of_token(token, plain)
    elif request.user.is_authenticated:
        refuse_where_demanded(request.user)
        access = access_of(request.user)
        caller = caller_of_session(request.user, request.session.session_key or "")
    else:
        return None
    standing = standings([caller]).get(caller)
    return None if standing is None else (caller, standing, sight_of(access))


PARAMETERS = ("topics", "after")


@csrf_exempt  # it is only read; any other method is refused as that
async def stream(request: HttpRequest) -> HttpResponseBase:
    if request.method != "GET":
        text = _("Method %(method)s is not allowed here.")
        return _refused(request, "method_not_allowed", text % {"method": request.method}, {"Allow": "GET"})
    if unknown := sorted(set(request.GET).difference(PARAMETERS)):
        text = _("Unknown parameter %(name)s; known: %(known)s.")
        return _refused(request, "unknown_parameter", text % {"name": unknown[0], "known": ", ".join(PARAMETERS)})
    if twice := next((name for name, values in request.GET.lists() if len(values) > 1), ""):
        return _refused(request, "invalid", _("%(name)s is given more than once.") % {"name": twice})
    try:
        admitted = await sync_to_async(_admitted)(request)
    except DomainError as error:
        return answer(error, request, {"Cache-Control": "no-store"})
    if admitted is None:
        if waits := await sync_to_async(anonymous_waits)():
            headers = {"Retry-After": str(math.ceil(waits)), "Cache-Control": "no-store"}
            return answer(throttled(settings.API_ANONYMOUS_REQUESTS_PER_MINUTE), request, headers)
        text = _("Sign in first, or send a live token that may read.")
        return _refused(request, "not_authenticated", text, {"WWW-Authenticate": "Bearer"})
    topics = {topic for topic in request.GET.get("topics", ",".join(live.TOPICS)).split(",") if topic}
    unknown = sorted(topics.difference(live.TOPICS))
    if unknown or not topics:
        text = _("Unknown topic %(unknown)s; known: %(known)s.")
        said = {"unknown": ", ".join(unknown[:1]) or "“”", "known": ", ".join(live.TOPICS)}
        return _refused(request, "invalid", text % said)
    caller, standing, sight = admitted
    try:
        await hub().ready()
    except Unreachable:
        return _full(request, "unavailable", _("Live events cannot be read at the moment."), None)
    if full := open_streams().room_for(caller):
        limit, text = _full_words(full)
        return _full(request, full, text, limit)
    after = request.headers.get("Last-Event-ID", "") or request.GET.get("after", "")
    one = OpenStream(caller, standing, sight, Listener(topics))
    response = StreamingHttpResponse(
        _lines(one, after if _POSITION.fullmatch(after) else ""), content_type="text/event-stream"
    )
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"
    return response


def _full_words(code: str) -> tuple[int, str]:
    if code == "too_many_streams":
        limit, said = settings.STREAMS_OF_ONE, _("This account has %(limit)d streams open, the most that it may.")
    else:
        limit, said = settings.STREAMS, _("%(limit)d streams are open, the most that this process keeps.")
    return limit, said % {"limit": limit}


def _full(request: HttpRequest, code: str, detail: str, limit: int | None) -> HttpResponse:
    return _refused(request, code, detail, {"Retry-After": str(FULL_SECONDS)}, {"limit": limit} if limit else None)


def _refused(
    request: HttpRequest,
    code: str,
    detail: str,
    headers: dict[str, str] | None = None,
    extra: dict[str, Any] | None = None,
) -> HttpResponse:
    return answer(DomainError(code, detail, extra), request, {"Cache-Control": "no-store", **(headers or {})})


async def _lines(one: OpenStream, after: str) -> AsyncIterator[bytes]:
    started = time.monotonic()
    streams = open_streams()
    if full := streams.room_for(one.caller):
        yield _end(full)
        return
    streams.enter(one)
    try:
        yield b"retry: 2000\n: connected\n\n"
        await hub().join(one.listener, after=after)
        async with aclosing(one.listener.batches()) as batches:
            async for batch in batches:
                if text := _changes(batch, one.sight) if batch else b": still here\n\n":
                    yield text
                if time.monotonic() - started > LIFETIME_SECONDS:
                    one.listener.end("lifetime")
        yield _end(one.listener.ended)
    except Unreachable:
        yield _end("unreachable")
    finally:
        hub().leave(one.listener)
        streams.leave(one)


# What was written last, by its events and who may read them: the pages of one person get the same.
_written: dict[tuple[object, ...], bytes] = {}
_MOST_WRITTEN = 200


def _changes(batch: list[live.Event], sight: live.Sight) -> bytes:
    key = (sight, *((event.position, event.topic, event.id) for event in batch))
    text = _written.get(key)
    if text is None:
        text = b"".join(
            b"id: %s\nevent: change\ndata: %s\n\n" % (event.position.encode(), orjson.dumps(_document(event)))
            for event in live.seen(batch, sight)
        )
        if len(_written) >= _MOST_WRITTEN:
            _written.clear()
        _written[key] = text
    return text


def _document(event: live.Event) -> dict[str, Any]:
    said = {"topic": event.topic, "id": event.id, "version": event.version, "cluster": event.cluster}
    if event.about is not None:
        said |= {"kind": event.about.kind, "name": event.about.name, "what": event.about.what}
    return said


def _end(why: str) -> bytes:
    return b"event: end\ndata: %s\n\n" % orjson.dumps({"reason": why})
