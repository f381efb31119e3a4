import contextlib
from collections.abc import Iterable

import redis
from prometheus_client import Metric, generate_latest
from prometheus_client.registry import Collector

from tidesched_web.metrics import selectors, services, traffic
from tidesched_web.metrics.families import families


class _Everything(Collector):
    def collect(self) -> Iterable[Metric]:
        services.fold()
        figures = [*selectors.gauges(), *selectors.counted()]
        with contextlib.suppress(redis.RedisError, OSError):  # while it is away, what it keeps is not known
            figures += [*selectors.watch_lags(), *traffic.read()]
        return families(figures)


def text() -> bytes:
    return generate_latest(_Everything())
