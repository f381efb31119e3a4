"""`LOG_FORMAT=json`: each line is an object, and says of which request and which session it is."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from tests.web.pipeline.conftest import server, stage
from tests.web.pipeline.stage import Stage
from tidesched_web.common import live, request_context
from tidesched_web.common.log_lines import JsonFormatter

__all__ = ["server", "stage"]


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonFormatter())
    logging.getLogger().addHandler(handler)
    yield written
    logging.getLogger().removeHandler(handler)


def objects(lines: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.getvalue().splitlines()]


def test_a_line_says_its_request_and_what_went_wrong(lines: io.StringIO) -> None:
    with request_context.carried(request_context.RequestContext("request-1")):
        try:
            raise ValueError("a\nb")
        except ValueError:
            logging.getLogger("a.b").exception("%s failed", "it")
    (found,) = objects(lines)
    assert (found["level"], found["logger"], found["message"]) == ("ERROR", "a.b", "it failed")
    assert found["request_id"] == "request-1"
    assert found["exception"].endswith("ValueError: a\nb")
    assert found["time"].endswith("+00:00")
    assert "session" not in found


def test_a_line_of_django_says_its_request(lines: io.StringIO) -> None:
    answer = Client().get("/api/v1/nowhere/", headers={"x-request-id": "request-2"})
    assert answer.status_code == 404
    assert [(line["logger"], line["request_id"]) for line in objects(lines)] == [("django.request", "request-2")]


def test_a_line_of_a_session_says_which(stage: Stage, lines: io.StringIO, settings: Any) -> None:
    """Redis is away, which the session says as it announces what it did."""
    address = settings.REDIS_URL
    settings.REDIS_URL = "unix:///nowhere/valkey.sock"
    live._client.cache_clear()
    try:
        session = stage.session()
    finally:
        settings.REDIS_URL = address
        live._client.cache_clear()
    found = [line for line in objects(lines) if line["logger"] == live.__name__]
    assert found
    assert [line["session"] for line in found] == [{"cluster": "stage", "number": session.number}] * len(found)
    logging.getLogger("a.b").warning("after it")
    assert "session" not in objects(lines)[-1]


def test_it_is_one_setting(tmp_path: Any) -> None:
    program = "import django, logging; django.setup(); logging.getLogger('x').warning('hello')"
    of = {"DJANGO_SETTINGS_MODULE": "tidesched_web.settings", "DATA_DIR": str(tmp_path)}

    def run(log_format: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | of | {"LOG_FORMAT": log_format}
        return subprocess.run(
            [sys.executable, "-c", program], check=False, env=environment, capture_output=True, text=True
        )

    assert json.loads(run("json").stderr)["message"] == "hello"
    assert run("").stderr.endswith("WARNING x: hello\n")
    assert "LOG_FORMAT='xml': expected one of line, json" in run("xml").stderr
