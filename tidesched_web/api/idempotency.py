import functools
import hashlib
import json
import re
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import orjson
from django.db import transaction
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.api import services
from tidesched_web.common.errors import DomainError

HEADER = "Idempotency-Key"
MAX_LENGTH = 200
# What an answer says of its object beside the body; every other header is of the request that is answered.
KEPT_HEADERS = ("ETag", "Location")
KEY = rf"^[!-~]([ -~]{{0,{MAX_LENGTH - 2}}}[!-~])?$"


def _hash(request: Request) -> str:
    body = json.dumps(request.data, sort_keys=True, separators=(",", ":")).encode()  # numbers of any length
    return hashlib.sha256(f"{request.method} {request.path}\n".encode() + body).hexdigest()


def key_of(request: Request) -> str | None:
    key = request.headers.get(HEADER)
    if key is not None and re.fullmatch(KEY, key) is None:
        raise DomainError("invalid", f"{HEADER} has to be 1 to {MAX_LENGTH} printable characters of ASCII.")
    return key


def idempotent(method: Callable[..., Response], *, waits: bool = False) -> Callable[..., Response]:
    """The answer is kept in the act's transaction, unless it ``waits`` for a worker, which sees what is committed."""

    @functools.wraps(method)
    def answer(view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        key = key_of(request)
        if key is None:
            return method(view, request, *args, **kwargs)
        token = request.auth.pk if request.auth is not None else None
        row = services.begin(account=int(request.user.pk or 0), token=token, key=key, request_hash=_hash(request))
        if row.status is not None:
            stored = orjson.loads(services.stored_body(row))
            return Response(stored, status=row.status, headers={**row.headers, "Idempotency-Replayed": "true"})
        try:
            with nullcontext() if waits else transaction.atomic():
                outcome = _outcome(partial(method, view, request, *args, **kwargs))
                if isinstance(outcome, Response):
                    said = {name: outcome.headers[name] for name in KEPT_HEADERS if name in outcome.headers}
                    body = orjson.dumps(outcome.data)
                    services.finish(row, status=outcome.status_code, body=body, headers=said)
        except BaseException:
            services.abandon(row)
            raise
        if isinstance(outcome, DomainError):
            services.abandon(row)
        if not isinstance(outcome, Response):
            raise outcome
        return outcome

    return answer


def _outcome(run: Callable[[], Response]) -> Response | DomainError:
    """A refusal ends no transaction: what was written stays, as it does without a key."""
    try:
        return run()
    except DomainError as error:
        return error
