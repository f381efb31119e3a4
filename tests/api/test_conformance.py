"""Schemathesis: what is answered is what the document says, with all checks on all operations.

The short form sends the examples of the document. `make proof-rest` sends what every phase makes of it, `REST_EXAMPLES`
requests of each kind for an operation; `REST_SEED` repeats a run.
"""

import os
import re

import pytest

from tests.api import conformance
from tests.matrix.expectations import ELSEWHERE
from tests.matrix.stage import Stage, address, routes
from tidesched_web.api import stream
from tidesched_web.api.document.served import document
from tidesched_web.common import live_hub

LONG = bool(os.environ.get("REST_EXAMPLES"))
EXAMPLES = int(os.environ.get("REST_EXAMPLES") or 1)
SEED = int(os.environ.get("REST_SEED") or 1)


def named_by(stage: Stage, paths: dict) -> dict[str, dict]:
    """Operation → the object of the stage that its address names."""
    found = {}
    for route in routes():
        if not route.name.startswith("api:") or route.name in ELSEWHERE:
            continue
        path = address(stage, route).partition("?")[0]
        for template in sorted(paths, key=lambda one: one.count("{")):
            match = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template), path)
            if match is not None:
                keys = {f"path.{name}": int(value) for name, value in match.groupdict().items()}
                found |= {one["operationId"]: keys for one in paths[template].values() if keys}
                break
    return found


@pytest.mark.timeout(7200 if LONG else 180)
def test_what_is_answered_is_what_the_document_says(db, monkeypatch, settings):
    settings.API_REQUESTS_PER_MINUTE = settings.API_ANONYMOUS_REQUESTS_PER_MINUTE = 0
    monkeypatch.setattr(stream, "LIFETIME_SECONDS", 0.0)
    monkeypatch.setattr(live_hub, "IDLE_SECONDS", 0.05)
    stage = Stage()
    how = conformance.settings_of(
        token=stage.world.token("admin", "admin"),
        ids=named_by(stage, document()["paths"]),
        examples=EXAMPLES,
        phases=conformance.PHASES if LONG else ("examples",),
        seed=SEED,
    )
    with conformance.served() as at:
        found = conformance.run(how, at)
    assert found.errors == []
    assert {operation: failures[:3] for operation, failures in found.failures.items()} == {}
    # Those without an example have nothing to send in the short form; the long one sends something to all.
    assert len(found.answers) >= (sum(len(path) for path in document()["paths"].values()) if LONG else 50)


def test_no_schema_of_the_document_is_empty():
    """Each map says what its values are, and each value which kinds it may be of."""
    empty = []

    def look(part, place):
        if isinstance(part, list):
            for index, one in enumerate(part):
                look(one, f"{place}/{index}")
        if not isinstance(part, dict):
            return
        kinds = part.get("type")
        holds = kinds == "object" or (isinstance(kinds, list) and "object" in kinds)
        if part.get("additionalProperties") in (True, {}) or (
            holds and not {"properties", "additionalProperties"} & part.keys()
        ):
            empty.append(place)
        if part == {} and place.rpartition("/")[2] in ("schema", "items"):
            empty.append(place)
        for name, inner in part.items():
            if name not in ("example", "examples", "default", "value"):
                look(inner, f"{place}/{name}")

    look(document(), "")
    assert empty == []
