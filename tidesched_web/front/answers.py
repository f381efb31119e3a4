"""Answers that need no page: plain JSON of the probes, and refusals before a request has a turn."""

from __future__ import annotations

import html
from typing import Any

import orjson

from tidesched_web.api.problem_json import CONTENT_TYPE, document
from tidesched_web.common import request_context
from tidesched_web.common.errors import DomainError
from tidesched_web.front import Scope, Send

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">\
<meta name="color-scheme" content="light dark"><title>TideSched</title></head>
<body><h1>TideSched · {status}</h1><p>{detail}</p><p><code>{request_id}</code></p></body></html>
"""


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
        plain = {"status": found["status"], "detail": html.escape(error.message), "request_id": context.request_id}
        body = (page or _PAGE.format(**plain)).encode()
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
