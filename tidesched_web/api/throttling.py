import logging
import time
from typing import Any

import redis
from django.conf import settings
from django.core.cache import caches
from rest_framework.exceptions import Throttled
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from tidesched_web.common import request_context
from tidesched_web.common.client_address import counted_as

WINDOW_SECONDS = 60
_log = logging.getLogger(__name__)


class CallerThrottled(Throttled):
    def __init__(self, wait: float, limit: int) -> None:
        super().__init__(wait)
        self.limit = limit


class CallerThrottle(BaseThrottle):
    def allow_request(self, request: Request, view: Any) -> bool:
        if request.user and request.user.is_authenticated:
            limit = settings.API_REQUESTS_PER_MINUTE
            waits = _waits(f"u{request.user.pk}", limit)
        else:
            limit, waits = settings.API_ANONYMOUS_REQUESTS_PER_MINUTE, anonymous_waits()
        if waits:
            raise CallerThrottled(waits, limit)
        return True


def anonymous_waits() -> float:
    """Count a request without an account, a refused token too; seconds until the next one, or 0 for go on."""
    return _waits(f"a{counted_as(request_context.current().address)}", settings.API_ANONYMOUS_REQUESTS_PER_MINUTE)


def page_waits(user: Any) -> float:
    """The same for a request to the console, of an account or of an address that is not signed in."""
    who = f"u{user.pk}" if user.is_authenticated else f"a{counted_as(request_context.current().address)}"
    return _waits(f"page:{who}", settings.API_REQUESTS_PER_MINUTE)


def _waits(who: str, limit: int) -> float:
    if not limit:
        return 0.0
    window, passed = divmod(time.time(), WINDOW_SECONDS)
    try:
        return 0.0 if _count(f"api:{who}:{int(window)}") <= limit else WINDOW_SECONDS - passed
    except redis.RedisError as error:
        # A platform must not lose its API with the broker; the limit is a courtesy, not a right.
        _log.warning("requests are not counted: %s", error)
        return 0.0


def _count(key: str) -> int:
    counters: Any = caches["default"]
    return int(counters.count(key, 2 * WINDOW_SECONDS))
