"""How many requests a caller may make: a fixed window of a minute, counted in Redis with two commands."""

from __future__ import annotations

import logging
import time
from typing import Any

import redis
from django.conf import settings
from django.core.cache import cache
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

WINDOW_SECONDS = 60
_log = logging.getLogger(__name__)


class CallerThrottle(BaseThrottle):
    """One window for each user, one for each address that is not signed in."""

    waits = 0.0

    def allow_request(self, request: Request, view: Any) -> bool:
        signed_in = bool(request.user and request.user.is_authenticated)
        limit = settings.API_REQUESTS_PER_MINUTE if signed_in else settings.API_ANONYMOUS_REQUESTS_PER_MINUTE
        if not limit:
            return True
        who = f"u{request.user.pk}" if signed_in else f"a{request.META.get('REMOTE_ADDR', '')}"
        window, passed = divmod(time.time(), WINDOW_SECONDS)
        self.waits = WINDOW_SECONDS - passed
        try:
            return self._count(f"api:{who}:{int(window)}") <= limit
        except redis.RedisError as error:
            # A platform must not lose its API with the broker; the limit is a courtesy, not a right.
            _log.warning("requests are not counted: %s", error)
            return True

    def _count(self, key: str) -> int:
        cache.add(key, 0, timeout=2 * WINDOW_SECONDS)
        try:
            return int(cache.incr(key))
        except ValueError:
            # Somebody emptied the cache in between: counting begins again.
            return 1

    def wait(self) -> float:
        return self.waits
