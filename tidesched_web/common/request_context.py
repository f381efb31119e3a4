import re
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from tidesched_web.common.client_address import client_address, from_proxy

_OF_PROXIES = frozenset({b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host", b"x-forwarded-port"})
# What is kept of them: that the request came through a proxy or a tunnel that is not trusted.
_VIA = (b"via", b"1.1 unknown")
REQUEST_ID = "tidesched.request_id"
_GIVEN = re.compile(r"[A-Za-z0-9._:-]{8,80}")


@dataclass(frozen=True)
class RequestContext:
    request_id: str = ""
    address: str = ""


_NOWHERE = RequestContext()
_current: ContextVar[RequestContext] = ContextVar("tidesched_request_context", default=_NOWHERE)


def current() -> RequestContext:
    return _current.get()


@contextmanager
def carried(context: RequestContext) -> Iterator[None]:
    """Run a block under ``context``; a task uses it to act under the id of the request that asked for it."""
    mark = _current.set(context)
    try:
        yield
    finally:
        _current.reset(mark)


def _context_of(request: HttpRequest) -> RequestContext:
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "")
    address = client_address(request.META.get("REMOTE_ADDR") or "", [forwarded] if forwarded else [])
    # On the request too: Django writes of a refused one to the log when it has left the middleware.
    request.META[REQUEST_ID] = _request_id(request.headers.get("X-Request-ID", ""))
    return RequestContext(request_id=request.META[REQUEST_ID], address=address)


def address_of(scope: Mapping[str, Any]) -> str:
    client = scope["client"]
    forwarded = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
    return client_address(client[0] if client else "", forwarded)


def without_foreign_claims(scope: Mapping[str, Any]) -> dict[str, Any]:
    """The request without what only a proxy of one's own may say, where it does not come from one."""
    client = scope["client"]
    if from_proxy(client[0] if client else ""):
        return dict(scope)
    left = [header for header in scope["headers"] if header[0] not in _OF_PROXIES]
    if len(left) < len(scope["headers"]):
        left.append(_VIA)
    return {**scope, "headers": left}


def context_of_scope(scope: Mapping[str, Any]) -> RequestContext:
    given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
    return RequestContext(request_id=_request_id(given), address=address_of(scope))


def _request_id(given: str) -> str:
    return given if _GIVEN.fullmatch(given) else secrets.token_hex(12)


@sync_and_async_middleware
def middleware(
    get_response: Callable[[HttpRequest], HttpResponseBase] | Callable[[HttpRequest], Awaitable[HttpResponseBase]],
) -> Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]:
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> HttpResponseBase:
            context = _context_of(request)
            with carried(context):
                response: HttpResponseBase = await get_response(request)
            response.headers["X-Request-ID"] = context.request_id
            return response

        return answer_async

    def answer(request: HttpRequest) -> HttpResponseBase:
        context = _context_of(request)
        with carried(context):
            response = get_response(request)
        response.headers["X-Request-ID"] = context.request_id  # type: ignore[union-attr]  # never a coroutine here
        return response  # type: ignore[return-value]  # as above

    return answer
