"""Schemathesis: what is answered is what the document says, with all checks on all operations.

The short form sends the examples of the document. `make proof-rest` sends what every phase makes of it, `REST_EXAMPLES`
requests of each kind for an operation; `REST_SEED` repeats a run, and `REST_PHASES`
names phases to look at alone; that each operation has a 2xx is asked of runs with the examples.
"""

import os

import pytest

from tests.api import conformance
from tests.api.story import Story, named_by
from tidesched_web.api import stream
from tidesched_web.api.document.served import document
from tidesched_web.api.v1 import connections
from tidesched_web.common import live_hub

LONG = bool(os.environ.get("REST_EXAMPLES"))
EXAMPLES = int(os.environ.get("REST_EXAMPLES") or 1)
SEED = int(os.environ.get("REST_SEED") or 1)
PHASES = tuple((os.environ.get("REST_PHASES") or ",".join(conformance.PHASES)).split(",")) if LONG else ("examples",)
WHOLE = "examples" in PHASES  # the phase that knows a right request for each operation


@pytest.mark.timeout(7200 if LONG else 180)
def test_what_is_answered_is_what_the_document_says(db, monkeypatch, settings):
    settings.API_REQUESTS_PER_MINUTE = settings.API_ANONYMOUS_REQUESTS_PER_MINUTE = 0
    monkeypatch.setattr(stream, "LIFETIME_SECONDS", 0.0)
    monkeypatch.setattr(live_hub, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(connections, "PATIENCE_SECONDS", 0.0)  # no worker is there to test a connection
    assert set(PHASES) <= set(conformance.PHASES)
    story, paths = Story(), document()["paths"]
    token, ids = story.world.token("admin", "admin"), named_by(story, paths)
    found = conformance.Findings()
    with conformance.served() as at:
        # Links name the objects of the stateful phase: a fixed id would be put in the place of theirs.
        for phases, named in (([one for one in PHASES if one != "stateful"], ids), (["stateful"], {})):
            if set(phases) & set(PHASES):
                how = conformance.settings_of(token=token, ids=named, examples=EXAMPLES, phases=phases, seed=SEED)
                conformance.run(how, at, found)
        if WHOLE:
            conformance.ask_the_rest(conformance.schema_at(at, how), token=token, ids=ids, found=found)
    print(found.table())
    for operation, failures in found.failures.items():
        print(f"{operation}: {len(failures)} findings", *failures[:3], sep="\n  ")
    assert found.errors == []
    assert {operation: failures[:3] for operation, failures in found.failures.items()} == {}
    if WHOLE:
        operations = [f"{method.upper()} {path}" for path, item in paths.items() for method in item]
        assert found.without_success(operations) == []
