"""A repeated POST gets the first answer whole: status, body, version and address."""

from __future__ import annotations

import orjson
from django.db import transaction

from tests.api.cast import ApiClient
from tests.api.story import Story
from tests.api.test_hostile_bodies import Writes
from tidesched_web.api.v1 import connections

HEADERS = ("ETag", "Location")


def whole(answer):
    return answer.status_code, {name: answer.headers.get(name) for name in HEADERS}, answer.json()


def test_the_answer_to_a_repetition_is_the_first_one_with_its_headers(db, settings, monkeypatch):
    """Each operation of the document that takes a key, with its example."""
    settings.API_REQUESTS_PER_MINUTE = 0
    monkeypatch.setattr(connections, "PATIENCE_SECONDS", 0.0)  # no worker is there to test a connection
    writes = Writes(Story())
    client, found, with_headers = ApiClient(token=writes.token), {}, set()
    for method, place, operation in writes.operations:
        name = operation["operationId"]
        if {"$ref": "#/components/parameters/Idempotency-Key"} not in operation.get("parameters", ()):
            continue
        body = writes.good(operation) | ({"accept": True} if name == "clusters_create" else {})
        named = {"If-Match": "*", "Idempotency-Key": "again"}
        with transaction.atomic():
            first, again = (
                client.generic(method, place, orjson.dumps(body), "application/json", headers=named) for _ in range(2)
            )
            transaction.set_rollback(True)
        if not 200 <= first.status_code < 300 or whole(first) != whole(again):
            found[name] = (whole(first), whole(again))
        assert again.headers.get("Idempotency-Replayed") == "true", name
        with_headers |= {(name, header) for header in HEADERS if header in first.headers}
    assert found == {}
    assert {"queues_create", "quota_changes_apply_create", "clusters_pause_create"} <= {
        name for name, header in with_headers if header == "ETag"
    }
    assert {"queues_create", "tokens_create"} <= {name for name, header in with_headers if header == "Location"}
