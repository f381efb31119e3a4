"""A list of Redis, gone soon after, says that a job has something to show; the answer itself is in the job's row."""

import logging
import time
from functools import cache

import redis
from django.conf import settings

from tidesched_web.jobs.models import Job
from tidesched_web.jobs.selectors import job_by_id

_KEPT_SECONDS = 60
_LOOK_SECONDS = 0.1
_log = logging.getLogger(__name__)


@cache
def _client() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=10, socket_connect_timeout=2)


def tell(job_id: int) -> None:
    try:
        with _client().pipeline() as pipe:
            pipe.rpush(_key(job_id), 1)
            pipe.expire(_key(job_id), _KEPT_SECONDS)
            pipe.execute()
    except redis.RedisError as error:
        _log.warning("who waits for job %s was not told: %s", job_id, error)


def wait(job_id: int, seconds: float) -> Job | None:
    deadline = time.monotonic() + seconds
    while True:
        left = deadline - time.monotonic()
        if left > 0:
            _wait_for_sign(job_id, min(left, 2.0))
        job = job_by_id(job_id)
        if job is None or job.result is not None or not job.open or time.monotonic() >= deadline:
            return job


def _wait_for_sign(job_id: int, seconds: float) -> None:
    try:
        _client().blpop([_key(job_id)], timeout=max(0.01, seconds))
    except redis.RedisError:
        time.sleep(min(seconds, _LOOK_SECONDS))


def _key(job_id: int) -> str:
    return f"tidesched:job:{job_id}"
