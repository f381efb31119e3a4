"""`/healthz` and `/readyz`: is the process alive, and can the installation do its work."""

from collections.abc import Callable

from django.conf import settings
from django.core.cache import cache
from django.db import Error as DatabaseError
from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from redis import RedisError

from tidesched_web.common import alive


@never_cache
@require_safe
async def healthz(_request: HttpRequest) -> JsonResponse:
    """Answer as long as the process lives; ask nobody else."""
    return JsonResponse({"status": "alive", "version": settings.VERSION})


@never_cache
@require_safe
def readyz(_request: HttpRequest) -> JsonResponse:
    """Answer 200 when database, Redis, workers and beat answer and the demo has had a session; else 503 and why."""
    missing = {name: reason for name, check in CHECKS.items() if (reason := check())}
    body = {"status": "not ready" if missing else "ready", "missing": missing}
    return JsonResponse(body, status=503 if missing else 200)


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        return f"the database does not answer: {type(error).__name__}"
    return ""


def _redis() -> str:
    try:
        cache.get("readyz")
    except (RedisError, OSError) as error:
        return f"Redis does not answer: {type(error).__name__}"
    return ""


def _processes() -> str:
    try:
        silent = alive.silent_roles()
    except (RedisError, OSError):
        return "unknown while Redis does not answer"
    return f"no sign of life from: {', '.join(silent)}" if silent else ""


def _demo_session() -> str:
    if not settings.DEMO:
        return ""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT EXISTS (SELECT 1 FROM scheduling_session)")
            return "" if cursor.fetchone()[0] else "the demo cluster has not had a session yet"
    except DatabaseError:
        return "unknown while the database does not answer"


CHECKS: dict[str, Callable[[], str]] = {
    "database": _database,
    "redis": _redis,
    "processes": _processes,
    "demo": _demo_session,
}
