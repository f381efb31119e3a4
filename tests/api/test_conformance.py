"""Schemathesis: what is answered is what the document says, with all checks on all operations.

The short form sends the examples of the document. `make proof-rest` sends what every phase makes of it, `REST_EXAMPLES`
requests of each kind for an operation.
"""

import os

import pytest

from tests.api import conformance
from tests.api.results import Findings
from tests.api.story import Story, named_by
from tidesched_web.api import stream
from tidesched_web.api.document.served import document
from tidesched_web.api.v1 import connections
from tidesched_web.common import live_hub

EXAMPLES = int(os.environ.get("REST_EXAMPLES", "1"))
PHASES = conformance.PHASES if EXAMPLES > 1 else ("examples",)
SEED = 1


@pytest.mark.timeout(7200)
def test_what_is_answered_is_what_the_document_says(db, monkeypatch, settings):
    settings.API_REQUESTS_PER_MINUTE = settings.API_ANONYMOUS_REQUESTS_PER_MINUTE = 0
    monkeypatch.setattr(stream, "LIFETIME_SECONDS", 0.0)
    monkeypatch.setattr(live_hub, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(connections, "PATIENCE_SECONDS", 0.0)  # no worker is there to test a connection
    story, paths = Story(), document()["paths"]
    token, ids = story.world.token("admin", "admin"), named_by(story, paths)
    found = Findings()
    with conformance.served() as at:
        # Links name the objects of the stateful phase, so it runs by itself, and no id is put in the place of a link's.
        for phases in (PHASES[:-1] or PHASES, PHASES[3:]):
            known = {} if "stateful" in phases else ids
            how = conformance.settings_of(token=token, ids=known, examples=EXAMPLES, phases=phases, seed=SEED)
            if phases:
                conformance.run(how, at, found)
        schema = conformance.schema_at(
            at, conformance.settings_of(token=token, ids=ids, examples=1, phases=PHASES, seed=SEED)
        )
        conformance.ask_the_rest(schema, token=token, ids=ids, found=found)
    print(found.table())
    assert found.faults() == {}
    assert found.without_success() == []
