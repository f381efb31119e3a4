"""Schemathesis against the application itself: the world of the API tests, each request taken back after it.

The application answers on a socket of this process, on the one connection of the test. A request runs in a savepoint
that is rolled back, so each meets the same objects, whatever the one before has deleted.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import schemathesis
from asgiref.sync import async_to_sync
from django.core.cache import cache
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, connections, transaction
from jsonschema import Draft202012Validator
from schemathesis import Case, CheckContext, Response
from schemathesis.checks import CHECKS
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.parameters import ParameterLocation
from schemathesis.engine import events, from_schema, observations
from schemathesis.specs.openapi import checks as openapi_checks
from schemathesis.specs.openapi.checks import is_unexpected_http_status_case
from werkzeug.serving import WSGIRequestHandler, make_server

from tests.api.results import Findings

PHASES = ("examples", "coverage", "fuzzing", "stateful")
# Of a request, on a machine that has other work too.
PATIENCE_SECONDS = 120
# A value of the right form may be of an older version (412), without one (428), or against the quota rules (422). The
# status 400 says so too, and the check below looks at its code.
OF_THE_WORLD = ["400", "412", "422", "428"]
# Codes of the status 400 for data whose form is wrong: the document says which form it has.
OF_THE_FORM = ("invalid", "malformed_body", "unknown_parameter")
# What an answer says of the object beside its document: stated where it is there, and there where it is stated.
HEADERS = ("ETag", "Location", "Idempotency-Replayed")
# They wait for a worker to test a connection, and none runs here: that is a 503, which has the test as far as it is.
TESTED_BY_A_WORKER = ("clusters_create", "clusters_connection_update")


@schemathesis.check
def refused_by_a_stated_rule(ctx: CheckContext, response: Response, case: Case) -> None:
    """Data of the right form is refused (400) for a rule of the product, and never for its form."""
    meta = case.meta
    if meta is None or not meta.generation.mode.is_positive or response.status_code != 400:
        return
    document = case.operation.schema.raw_schema
    if not _as_documented(document, case):
        return  # the tool calls it right, and the document does not
    said = response.json()
    if said["code"] in OF_THE_FORM:
        text = f"{said['code']}: {said['detail']}"
        raise Failure(operation=case.operation.label, title="Refused for its form, which is right", message=text)


def negative_data_rejection(ctx: CheckContext, response: Response, case: Case) -> bool | None:
    """The tool's check, of requests that are against the document.

    One that was to be wrong in its body alone may fit the document all the same: a map is drawn with wrong values, and
    comes empty, or as the null that another form of the member allows.
    """
    meta = case.meta
    elsewhere = [place for place in ParameterLocation if place != ParameterLocation.BODY]
    if (
        meta is not None
        and meta.is_negative_at(ParameterLocation.BODY)
        and not any(meta.is_negative_at(place) for place in elsewhere)
        and case.media_type in case.operation.definition.raw["requestBody"]["content"]
        and _as_documented(case.operation.schema.raw_schema, case)
    ):
        return None
    rejected: bool | None = openapi_checks.negative_data_rejection(ctx, response, case)
    return rejected


CHECKS.register(negative_data_rejection)  # in the place of the tool's


def _as_documented(document: dict[str, Any], case: Case) -> bool:
    body = case.operation.definition.raw.get("requestBody")
    if body is None or case.media_type not in body["content"]:
        return True
    schema = body["content"][case.media_type]["schema"] | {"components": document["components"]}
    return Draft202012Validator(schema).is_valid(case.body)


@schemathesis.check
def stated_status(ctx: CheckContext, response: Response, case: Case) -> None:
    """The operation names the status itself: its `default`, which stands for any, satisfies the tool's own check."""
    stated = case.operation.responses.status_codes
    if not is_unexpected_http_status_case(case) and str(response.status_code) not in stated:
        text = f"{response.status_code} is none of {', '.join(map(str, stated))}"
        raise Failure(operation=case.operation.label, title="A status that the operation does not name", message=text)


