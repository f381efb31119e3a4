"""Random patches: applied and rolled back they leave the documents as they were; what was planned is what is there."""

from __future__ import annotations

from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.web.changes.ground import A100, H200
from tidesched_web.changes import services as changes
from tidesched_web.changes.tree_document import merged, patch_between
from tidesched_web.common.errors import DomainError

CARDS = st.dictionaries(st.sampled_from((H200, A100)), st.one_of(st.none(), st.integers(0, 5)))
LIMITS = st.fixed_dictionaries(
    {}, optional={"card_quota": st.one_of(st.none(), CARDS), "cpu_milli": st.one_of(st.none(), st.integers(0, 10**6))}
)
QUOTA = st.dictionaries(st.sampled_from(("inference", "training")), st.one_of(st.none(), LIMITS))
OWN = st.fixed_dictionaries(
    {},
    optional={
        "weight": st.integers(1, 5), "priority": st.integers(0, 90000), "reclaimable": st.booleans(),
        "memory_bytes": st.one_of(st.none(), st.integers(0, 2**40)), "state": st.sampled_from(("Open", "Closed")),
        "deserved": st.one_of(st.none(), st.just({"cpu": "4"})), "card_quota": CARDS,
    },
)  # fmt: skip
MADE = {
    "queue/new": {"service_type": "training", "tenant": "rival", "business_line": "research", "card_quota": {H200: 1}},
    "project/rival/new": {},
    "business-line/-/new": {"name": "New"},
    "priority-class/pc-a": {"value": 3},
    "card-type/NVIDIA-B200": {},
    "grant/space/acme-train": {},
    "tenant/new": {"quota": {"training": {"cpu_milli": 4}}},
}
EDITS = st.fixed_dictionaries(
    {},
    optional={
        "queue/acme-online": OWN, "queue/acme-train": st.one_of(OWN, st.none()), "queue/rival-online": OWN,
        "queue/rival-train": st.none(), "tenant/acme": st.fixed_dictionaries({}, optional={"quota": QUOTA}),
        "project/acme/chat": st.fixed_dictionaries({}, optional={"quota": QUOTA, "name": st.sampled_from("ab")}),
        **{key: st.just(document) for key, document in MADE.items()},
    },
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=EDITS, data=st.data())
def test_applied_and_rolled_back_leaves_the_documents_as_they_were(ground, edits, data):
    with transaction.atomic():
        before = ground.tree()
        plan = changes.check(cluster=ground.cluster, edits=edits, access=ground.access("root"))
        try:
            change = ground.carry_out(edits)
        except DomainError:
            assert plan["errors"], "what the plan allows is carried out"
            assert ground.tree() == before
        else:
            assert plan["errors"] == []
            after = ground.tree()
            assert (before == after) == (change.pk is None)
            if change.pk is not None:
                # A file that holds the tree as it was says the same as the roll back.
                assert merged(after, patch_between(after, before)) == before
                back = changes.roll_back(change=change, access=ground.access("root"))
                assert changes.apply(change=back, access=ground.access("root")).state == "applied"
                assert ground.tree() == before
        transaction.set_rollback(True)
