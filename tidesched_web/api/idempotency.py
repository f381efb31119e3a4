import datetime as dt
import functools
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any

import orjson
from django.db import transaction
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.api.models import StoredAnswer
from tidesched_web.common.encryption import decrypt, encrypt
from tidesched_web.common.errors import DomainError

KEPT_FOR = dt.timedelta(hours=24)
# A request that has not ended by now died with its process; its key may be used again.
IN_FLIGHT_FOR = dt.timedelta(minutes=2)


def begin(*, account: int, token: int | None, key: str, request_hash: str) -> StoredAnswer:
    """The unique constraint decides between two that come at once; the loser hears that the other is under way."""
    # Another token is another caller: it must not read what this one was answered.
    caller = f"u{account}" + (f":t{token}" if token is not None else "")
    now = timezone.now()
    StoredAnswer.objects.filter(started_at__lt=now - KEPT_FOR).delete()
    found, mine = StoredAnswer.objects.get_or_create(
        caller=caller, key=key, defaults={"request_hash": request_hash, "started_at": now}
    )
    if mine:
        return found
    if found.request_hash != request_hash:
        raise DomainError("idempotency_key_reused", "This Idempotency-Key was used for another request.")
    if found.status is None:
        stale = StoredAnswer.objects.filter(pk=found.pk, status__isnull=True, started_at__lt=now - IN_FLIGHT_FOR)
        if not stale.update(started_at=now):
            raise DomainError("request_in_flight", "The first request with this Idempotency-Key is under way.")
        found.started_at = now
    return found


def finish(answer: StoredAnswer, *, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    answer.status, answer.headers = status, dict(headers)
    answer.body, answer.body_key_id = encrypt(body)
    answer.save(update_fields=["status", "body", "body_key_id", "headers"])


def abandon(answer: StoredAnswer) -> None:
    """A COMMIT that was sent and not answered may have succeeded; where it is under way, this waits for it."""
    StoredAnswer.objects.filter(pk=answer.pk, status__isnull=True, started_at=answer.started_at).delete()


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
        row = begin(account=int(request.user.pk or 0), token=token, key=key, request_hash=_hash(request))
        if row.status is not None:
            stored = orjson.loads(decrypt(bytes(row.body), row.body_key_id))
            return Response(stored, status=row.status, headers={**row.headers, "Idempotency-Replayed": "true"})
        try:
            with nullcontext() if waits else transaction.atomic():
                outcome = _outcome(partial(method, view, request, *args, **kwargs))
                if isinstance(outcome, Response):
                    said = {name: outcome.headers[name] for name in KEPT_HEADERS if name in outcome.headers}
                    body = orjson.dumps(outcome.data)
                    finish(row, status=outcome.status_code, body=body, headers=said)
        except BaseException:
            abandon(row)
            raise
        if isinstance(outcome, DomainError):
            abandon(row)
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
