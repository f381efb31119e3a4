from typing import Any

import orjson
from django.template.loader import render_to_string

from tidesched_web.api.problem_json import AGAIN_SECONDS, CONTENT_TYPE, document
from tidesched_web.common import request_context
from tidesched_web.common.errors import DomainError
from tidesched_web.front import Scope, Send
from tidesched_web.metrics import traffic


async def send_json(send: Send, scope: Scope, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
    await _send(send, scope, status, orjson.dumps(body), {"Content-Type": "application/json", **(headers or {})})


async def refuse(send: Send, scope: Scope, error: DomainError) -> None:
    """Problem+json below /api/, else a page; the connection ends where the rest of a body may still come."""
    traffic.count(scope["method"], "", int(error.status))
    context = request_context.context_of_scope(scope)
    with request_context.carried(context):
        problem = document(error, scope["path"])
    if scope["path"].startswith("/api/"):
        kind, body = CONTENT_TYPE, orjson.dumps(problem)
    else:
        shown = {"status": problem["status"], "detail": error.message, "request_id": context.request_id}
        kind, body = "text/html; charset=utf-8", render_to_string("refused.html", shown).encode()
    headers = {"Content-Type": kind, "X-Request-ID": context.request_id}
    headers |= {"Retry-After": str(AGAIN_SECONDS)} if error.code == "unavailable" else {"Connection": "close"}
    await _send(send, scope, int(error.status), body, headers)


async def _send(send: Send, scope: Scope, status: int, body: bytes, headers: dict[str, str]) -> None:
    headers = {
        "Cache-Control": "no-store",
        "Content-Length": str(len(body)),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        **headers,
    }
    lines = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": lines, "trailers": False})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body, "more_body": False})
