"""Audit entries of every kind have the shape that the document gives to an entry."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from tests.api.cast import H200, ApiClient
from tests.api.story import Story
from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.selectors import access_of
from tidesched_web.api.document.served import document
from tidesched_web.audit import services as audit
from tidesched_web.changes import services as changes

# Kinds of which the story writes entries by itself, or is made to below.
KINDS = {
    "card_type", "tenant", "project", "business_line", "priority_class", "queue", "grant", "tide_plan", "quota_change",
    "cluster", "user", "token", "membership", "reclaim", "audit_segment", "rules",
}  # fmt: skip
EDITS = {
    "rules/cluster": {"overcommit_training_percent": 110},
    "card-type/NVIDIA-B300": {"kind": "whole"},
    "queue/acme-online": {"weight": 3, "card_quota": {H200: 5}},
    "tenant/acme": {"quota": {"inference": {"cpu_milli": 64_000}}},
    "project/acme/new": {},
    "business-line/acme/new": {},
    "grant/more/acme-online": {},
    "priority-class/pc-new": {"value": 7},
    "tide-plan/nights-of-acme": {"enabled": True},
}


@pytest.fixture
def entries(db):
    story = Story()
    world = story.world
    admin = access_of(world.users["admin"])
    made = changes.draft(cluster=world.clusters["east"], edits=EDITS, access=admin, reason="a new hall", source="api")
    changes.apply(change=made, access=admin)
    accounts.set_membership(user=world.users["teammate"], tenant=world.tenants["acme"], role="admin", actor="tests")
    amount = {"cpu_milli": 1000, "memory_bytes": 2**30, "cards": {H200: 4.0}}
    audit.append(
        chain="platform", actor="scheduler", action="reclaim.decide", object_type="reclaim", object_id=1,
        after={"reclaimer": "acme/web", "needed": amount, "freed": amount, "victims": [{"gang": "a/b", "pods": ["b"]}]},
    )  # fmt: skip
    audit.append(
        chain="platform", actor="a", action="relic.update", object_type="relic", object_id=1, after={"old": [1]}
    )
    client = ApiClient(token=world.token("admin", "admin"))
    return client.read("audit/", limit=1000)["results"]


@pytest.fixture
def shape():
    whole = document()
    return Draft202012Validator({"$ref": "#/components/schemas/AuditEntryDocument", "components": whole["components"]})


def test_each_entry_has_the_shape_of_the_document(entries, shape):
    assert {row["object_type"] for row in entries} >= KINDS | {"relic"}
    faults = [(row["action"], error.message[:200]) for row in entries for error in shape.iter_errors(row)]
    assert faults == []
