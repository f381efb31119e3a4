"""What an audit entry says of its object has the shape that the document gives to objects of its kind."""

from __future__ import annotations

import copy

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
WRONG = (
    ("queue", {"weight": "7"}), ("queue", {"card_quota": {H200: "8"}}), ("queue", {"service_type": "idle"}),
    ("tenant", {"approval_required": "yes"}), ("tide_plan", {"layers": [{"days": ["funday"]}]}),
    ("quota_change", {"state": "lost"}), ("reclaim", {"needed": {"cards": [1]}}), ("cluster", {"went_along": [1]}),
    ("token", {"scopes": "admin"}), ("rules", {"overcommit_training_percent": []}),
)  # fmt: skip
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


def test_each_entry_has_the_shape_of_its_kind(entries, shape):
    assert {row["object_type"] for row in entries} >= KINDS | {"relic"}
    faults = [(row["action"], error.message[:200]) for row in entries for error in shape.iter_errors(row)]
    assert faults == []


def test_another_type_in_a_member_is_seen(entries, shape):
    by_kind = {row["object_type"]: row for row in entries}
    for kind, member in WRONG:
        row = copy.deepcopy(by_kind[kind])
        row["after"] = (row["after"] or {}) | member
        assert not shape.is_valid(row), (kind, member)
