"""Schemathesis: what is answered is what the document says, with all checks on all operations.

The short form sends the examples of the document. `make proof-rest` sends what every phase makes of it, `REST_EXAMPLES`
requests of each kind for an operation; `REST_SEED` repeats a run, `REST_PHASES` names phases to look at alone,
`REST_PART=2/12` asks the second twelfth of the operations and `REST_ONLY=queues_,stream` those whose ids begin so (the
stateful phase asks all of them, and belongs to the first part); that each operation has a 2xx is asked of runs with the
examples. `REST_RESULTS=folder` keeps what each scenario found, and goes on where a run was stopped (`results`).
"""

import os

import pytest

from tests.api import conformance
from tests.api.results import Results
from tests.api.story import Story, named_by
from tidesched_web.api import stream
from tidesched_web.api.document.served import document
from tidesched_web.api.v1 import connections
from tidesched_web.common import live_hub

LONG = "REST_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("REST_EXAMPLES", "1"))
SEED = int(os.environ.get("REST_SEED") or 1)
PHASES = tuple((os.environ.get("REST_PHASES") or ",".join(conformance.PHASES)).split(",")) if LONG else ("examples",)
WHOLE = "examples" in PHASES  # the phase that knows a right request for each operation
PART, PARTS = map(int, (os.environ.get("REST_PART") or "1/1").split("/"))
ONLY = tuple((os.environ.get("REST_ONLY") or "").split(","))  # the beginnings of ids; "" is that of all
FOLDER = os.environ.get("REST_RESULTS") or ""


def part_of(paths):
    """Label → id of the operations of this part; the kinds of objects are spread over the parts."""
    known = [
        (f"{method.upper()} {path}", one["operationId"]) for path, item in paths.items() for method, one in item.items()
    ]
    return {label: name for label, name in known[PART - 1 :: PARTS] if name.startswith(ONLY)}


def runs(part, found):
    """(phases, operations) that have not ended yet. Phases with the same operations run together, as they learn from
    each other's answers; links name the objects of the stateful phase, so it runs by itself, and at the end."""
    kept = [] if any(ONLY) else found.results.kept()
    for one in kept:
        if one.operation in part or one.phase == "stateful":
            found.add(one)
    left = []
    for phase in PHASES:
        done = set() if any(ONLY) else found.results.done(phase)
        if phase == "stateful":
            if PART == 1 and not any(ONLY) and not done:
                left.append(([phase], set(part)))
        elif rest := set(part) - done:
            if left and left[-1][1] == rest:
                left[-1][0].append(phase)
            else:
                left.append(([phase], rest))
    return left


@pytest.mark.timeout(14_400 if LONG else 180)
def test_what_is_answered_is_what_the_document_says(db, monkeypatch, settings):
    settings.API_REQUESTS_PER_MINUTE = settings.API_ANONYMOUS_REQUESTS_PER_MINUTE = 0
    monkeypatch.setattr(stream, "LIFETIME_SECONDS", 0.0)
    monkeypatch.setattr(live_hub, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(connections, "PATIENCE_SECONDS", 0.0)  # no worker is there to test a connection
    assert set(PHASES) <= set(conformance.PHASES)
    story, paths = Story(), document()["paths"]
    token, ids = story.world.token("admin", "admin"), named_by(story, paths)
    every = {one["operationId"] for item in paths.values() for one in item.values()}
    found = conformance.Findings(results=Results(FOLDER, "conformance", how=f"seed {SEED}, {EXAMPLES} of each"))
    part = part_of(paths)
    with conformance.served() as at:
        for phases, labels in runs(part, found):
            stateful = phases == ["stateful"]
            how = conformance.settings_of(
                token=token, examples=EXAMPLES, phases=phases, seed=SEED,
                ids={} if stateful else ids,  # a fixed id would be put in the place of that of a link
                without=() if stateful else every - {part[label] for label in labels},
            )  # fmt: skip
            conformance.run(how, at, found)
        if WHOLE:
            how = conformance.settings_of(token=token, ids=ids, examples=1, phases=PHASES, seed=SEED)
            schema = conformance.schema_at(at, how)
            conformance.ask_the_rest(schema, part, token=token, ids=ids, found=found)
    print(found.table())
    for operation, failures in found.failures.items():
        print(f"{operation}: {len(failures)} findings", *failures[:3], sep="\n  ")
    assert {operation: failures[:3] for operation, failures in found.failures.items()} == {}
    if WHOLE:
        assert found.without_success(part) == []
