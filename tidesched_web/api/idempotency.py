"""``Idempotency-Key`` on POST: the same key and body get the first answer again, whatever happened to it."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

import orjson
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.api import services
from tidesched_web.common.errors import DomainError

HEADER = "Idempotency-Key"
MAX_LENGTH = 200
KEY = rf"^[!-~]([ -~]{{0,{MAX_LENGTH - 2}}}[!-~])?$"


def _caller(request: Request) -> str:
    """Another token is another caller: it must not read what this one was answered."""
    token = request.auth
    return f"u{request.user.pk}" + (f":t{token.pk}" if token is not None else "")


def _hash(request: Request) -> str:
    body = json.dumps(request.data, sort_keys=True, separators=(",", ":")).encode()  # numbers of any length
    return hashlib.sha256(f"{request.method} {request.path}\n".encode() + body).hexdigest()


def key_of(request: Request) -> str | None:
    """The key that the request was sent under; one of a wrong form is an error."""
    key = request.headers.get(HEADER)
    if key is not None and re.fullmatch(KEY, key) is None:
        raise DomainError("invalid", f"{HEADER} has to be 1 to {MAX_LENGTH} printable characters of ASCII.")
    return key


def idempotent(method: Callable[..., Response]) -> Callable[..., Response]:
    """Wrap a POST handler. Only an answer of success is kept: a refused request may be corrected and sent again."""

    @functools.wraps(method)
    def answer(view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        key = key_of(request)
        if key is None:
            return method(view, request, *args, **kwargs)
        row = services.begin(caller=_caller(request), key=key, request_hash=_hash(request))
        if row.status is not None:
            stored = orjson.loads(services.stored_body(row))
            return Response(stored, status=row.status, headers={"Idempotency-Replayed": "true"})
        try:
            response = method(view, request, *args, **kwargs)
        except BaseException:
            services.abandon(row)
            raise
        services.finish(row, status=response.status_code, body=orjson.dumps(response.data))
        return response

    return answer
