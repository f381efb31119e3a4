"""Schemathesis against the application itself: the world of the API tests, each request taken back after it.

The application answers on a socket of this process, on the one connection of the test. A request runs in a savepoint
that is rolled back, so each meets the same objects, whatever the one before has deleted.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import schemathesis
from django.core.cache import cache
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, connections, transaction
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from werkzeug.serving import WSGIRequestHandler, make_server

PHASES = ("examples", "coverage", "fuzzing", "stateful")
# A value of the right form may name what is not there, or meet a state that does not allow the act: the document says
# so by these statuses, beside the ones that Schemathesis takes for granted.
OF_THE_WORLD = ["400", "412", "422", "428"]


class Application:
    """The WSGI application on the connection of the test, one request at a time."""

    def __init__(self) -> None:
        self.inner = get_wsgi_application()
        self.connection = connections["default"]
        self.turn = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        with self.turn:
            connections["default"] = self.connection  # the server's thread has none of its own
            cache.clear()
            with transaction.atomic():
                answer = self.inner(environ, start_response)
                body = list(answer)
                if (close := getattr(answer, "close", None)) is not None:
                    close()
                transaction.set_rollback(True)
            return body


class _Silent(WSGIRequestHandler):
    def log(self, *_arguments: Any) -> None:
        """Requests are many, and their answers are looked at."""


@contextmanager
def served() -> Iterator[str]:
    """The address of the application; the thread that asks has to be in a transaction."""
    connection = connections["default"]
    connection.inc_thread_sharing()
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    server = make_server("127.0.0.1", 0, Application(), request_handler=_Silent)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        for signal in (request_started, request_finished):
            signal.connect(close_old_connections)
        connection.dec_thread_sharing()


@dataclass
class Findings:
    """What a run came to: failures and answers by operation, and what could not be run."""

    failures: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)
    answers: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))


def settings_of(
    *, token: str, ids: dict[str, dict[str, Any]], examples: int, phases: Iterable[str], seed: int
) -> SchemathesisConfig:
    """All checks on all operations. ``ids``: the objects that the addresses of an operation name."""
    return SchemathesisConfig.from_dict(
        {
            "seed": seed,
            "headers": {"Authorization": f"Bearer {token}"},
            "generation": {"max-examples": examples, "database": "none"},
            "continue-on-failure": True,
            "phases": {name: {"enabled": name in phases} for name in PHASES},
            "checks": {
                "positive_data_acceptance": {"expected-statuses": ["2xx", "401", "403", "404", "409", *OF_THE_WORLD]},
                "negative_data_rejection": {"expected-statuses": ["4xx", "503"]},
                "missing_required_header": {"expected-statuses": ["400", "401", "403", "406", "415", "428"]},
            },
            "operations": [{"include-operation-id": name, "parameters": values} for name, values in ids.items()],
        }
    )


def run(settings: SchemathesisConfig, address: str) -> Findings:
    """Run and gather."""
    found = Findings()
    schema = schemathesis.openapi.from_url(f"{address}/api/v1/schema/?format=json", config=settings)
    schema.config.update(base_url=address)
    for event in from_schema(schema).execute():
        _note(event, found)
    return found


def _note(event: Any, found: Findings) -> None:
    if isinstance(event, events.NonFatalError):
        found.errors.append(f"{event.phase} {event.label}: {event.info.title} {event.info.message}"[:2000])
    elif isinstance(event, events.FatalError):
        raise event.exception
    elif isinstance(event, events.ScenarioFinished):
        recorder = event.recorder
        for key, exchange in recorder.interactions.items():
            if exchange.response is not None and key in recorder.cases:
                found.answers[recorder.cases[key].value.operation.label][exchange.response.status_code] += 1
        for key, checks in recorder.checks.items():
            for check in checks:
                if check.failure_info is not None:
                    _note_failure(found, recorder, key, check)


def _note_failure(found: Findings, recorder: Any, key: str, check: Any) -> None:
    exchange, failure = recorder.interactions.get(key), check.failure_info.failure
    answer = exchange.response if exchange is not None else None
    said = answer.content[:300].decode(errors="replace") if answer is not None else ""
    status = answer.status_code if answer is not None else "-"
    found.failures[recorder.cases[key].value.operation.label].append(
        f"{check.name} {status}: {failure.title} {failure.message} | {check.failure_info.code_sample} | {said}"
    )
