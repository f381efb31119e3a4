"""Bodies that no client sends: random bytes, values far too deep, numbers far too long. Each write refuses them."""

import os
import random

import pytest

from tests.api.cast import ApiClient
from tests.api.story import Story, named_by
from tidesched_web.api.document.served import document

LONG = bool(os.environ.get("REST_EXAMPLES"))
OF_EACH = 200 if LONG else 5


def bodies(chance: random.Random):
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


def writes(story):
    """(method, address) of each operation that takes a body."""
    paths = document()["paths"]
    named = named_by(story, paths)
    for path, item in paths.items():
        for method, operation in item.items():
            if "requestBody" in operation:
                keys = named.get(operation["operationId"], {})
                yield method.upper(), path.format(**{name.removeprefix("path."): key for name, key in keys.items()})


@pytest.mark.timeout(3600 if LONG else 120)
def test_no_write_breaks_at_a_hostile_body(db, settings):
    settings.API_REQUESTS_PER_MINUTE = 0
    story = Story()
    client = ApiClient(token=story.world.token("admin", "admin"))
    made, answers = bodies(random.Random(7)), {}
    for method, address in writes(story):
        for _ in range(OF_EACH):
            body = next(made)
            answer = client.generic(method, address, body, "application/json", headers={"If-Match": "*"})
            if not 400 <= answer.status_code < 500:
                answers.setdefault(f"{method} {address}", []).append((answer.status_code, body[:80]))
    assert answers == {}
