"""One pool for the whole process: under ASGI Django's own cache object, and its connections, last one request."""

from collections.abc import Sequence
from typing import Any

from django.core.cache.backends import redis as django_redis

# By address and options; a pool notices a fork by itself.
_pools: dict[tuple[str, str], Any] = {}
# By pool: to make a client for each command takes longer than the command.
_clients: dict[int, Any] = {}


class Client(django_redis.RedisCacheClient):
    # Of Django's class, which says nothing of their types.
    _servers: Sequence[str]
    _pool_class: Any
    _pool_options: dict[str, Any]
    _get_connection_pool_index: Any
    _client: Any

    def get_client(self, key: Any = None, *, write: bool = False) -> Any:
        pool = self._get_connection_pool(write)
        found = _clients.get(id(pool))
        if found is None:
            found = _clients.setdefault(id(pool), self._client(connection_pool=pool))
        return found

    def count(self, key: str, timeout: int) -> int:
        client = self.get_client(key, write=True)
        found = int(client.incr(key))
        if found == 1:
            client.expire(key, timeout)
        return found

    def _get_connection_pool(self, write: bool) -> Any:
        address = self._servers[self._get_connection_pool_index(write)]
        key = (address, repr(sorted(self._pool_options.items(), key=lambda option: option[0])))
        if key not in _pools:
            # Two threads may come here at once: one pool is kept, the other was never used.
            _pools.setdefault(key, self._pool_class.from_url(address, **self._pool_options))
        return _pools[key]


class Cache(django_redis.RedisCache):
    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._class = Client

    def count(self, key: str, timeout: int) -> int:
        """One more in a counter that ends ``timeout`` seconds after its beginning; the count. One command."""
        client: Any = self._cache
        found: int = client.count(self.make_and_validate_key(key), timeout)
        return found
