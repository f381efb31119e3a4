"""The limit of requests: a window for each person and each address, counted with one command."""

from types import SimpleNamespace

import pytest
import redis
from django.core.cache import caches
from django.test import Client

from tidesched_web.api import throttling


@pytest.fixture
def minute(monkeypatch, settings):
    """A window that does not turn, with room for two requests of each caller."""
    settings.API_REQUESTS_PER_MINUTE = settings.API_ANONYMOUS_REQUESTS_PER_MINUTE = 2
    clock = SimpleNamespace(now=1_700_000_000.0)
    monkeypatch.setattr(throttling, "time", SimpleNamespace(time=lambda: clock.now))
    return clock


def asked(client, times=1):
    return [client.get("/api/v1/tenants/").status_code for _ in range(times)]


def test_a_person_uses_up_their_own_window_alone_however_they_are_signed_in(world, minute):
    assert asked(world.client("owner"), 3) == [200, 200, 429]
    assert asked(world.client("token:quota:read")) == [429], "a token counts for its person"
    assert asked(world.client("teammate"), 3) == [200, 200, 429]
    minute.now += 60
    assert asked(world.client("owner")) == [200]


def test_a_refusal_names_the_limit_and_when_to_come_again(world, minute):
    client = world.client("owner")
    asked(client, 2)
    refused = client.get("/api/v1/tenants/")
    assert (refused.status_code, refused.json()["limit"]) == (429, 2)
    assert "may make 2 requests a minute" in refused.json()["detail"]
    assert 0 < int(refused.headers["Retry-After"]) <= 60


def test_an_address_uses_up_its_own_window_alone(world, minute):
    here, there = Client(REMOTE_ADDR="10.9.0.1"), Client(REMOTE_ADDR="10.9.0.2")
    assert asked(here, 3) == [401, 401, 429]
    assert asked(there) == [401]
    assert asked(world.client("owner")) == [200]


def test_a_wrong_token_at_the_stream_counts_like_at_every_other_address(world, minute):
    here, wrong = Client(REMOTE_ADDR="10.9.0.3"), {"Authorization": "Bearer tide_guess"}
    answers = [here.get("/api/v1/stream", headers=wrong) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [401, 401, 429]
    refused = answers[2].json()
    assert (refused["code"], refused["limit"]) == ("throttled", 2)
    assert 0 < int(answers[2].headers["Retry-After"]) <= 60
    assert asked(here) == [429], "it is one count"
    assert Client(REMOTE_ADDR="10.9.0.4").get("/api/v1/stream").status_code == 401


def test_a_request_is_counted_with_one_command_and_the_first_one_sets_the_end(db, monkeypatch):
    counters, sent = caches["default"], []
    send = redis.Redis.execute_command

    def noted(self, *arguments, **options):
        sent.append(arguments[0])
        return send(self, *arguments, **options)

    monkeypatch.setattr(redis.Redis, "execute_command", noted)
    counters.delete("a-counter")
    sent.clear()
    assert [counters.count("a-counter", 90) for _ in range(3)] == [1, 2, 3]
    assert sent == ["INCRBY", "EXPIRE", "INCRBY", "INCRBY"]
    assert 80 < counters._cache.get_client().ttl(counters.make_key("a-counter")) <= 90


def test_pages_have_a_window_of_their_own(world, minute):
    client = world.client("owner")
    assert asked(client, 2) == [200, 200]
    answers = [client.get("/profile/") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert 0 < int(answers[2].headers["Retry-After"]) <= 60
    assert "may make 2 requests a minute" in answers[2].content.decode()
    assert [Client(REMOTE_ADDR="10.9.0.5").get("/sign-in/").status_code for _ in range(3)] == [200, 200, 429]