@schemathesis.check
def stated_headers(ctx: CheckContext, response: Response, case: Case) -> None:
    """No answer has a header of an object that the document does not state; the tool looks for those that it does."""
    said = case.operation.responses.find_by_status_code(response.status_code)
    stated = {name.lower() for name, _header in said.headers.items()} if said is not None and said.headers else set()
    more = [name for name in HEADERS if name.lower() in response.headers and name.lower() not in stated]
    if more:
        title = "A header that the operation does not state"
        raise Failure(operation=case.operation.label, title=title, message=f"{response.status_code}: {', '.join(more)}")


@schemathesis.check
def unavailable_for_want_of_a_worker(ctx: CheckContext, response: Response, case: Case) -> None:
    """A 503 of what a worker tests has the test that waits: the database and Redis are there."""
    waits = case.operation.definition.raw.get("operationId") in TESTED_BY_A_WORKER
    if waits and response.status_code == 503 and response.json().get("test", {}).get("verdict") != "running":
        raise Failure(operation=case.operation.label, title="Unavailable", message=response.json()["detail"])


def _no_address(find: Callable[[str, Any], str | None], text: str, origin: Any) -> str | None:
    try:
        return find(text, origin)
    except ValueError:
        return None


# Schemathesis looks for addresses in what is answered, and breaks off at a text with "//[" that is none.
observations._same_origin_path = functools.partial(_no_address, observations._same_origin_path)


class Application:
    """The WSGI application on the connection of the test, one request at a time."""

    def __init__(self) -> None:
        self.inner = get_wsgi_application()
        self.connection = connections["default"]
        self.turn = threading.Lock()
        self.kept = ""  # the savepoint of a scenario: what its requests write stays until it ends

    def begin(self) -> None:
        """From now on the requests build on each other."""
        self.end()
        with self.turn:
            self.kept = self.connection.savepoint()

    def end(self) -> None:
        """Take back what the requests of a scenario have written."""
        with self.turn:
            if self.kept:
                self.connection.savepoint_rollback(self.kept)
            self.kept = ""

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        with self.turn:
            connections["default"] = self.connection  # the server's thread has none of its own
            cache.clear()
            with transaction.atomic():
                answer = self.inner(environ, start_response)
                body = async_to_sync(_parts)(answer) if getattr(answer, "is_async", False) else list(answer)
                if (close := getattr(answer, "close", None)) is not None:
                    close()
                if not self.kept:
                    transaction.set_rollback(True)
            return body


async def _parts(answer: Any) -> list[bytes]:
    """A stream, until it ends."""
    return [part async for part in answer]


class _Silent(WSGIRequestHandler):
    def log(self, *_arguments: Any) -> None:
        """Requests are many, and their answers are looked at."""


@dataclass(frozen=True)
class Served:
    """The application and its address."""

    application: Application
    address: str


