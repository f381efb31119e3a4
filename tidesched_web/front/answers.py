"""Answers that need no page: plain JSON of the probes, and refusals before a request has a turn."""

from __future__ import annotations

from typing import Any

import orjson
from django.template.loader import render_to_string

from tidesched_web.api.problem_json import CONTENT_TYPE, document
from tidesched_web.common import request_context
from tidesched_web.common.errors import DomainError
from tidesched_web.front import Scope, Send


async def send_json(
    send: Send, status: int, body: Any, headers: dict[str, str] | None = None, *, bare: bool = False
) -> None:
    """A JSON answer that no cache keeps; ``bare`` for HEAD."""
    await _send(send, status, orjson.dumps(body), {"Content-Type": "application/json", **(headers or {})}, bare=bare)


async def refuse(
    send: Send, scope: Scope, error: DomainError, headers: dict[str, str] | None = None, *, page: str = ""
) -> None:
    """A refusal: problem+json below /api/, else a page, which may be given."""
    context = request_context.context_of_scope(scope)
    with request_context.carried(context):
        found = document(error, scope["path"])
    kind = CONTENT_TYPE
    body = orjson.dumps(found)
    if not scope["path"].startswith("/api/"):
        kind = "text/html; charset=utf-8"
        said = {"status": found["status"], "detail": error.message, "request_id": context.request_id}
        body = (page or render_to_string("refused.html", said)).encode()
    more = {"Content-Type": kind, "X-Request-ID": context.request_id, **(headers or {})}
    await _send(send, int(error.status), body, more, bare=scope["method"] == "HEAD")


async def _send(send: Send, status: int, body: bytes, headers: dict[str, str], *, bare: bool) -> None:
    said = {
        "Cache-Control": "no-store",
        "Content-Length": str(len(body)),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        **headers,
    }
    lines = [(name.lower().encode(), value.encode("latin-1")) for name, value in said.items()]
    await send({"type": "http.response.start", "status": status, "headers": lines, "trailers": False})
    await send({"type": "http.response.body", "body": b"" if bare else body, "more_body": False})
