"""Bodies that no client sends: each write refuses them at the place that is wrong, and does nothing of them.

Two kinds: bytes that are hardly a body (random, far too deep, far too long), and good requests of which one place is
hostile (`hostile`). The short form sends a few of each to every write, `make proof-rest` more. Forms of pages:
`test_hostile_forms`.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction
from jsonschema import Draft202012Validator

from tests.api import hostile
from tests.api.cast import ApiClient
from tests.api.contents import contents
from tests.api.results import Findings
from tests.api.story import Story, named_by
from tests.matrix.expectations import EXPECTED
from tests.matrix.recorder import writes as recorded
from tidesched_web.api.document.served import document
from tidesched_web.api.v1 import connections

OF_EACH = int(os.environ.get("REST_EXAMPLES", "2"))
SEED = 1
PATIENCE = 3600
# Of a body as a whole there is no field to name.
OF_THE_WHOLE = ("malformed_body",)


def hardly_bodies(chance: random.Random):
    """One body after the other."""
    while True:
        deep = chance.choice((101, 1000, 20_000))
        yield chance.randbytes(chance.randrange(1, 300))
        yield b"[" * deep + b"]" * deep
        yield b'{"reason":' * deep + b"1" + b"}" * deep
        yield b'{"reason": ' + b"9" * chance.choice((20, 400, 5000)) + b"}"
        yield b'{"reason": 1e%d}' % chance.choice((400, 99_999))
        yield b'{"reason": "' + chance.randbytes(40).hex().encode() + b'\\ud800"}'
        yield b'{"name": "\\u0000", "reason": "x"}'
        yield chance.choice((b"null", b"[]", b"1", b'""', b"{", b"{}x", b"NaN", b'{"a": Infinity}'))


class Writes:
    """The operations that write, with a good body each, and what the document says of their refusals."""

    def __init__(self, story: Story) -> None:
        self.document = document()
        self.token = story.world.token("admin", "admin")
        named = named_by(story, self.document["paths"])
        found = []
        for path, item in self.document["paths"].items():
            for method, operation in item.items():
                if method != "get":
                    keys = {
                        name.removeprefix("path."): key for name, key in named.get(operation["operationId"], {}).items()
                    }
                    found.append((method.upper(), path.format(**keys), operation))
        self.operations = found
        self._validators: dict[str, Draft202012Validator] = {}

    def good(self, operation: dict[str, Any]) -> Any:
        """The example of the document; an operation that takes no body may get one all the same."""
        if "requestBody" not in operation:
            return {"reason": "drill"}
        media = operation["requestBody"]["content"]["application/json"]
        (example,) = media["examples"].values()
        return self.document["components"]["examples"][example["$ref"].rpartition("/")[2]]["value"]

    def undeclared(self, operation: dict[str, Any], answer: Any) -> str:
        """Why a refusal is none that the document declares; "" where it is one."""
        said = operation["responses"].get(str(answer.status_code))
        if said is None:
            return "a status that the operation does not have"
        if answer["Content-Type"] != "application/problem+json":
            return f"Content-Type {answer['Content-Type']}"
        name = said["$ref"].rpartition("/")[2]
        if name not in self._validators:
            schema = self.document["components"]["responses"][name]["content"]["application/problem+json"]["schema"]
            self._validators[name] = Draft202012Validator({**schema, "components": self.document["components"]})
        problem = answer.json()
        fault = next(self._validators[name].iter_errors(problem), None)
        if fault is not None:
            return f"not as documented: {fault.message[:200]}"
        nameless = not [one for one in problem.get("errors", ()) if one["pointer"]]
        if answer.status_code in (400, 422) and nameless and problem["code"] not in OF_THE_WHOLE:
            return f"names no field: {problem['code']} {problem['detail'][:200]}"
        return ""


def test_each_write_of_the_document_is_sent_hostile_bodies(db):
    """Against the resolver: a write that the document or the story does not name fails here."""
    unsafe = ("post", "put", "patch", "delete")
    there = [(name, method) for name, method in EXPECTED if name.startswith("api:") and method in unsafe]
    writes = Writes(Story())
    assert len(writes.operations) == len(there)
    assert [place for _method, place, _operation in writes.operations if "{" in place] == []
    for _method, _place, operation in writes.operations:
        assert writes.good(operation) is not None


@pytest.fixture
def unhurried(settings, monkeypatch):
    settings.API_REQUESTS_PER_MINUTE = 0
    monkeypatch.setattr(connections, "PATIENCE_SECONDS", 0.0)  # no worker is there to test a connection


def is_half_done(before: dict[str, Any], written: list[str]) -> str:
    """What a refused request left in the database."""
    if not written:
        return ""
    after = contents()
    moved = [name for name in before if before[name] != after.get(name)]
    return f"left rows in {', '.join(moved)}" if moved else ""


@pytest.mark.timeout(PATIENCE)
def test_no_write_breaks_at_what_is_hardly_a_body(db, unhurried):
    writes, made, found = Writes(Story()), hardly_bodies(random.Random(SEED)), Findings()
    client = ApiClient(token=writes.token)
    for method, place, operation in writes.operations:
        name = operation["operationId"]
        lowest = 400 if "requestBody" in operation else 200  # what takes no body reads none
        for _ in range(OF_EACH):
            body = next(made)
            with transaction.atomic():
                answer = client.generic(method, place, body, "application/json", headers={"If-Match": "*"})
                transaction.set_rollback(True)
            found.answers[name][answer.status_code] += 1
            if not lowest <= answer.status_code < 500:
                found.failures[name].append(f"broke {answer.status_code}: {body[:80]!r}")
    assert found.faults() == {}


@pytest.mark.timeout(PATIENCE)
def test_a_hostile_place_in_a_good_body_is_refused_by_its_name_and_nothing_is_done(db, unhurried):
    writes, found = Writes(Story()), Findings()
    client, before = ApiClient(token=writes.token), contents()
    for number, (method, place, operation) in enumerate(writes.operations):
        name = operation["operationId"]
        made = hostile.bodies(writes.good(operation), random.Random(1000 * SEED + number))
        skipped = random.Random(SEED + number).randrange(40)
        for body in [next(made) for _ in range(OF_EACH + skipped)][skipped:]:
            cache.clear()
            with transaction.atomic():
                with recorded() as written:
                    answer = client.generic(method, place, body, "application/json", headers={"If-Match": "*"})
                found.answers[name][answer.status_code] += 1
                fault = ""
                if answer.status_code >= 500:
                    waits = answer.status_code == 503 and answer.json().get("test", {}).get("verdict") == "running"
                    fault = "" if waits else "broke"
                elif answer.status_code >= 400:
                    fault = writes.undeclared(operation, answer) or is_half_done(before, written)
                transaction.set_rollback(True)
            if fault:
                found.failures[name].append(f"{fault} {answer.status_code}: {body[:200]!r}")
    print(found.table())
    assert found.faults() == {}
