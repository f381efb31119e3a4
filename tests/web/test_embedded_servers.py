import os

import psycopg
import redis


def test_database_answers() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_redis_answers() -> None:
    assert redis.Redis.from_url(os.environ["REDIS_URL"]).ping()
