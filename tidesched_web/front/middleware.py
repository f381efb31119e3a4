"""What Django says to the layer before it: whose request it was, and how its answer is made and kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import FileResponse, HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware
from django.utils.functional import LazyObject, empty

from tidesched_web.front import ACCOUNT, KIND

EVENTS = "text/event-stream"


@sync_and_async_middleware
def middleware(
    get_response: Callable[[HttpRequest], HttpResponseBase] | Callable[[HttpRequest], Awaitable[HttpResponseBase]],
) -> Callable[[HttpRequest], Any]:
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> HttpResponseBase:
            response: HttpResponseBase = await get_response(request)
            _say(request, response)
            return response

        return answer_async

    def answer(request: HttpRequest) -> HttpResponseBase:
        response: Any = get_response(request)
        _say(request, response)
        return response

    return answer


def _say(request: HttpRequest, response: HttpResponseBase) -> None:
    if request.path.startswith("/api/"):
        response.headers.setdefault("Cache-Control", "no-store")
    scope: dict[str, Any] | None = getattr(request, "scope", None)
    if scope is None:  # a test client without a server
        return
    user: Any = getattr(request, "user", None)
    # A request that has not asked who it is costs no query for it here.
    if user is not None and not (isinstance(user, LazyObject) and user._wrapped is empty):  # noqa: SLF001
        scope[ACCOUNT] = user.pk if user.is_authenticated else None
    if response.streaming and not isinstance(response, FileResponse):
        scope[KIND] = "events" if response.headers.get("Content-Type", "").startswith(EVENTS) else "download"
