"""Schemathesis: what is answered is what the document says, with all checks on all operations.

The short form sends the examples of the document. `make proof-rest` sends what every phase makes of it, `REST_EXAMPLES`
requests of each kind for an operation; `REST_SEED` repeats a run, `REST_PHASES` names phases to look at alone, and
`REST_PART=2/12` asks the second twelfth of the operations (the stateful phase asks all of them in any case); that each
operation has a 2xx is asked of runs with the examples.
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
PART, PARTS = map(int, (os.environ.get("REST_PART") or "1/1").split("/"))


def part_of(paths):
    """(label, id) of the operations of this part; the kinds of objects are spread over the parts."""
    known = [
        (f"{method.upper()} {path}", one["operationId"]) for path, item in paths.items() for method, one in item.items()
    ]
    return known[PART - 1 :: PARTS]


@pytest.mark.timeout(7200 if LONG else 180)
def test_what_is_answered_is_what_the_document_says(db, monkeypatch, settings):
    settings.API_REQUESTS_PER_MINUTE = settings.API_ANONYMOUS_REQUESTS_PER_MINUTE = 0
    monkeypatch.setattr(stream, "LIFETIME_SECONDS", 0.0)
    monkeypatch.setattr(live_hub, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(connections, "PATIENCE_SECONDS", 0.0)  # no worker is there to test a connection
    assert set(PHASES) <= set(conformance.PHASES)
    story, paths = Story(), document()["paths"]
    token, ids = story.world.token("admin", "admin"), named_by(story, paths)
    found, part = conformance.Findings(), part_of(paths)
    others = {one["operationId"] for item in paths.values() for one in item.values()} - {name for _label, name in part}
    with conformance.served() as at:
        # Links name the objects of the stateful phase: a fixed id would be put in the place of theirs.
        for phases, named, left in (
            ([one for one in PHASES if one != "stateful"], ids, others),
            (["stateful"], {}, ()),
        ):
            if set(phases) & set(PHASES):
                how = conformance.settings_of(
                    token=token, ids=named, examples=EXAMPLES, phases=phases, seed=SEED, without=left
                )
                conformance.run(how, at, found)
        if WHOLE:
            schema, labels = conformance.schema_at(at, how), {label for label, _name in part}
            conformance.ask_the_rest(schema, labels, token=token, ids=ids, found=found)
    print(found.table())
    for operation, failures in found.failures.items():
        print(f"{operation}: {len(failures)} findings", *failures[:3], sep="\n  ")
    assert found.errors == []
    assert {operation: failures[:3] for operation, failures in found.failures.items()} == {}
    if WHOLE:
        assert found.without_success(labels) == []
