"""Every error of the REST API as RFC 9457 problem+json; the one place that turns exceptions into answers."""

import logging
import math
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.views.decorators.csrf import csrf_exempt
from psycopg_pool import PoolTimeout, TooManyRequests
from redis import RedisError
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from tidesched_web.api.throttling import CallerThrottled, anonymous_waits
from tidesched_web.common import request_context
from tidesched_web.common.errors import DomainError

CONTENT_TYPE = "application/problem+json"
_TYPE = "https://tidesched.io/problems/"
AGAIN_SECONDS = 5
# What is raised where the database or Redis is away for a moment.
AWAY = (OperationalError, InterfaceError, PoolTimeout, TooManyRequests, RedisError)
IN_DOUBT = (
    "It is not known whether this request took effect: send it again under the same Idempotency-Key, or read the "
    "object before you send it again."
)
_log = logging.getLogger(__name__)

_FRAMEWORK_CODES: tuple[tuple[type[Exception], str], ...] = (
    (exceptions.ParseError, "malformed_body"),
    (exceptions.AuthenticationFailed, "invalid_token"),
    (exceptions.NotAuthenticated, "not_authenticated"),
    (exceptions.MethodNotAllowed, "method_not_allowed"),
    (exceptions.NotAcceptable, "not_acceptable"),
    (exceptions.UnsupportedMediaType, "unsupported_media_type"),
    (exceptions.NotFound, "not_found"),
    (Http404, "not_found"),
    (exceptions.PermissionDenied, "permission_denied"),
    (PermissionDenied, "permission_denied"),
)


def document(error: DomainError, instance: str) -> dict[str, Any]:
    return {
        "type": _TYPE + error.code.replace("_", "-"),
        "title": HTTPStatus(error.status).phrase,
        "status": int(error.status),
        "code": error.code,
        "detail": error.message,
        "instance": instance,
        "request_id": request_context.current().request_id,
        **error.extra,
    }


def answer(error: DomainError, request: HttpRequest, headers: dict[str, str] | None = None) -> HttpResponse:
    return JsonResponse(
        document(error, request.path), status=int(error.status), content_type=CONTENT_TYPE, headers=headers
    )


@csrf_exempt  # what is not there needs no token
def unknown_address(request: HttpRequest, **_: Any) -> HttpResponse:
    hint = "" if request.path.endswith("/") else " Addresses of this API end with a slash."
    return answer(DomainError("not_found", f"There is nothing at {request.path}.{hint}"), request)


def handle(exception: Exception, context: dict[str, Any]) -> Response:
    set_rollback()
    request: HttpRequest = context["request"]
    error = as_domain_error(exception)
    if error is None:
        _log.error("%s %s failed", request.method, request.path, exc_info=exception)
        error = unforeseen(exception, request)
    wait = AGAIN_SECONDS if error.status == HTTPStatus.SERVICE_UNAVAILABLE else getattr(exception, "wait", None)
    if error.status == HTTPStatus.UNAUTHORIZED and (refused := anonymous_waits()):
        # Tokens cannot be guessed without limit. A right one is never asked here, whatever its address has done.
        error, wait = throttled(settings.API_ANONYMOUS_REQUESTS_PER_MINUTE), refused
    response = Response(document(error, request.path), status=int(error.status), content_type=CONTENT_TYPE)
    if error.status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = "Bearer"
    if wait is not None:
        response["Retry-After"] = str(math.ceil(wait))
    return response


def unforeseen(exception: BaseException | None, request: HttpRequest) -> DomainError:
    if isinstance(exception, AWAY):
        text = "The database or Redis does not answer at the moment"
        return DomainError("unavailable", f"{text}. {IN_DOUBT}" if in_doubt(request.method) else f"{text}; try again.")
    return DomainError("internal_error", "Something went wrong here. The log has it under this request id.")


def throttled(limit: int) -> DomainError:
    text = f"One caller may make {limit} requests a minute; wait as long as Retry-After says."
    return DomainError("throttled", text, {"limit": limit})


def in_doubt(method: str | None) -> bool:
    """Whether a request that failed for want of an answer may have taken effect: its COMMIT may have been sent."""
    return method not in ("GET", "HEAD", "OPTIONS")


def database_away() -> DomainError:
    return DomainError("unavailable", "The database does not answer at the moment. Nothing was changed; try again.")


def too_slow(method: str, seconds: float) -> DomainError:
    text = f"There was no answer within {seconds:g} seconds."
    return DomainError("unavailable", f"{text} {IN_DOUBT}" if in_doubt(method) else f"{text} Try again.")


def as_domain_error(exception: Exception) -> DomainError | None:
    """What the framework raises, in our words; None for what is unforeseen."""
    if isinstance(exception, DomainError):
        return exception
    if isinstance(exception, exceptions.ValidationError):
        errors = list(_flatten(exception.get_full_details(), ""))
        first = errors[0]
        where = f"{first['pointer']}: " if first["pointer"] else ""
        return DomainError("invalid", f"{where}{first['detail']}", {"errors": errors})
    if isinstance(exception, CallerThrottled):
        return throttled(exception.limit)
    for kind, code in _FRAMEWORK_CODES:
        if isinstance(exception, kind):
            detail = getattr(exception, "detail", None)
            if isinstance(detail, exceptions.ErrorDetail) and detail.code == "csrf_failed":
                return DomainError("csrf_failed", str(detail))
            text = "There is no such object." if code == "not_found" else str(detail or exception)
            return DomainError(code, text)
    if isinstance(exception, DatabaseError) and "canceling statement due to" in str(exception):
        return DomainError("unavailable", "The database was too busy to answer; try again.")
    return unreadable_form(exception)


MOST_OF_A_PART = 1024  # Django's own limit
# What Django says of a part of a form names neither the part nor its limit.
_OF_PARTS = {
    "Request max total header size exceeded.": (
        "what a part of it says of itself, such as the name of a field or of a file, may have "
        f"{MOST_OF_A_PART} bytes, and one says more."
    )
}


def unreadable_form(exception: Exception) -> DomainError | None:
    """What Django says of a form's body that it cannot read; it looks into one for the token of a session."""
    if isinstance(exception, RequestDataTooBig | TooManyFieldsSent | TooManyFilesSent):
        return DomainError("body_too_large", str(exception))
    if isinstance(exception, MultiPartParserError | BadRequest):
        said = _OF_PARTS.get(str(exception), str(exception))
        return DomainError("malformed_body", f"The body is no form that can be read: {said}")
    return None


def _flatten(details: Any, pointer: str) -> Any:
    if isinstance(details, dict) and "message" in details and "code" in details:
        yield {"pointer": pointer, "code": str(details["code"]), "detail": str(details["message"])}
    elif isinstance(details, dict):
        for key, value in details.items():
            step = "" if key == "non_field_errors" else f"/{str(key).replace('~', '~0').replace('/', '~1')}"
            yield from _flatten(value, pointer + step)
    else:
        listed = [item for item in details if item]
        one_field = all(isinstance(item, dict) and "message" in item for item in listed)
        for index, item in enumerate(details):
            if item:
                yield from _flatten(item, pointer if one_field else f"{pointer}/{index}")
