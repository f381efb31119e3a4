"""What Django answers itself. Its own pages look for a form's token in the body, which need not be readable."""

import sys
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views import csrf
from redis import RedisError

from tidesched_web.api import problem_json
from tidesched_web.common import request_context
from tidesched_web.common.errors import DomainError
from tidesched_web.console.page import refused


def _for_api(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    if _for_api(request):
        return problem_json.answer(DomainError("csrf_failed", f"The CSRF check failed: {reason}"), request)
    return csrf.csrf_failure(request, reason)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    not_understood = DomainError("invalid", "This is no request that can be understood.")
    error = problem_json.unreadable_form(exception) or not_understood
    if _for_api(request):
        return problem_json.answer(error, request)
    return render(request, "400.html", {"error": error, "request_id": _id()}, status=int(error.status))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    if _for_api(request):
        text = str(exception) or "You may not do this."
        return problem_json.answer(DomainError("permission_denied", text), request)
    return refused(request, "403.html", {"limit": getattr(exception, "limit", None)}, status=403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  # Django gives it
    if _for_api(request):
        return problem_json.unknown_address(request)
    return refused(request, "404.html", {}, status=404)


def server_error(request: HttpRequest) -> HttpResponse:
    error_now = sys.exc_info()[1]
    away = isinstance(error_now, problem_json.AWAY)
    if _for_api(request):
        error = problem_json.unforeseen(error_now, request)
        return problem_json.answer(error, request, {"Retry-After": str(problem_json.AGAIN_SECONDS)} if away else None)
    # Not rendered for the request: what fails may be what every page asks for.
    context: dict[str, Any] = {"request_id": _id(), "away": away, "redis": isinstance(error_now, RedisError)}
    context["doubt"] = away and problem_json.in_doubt(request.method)
    response = render(None, "500.html", context, status=503 if away else 500)
    if away:
        response.headers["Retry-After"] = str(problem_json.AGAIN_SECONDS)
    response.headers["Cache-Control"] = "no-store"
    return response


def _id() -> str:
    return request_context.current().request_id
