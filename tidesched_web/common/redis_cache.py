"""The cache in Redis, over one pool of connections for the whole process.

Django keeps the pool with the cache object, and under ASGI each request has a cache object of its own: each request
would open a connection and close it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.cache.backends import redis as django_redis

# By address and options; a pool notices a fork by itself.
_pools: dict[tuple[str, str], Any] = {}


class Client(django_redis.RedisCacheClient):
    """Django's client, with the pool of the process."""

    # Of Django's class, which says nothing of their types.
    _servers: Sequence[str]
    _pool_class: Any
    _pool_options: dict[str, Any]
    _get_connection_pool_index: Any

    def _get_connection_pool(self, write: bool) -> Any:
        address = self._servers[self._get_connection_pool_index(write)]
        key = (address, repr(sorted(self._pool_options.items(), key=lambda option: option[0])))
        if key not in _pools:
            # Two threads may come here at once: one pool is kept, the other was never used.
            _pools.setdefault(key, self._pool_class.from_url(address, **self._pool_options))
        return _pools[key]


class Cache(django_redis.RedisCache):
    """Django's cache, with that client."""

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._class = Client
