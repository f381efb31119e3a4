import hashlib
import math
import re
import time
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import render
from django.utils.cache import get_conditional_response

from tidesched_web.api import problem_json, throttling
from tidesched_web.common import request_context
from tidesched_web.metrics import traffic

# What differs between two pages that say the same: times that a page keeps fresh itself, and masked tokens. Each begins
# with signs of its own and repeats only signs that cannot begin it anew: no text makes a search walk over it again.
_CLOCKS = re.compile(rb' data-(?:now|after)="[^"]*"')
_TOKENS = re.compile(rb'(name="csrfmiddlewaretoken" value=")[^"]*')
_TIMES = re.compile(rb"(<time\b[^<>]*>)[^<]*(?=</time>)")


_Handler = Callable[[HttpRequest], HttpResponseBase]


# For programs: limits, and answers that nobody keeps, as those of the API.
_PROGRAMS = ("/api/", "/metrics")


def measured(get_response: _Handler) -> _Handler:
    def answer(request: HttpRequest) -> HttpResponseBase:
        begun = time.perf_counter()
        response = get_response(request)
        route = request.resolver_match.view_name if request.resolver_match else ""
        if request.path.startswith(settings.STATIC_URL):
            route = "static"
        traffic.count(request.method, route, response.status_code, time.perf_counter() - begun)
        return response

    return answer


def throttle(get_response: _Handler) -> _Handler:
    def answer(request: HttpRequest) -> HttpResponseBase:
        waits = 0.0 if request.path.startswith(_PROGRAMS) else throttling.page_waits(request.user)
        if not waits:
            return get_response(request)
        error = problem_json.throttled(settings.API_REQUESTS_PER_MINUTE)
        context = {"status": 429, "detail": error.message, "request_id": request_context.current().request_id}
        response = render(None, "refused.html", context, status=429)
        response.headers["Retry-After"] = str(math.ceil(waits))
        response.headers["Cache-Control"] = "no-store"
        return response

    return answer


def unchanged(get_response: _Handler) -> _Handler:
    """A 304 for pages; no cache keeps answers of the API, whose ETags are versions of objects."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if request.path.startswith(_PROGRAMS):
            response.headers.setdefault("Cache-Control", "no-store")
        elif request.method == "GET" and response.status_code == 200 and isinstance(response, HttpResponse):
            page = response.headers.get("Content-Type", "").startswith("text/html")
            response.headers.setdefault("ETag", f'W/"{digest(response.content, page=page)}"')
            return get_conditional_response(request, response.headers["ETag"], None, response) or response
        return response

    return answer


def digest(content: bytes, *, page: bool) -> str:
    """A digest of what an answer says, whenever it was made; only a page has parts that say nothing."""
    if page:
        content = _TIMES.sub(rb"\1", _TOKENS.sub(rb"\1", _CLOCKS.sub(b"", content)))
    return hashlib.blake2b(content, digest_size=16).hexdigest()


class Compression(GZipMiddleware):
    """Django's, but for event streams: each would keep the memory of a packer for as long as it is open."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.headers.get("Content-Type", "").startswith("text/event-stream"):
            return response
        etag = response.headers.get("ETag")
        response = super().process_response(request, response)
        if etag:
            response.headers["ETag"] = etag  # the version of an object: `If-Match` takes it, and no weak one
        return response
