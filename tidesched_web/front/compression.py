"""Answers are packed (Brotli, else gzip) where the client takes it, and carry an ETag over what they say.

A page's script asks for its changing part again with `If-None-Match` and gets a 304 of no bytes where nothing moved.
Only answers to GET are packed, and only text: what a form shows once (a token, a link) goes out as it is, so its length
says nothing of it. Tokens of forms are masked anew in each answer. Streams and static files pass through: the latter
are packed once, when they are collected.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Awaitable, Callable
from typing import Any

import brotli
from asgiref.sync import iscoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.decorators import sync_and_async_middleware

LEAST_BYTES = 500
BROTLI_QUALITY, GZIP_LEVEL = 5, 5
_TEXT = ("text/", "application/json", "application/problem+json", "application/vnd.oai.openapi", "application/x-ndjson",
         "application/yaml", "image/svg+xml")  # fmt: skip
# What differs between two answers that say the same: times that the page keeps fresh itself, and masked tokens.
# Each repeats only signs that cannot begin it anew, so that no text makes the search walk over the same part again.
# Each begins with signs of its own, which a search finds without a try at every byte.
_CLOCKS = re.compile(rb' data-(?:now|rest|after)="[^"]*"')
_TOKENS = re.compile(rb'(name="csrfmiddlewaretoken" value=")[^"]*')
_TIMES = re.compile(rb"(<time\b[^<>]*>)[^<]*(?=</time>)")
_REFUSED = re.compile(r";\s*q=0(\.0*)?\s*$")
_PASSED_ON = ("Cache-Control", "Content-Language", "ETag", "Set-Cookie", "Vary", "X-Live-Rest")


@sync_and_async_middleware
def middleware(
    get_response: Callable[[HttpRequest], HttpResponseBase] | Callable[[HttpRequest], Awaitable[HttpResponseBase]],
) -> Callable[[HttpRequest], Any]:
    """Pack the answer on the thread that made it."""
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> HttpResponseBase:
            response: HttpResponseBase = await get_response(request)
            return await sync_to_async(packed)(request, response) if _may_be_packed(request, response) else response

        return answer_async

    def answer(request: HttpRequest) -> HttpResponseBase:
        response: Any = get_response(request)
        return packed(request, response) if _may_be_packed(request, response) else response

    return answer


def _may_be_packed(request: HttpRequest, response: HttpResponseBase) -> bool:
    return (
        request.method == "GET"
        and response.status_code == 200
        and not response.streaming
        and "Content-Encoding" not in response.headers
        and response.headers.get("Content-Type", "").startswith(_TEXT)
    )


def packed(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """The same answer in fewer bytes; without a body where the client has it already."""
    if not isinstance(response, HttpResponse):
        return response
    content = response.content
    if not request.path.startswith("/api/"):  # the API has ETags of its own: versions of objects
        page = response.headers["Content-Type"].startswith("text/html")
        response.headers.setdefault("ETag", f'W/"{digest(content, page=page)}"')
        if request.headers.get("If-None-Match") == response.headers["ETag"]:
            return _unchanged(response)
    patch_vary_headers(response, ["Accept-Encoding"])
    accepted = request.headers.get("Accept-Encoding", "").split(",")
    encodings = {word.partition(";")[0].strip() for word in accepted if not _REFUSED.search(word)}
    if len(content) < LEAST_BYTES or encodings.isdisjoint({"br", "gzip"}):
        return response
    if "br" in encodings:
        response.content, response.headers["Content-Encoding"] = brotli.compress(content, quality=BROTLI_QUALITY), "br"
    else:
        response.content, response.headers["Content-Encoding"] = gzip.compress(content, GZIP_LEVEL, mtime=0), "gzip"
    if "Content-Length" in response.headers:
        response.headers["Content-Length"] = str(len(response.content))
    return response


def digest(content: bytes, *, page: bool) -> str:
    """A digest of what an answer says, whenever it was made; only a page has parts that say nothing."""
    if page:
        content = _TIMES.sub(rb"\1", _TOKENS.sub(rb"\1", _CLOCKS.sub(b"", content)))
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _unchanged(response: HttpResponse) -> HttpResponse:
    bare = HttpResponse(status=304)
    for name in _PASSED_ON:
        if name in response.headers:
            bare.headers[name] = response.headers[name]
    bare.cookies = response.cookies
    del bare.headers["Content-Type"]
    return bare