@contextmanager
def served() -> Iterator[Served]:
    """The application on a socket; the thread that asks has to be in a transaction."""
    connection = connections["default"]
    connection.inc_thread_sharing()
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    application = Application()
    server = make_server("127.0.0.1", 0, application, request_handler=_Silent)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Served(application, f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        thread.join()
        for signal in (request_started, request_finished):
            signal.connect(close_old_connections)
        connection.dec_thread_sharing()


def settings_of(
    *,
    token: str,
    ids: dict[str, dict[str, Any]],
    examples: int,
    phases: Iterable[str],
    seed: int,
) -> SchemathesisConfig:
    """All checks on all operations. ``ids``: the objects that the addresses of an operation name."""
    accepted = ["2xx", "401", "403", "404", "409", *OF_THE_WORLD]
    operations: dict[str, dict[str, Any]] = {name: {"parameters": values} for name, values in ids.items()}
    for name in TESTED_BY_A_WORKER:
        operations.setdefault(name, {})["checks"] = {
            "not_a_server_error": {"expected-statuses": ["2xx", "3xx", "4xx", "503"]},
            "positive_data_acceptance": {"expected-statuses": [*accepted, "503"]},
        }
    return SchemathesisConfig.from_dict(
        {
            "seed": seed,
            "headers": {"Authorization": f"Bearer {token}"},
            "generation": {"max-examples": examples, "database": "none"},
            "continue-on-failure": True,
            "request-timeout": PATIENCE_SECONDS,
            "phases": {name: {"enabled": name in phases} for name in PHASES},
            "checks": {
                "positive_data_acceptance": {"expected-statuses": accepted},
                "negative_data_rejection": {"expected-statuses": ["4xx", "503"]},
                "missing_required_header": {"expected-statuses": ["400", "401", "403", "406", "415", "428"]},
            },
            "operations": [{"include-operation-id": name, **said} for name, said in operations.items()],
        }
    )


def run(settings: SchemathesisConfig, at: Served, found: Findings) -> None:
    """Run the phases of the settings. Requests of one scenario of the stateful phase build on each other."""
    schema = schema_at(at, settings)
    schema.build_state_machine = functools.partial(_scenarios, schema.build_state_machine, at.application)
    for event in from_schema(schema).execute():
        _note(event, found)


def schema_at(at: Served, settings: SchemathesisConfig) -> Any:
    """The document that the application serves."""
    schema = schemathesis.openapi.from_url(f"{at.address}/api/v1/schema/?format=json", config=settings)
    schema.config.update(base_url=at.address)
    return schema


def _scenarios(build: Callable[..., type[Any]], application: Application, **how: Any) -> type[Any]:
    """The state machine, each of whose scenarios begins in the world of the story."""
    machine = build(**how)

    def begin(self: Any) -> None:
        application.begin()
        machine.__init__(self)

    def end(self: Any) -> None:
        machine.teardown(self)
        application.end()

    return type("Scenarios", (machine,), {"__init__": begin, "teardown": end})


def ask_the_rest(schema: Any, *, token: str, ids: dict[str, dict[str, Any]], found: Findings) -> None:
    """Ask once what no phase has asked: an operation without parameters and body has no example to send."""
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.label not in found.answers:
            _ask(operation, ids.get(operation.definition.raw["operationId"], {}), token, found)


def _ask(operation: Any, ids: dict[str, Any], token: str, found: Findings) -> None:
    path = {name.removeprefix("path."): value for name, value in ids.items()}
    case = operation.Case(path_parameters=path, headers={"Authorization": f"Bearer {token}"})
    answer = case.call()
    found.answers[operation.label][answer.status_code] += 1
    try:
        case.validate_response(answer)
    except FailureGroup as group:
        found.failures[operation.label] += [
            f"{type(one).__name__} {one.title} {one.message}" for one in group.exceptions
        ]


def _note(event: Any, found: Findings) -> None:
    if isinstance(event, events.NonFatalError):
        found.failures[event.label].append(f"not_run {event.info.title} {event.info.message}"[:2000])
    elif isinstance(event, events.FatalError):
        raise event.exception
    elif isinstance(event, events.ScenarioFinished):
        recorder = event.recorder
        for key, exchange in recorder.interactions.items():
            if exchange.response is not None and key in recorder.cases:
                found.answers[recorder.cases[key].value.operation.label][exchange.response.status_code] += 1
        for key, checks in recorder.checks.items():
            label = recorder.cases[key].value.operation.label
            found.failures[label] += [_told(recorder, key, check) for check in checks if check.failure_info is not None]


def _told(recorder: Any, key: str, check: Any) -> str:
    exchange, failure = recorder.interactions.get(key), check.failure_info.failure
    answer = exchange.response if exchange is not None else None
    said = answer.content[:300].decode(errors="replace") if answer is not None else ""
    status = answer.status_code if answer is not None else "-"
    sent = check.failure_info.code_sample
    return f"{check.name} {status}: {failure.title} {failure.message} | {sent} | {said}"
