"""Reclaims: the receipt of one, and what of it each reader sees."""

from __future__ import annotations

import pytest

from tests.web.console import world as story
from tests.web.console.cast import H200
from tests.web.console.test_pages import client_of
from tidesched_web.audit import services as audit

RANK = "search/rank-v8"


pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> story.World:
    return story.full()


def _mine(world):
    return next(row for row in world.reclaims if row.reclaimer == RANK)


def _page(world, who) -> str:
    return client_of(who).get(f"/clusters/demo/reclaims/{_mine(world).pk}/").content.decode()


def test_the_page_shows_quota_and_use_at_that_moment_and_what_each_gang_would_have_cost(world) -> None:
    page = _page(world, world.auditor)
    for said in (
        "Was it within the quota at that moment?", "gains within its quota", "gives back", "base 32",
        "Why these gangs and no cheaper ones?", "search/embed-lap2-007", "foundation/base-lap2-001",
        "eviction would not make enough room", "37 more gangs came into question.",
    ):  # fmt: skip
        assert said in page, said
    costs = page[page.index("Why these gangs") :]
    order = ["foundation/base-lap2-001", "research/llm-pretrain-lap2-003", "search/embed-lap2-007"]
    assert sorted(order, key=costs.index) == order, "the cheapest first, the one that fell among them"


def test_a_reader_of_one_side_sees_that_sides_numbers_alone(world) -> None:
    gainer, loser = _page(world, world.member), _page(world, world.stranger)
    assert "gains within its quota" in gainer
    assert "gives back" not in gainer
    assert "gives back" in loser
    assert "gains within its quota" not in loser
    for page in (gainer, loser):
        assert "37 more gangs" not in page
        assert "foundation/base-lap2-001" not in page


def test_rest_gives_the_receipt_within_sight(world) -> None:
    def document(who):
        return client_of(who).get(f"/api/v1/reclaims/{_mine(world).pk}/").json()

    whole, own = document(world.auditor), document(world.member)
    assert [row["queue"] for row in whole["queues"]] == ["search-rank-inference", "research-training"]
    assert whole["queues"][0] == {
        "queue": "search-rank-inference", "base": {H200: 32}, "plans": [], "quota": {H200: 40},
        "before": {"cpu_milli": 0, "memory_bytes": 0, "cards": {H200: 12}},
        "after": {"cpu_milli": 0, "memory_bytes": 0, "cards": {H200: 16}},
    }  # fmt: skip
    assert [one["gang"] for one in whole["candidates"]] == ["foundation/base-lap2-001", "search/embed-lap2-007"]
    assert (whole["more_candidates"], whole["victims"][0]["queue_priority"]) == (37, 20000)
    assert [row["queue"] for row in own["queues"]] == ["search-rank-inference"]
    assert [one["gang"] for one in own["candidates"]] == ["search/embed-lap2-007"]
    assert (own["more_candidates"], own["freed"], own["victims"][0]["priority"]) == (None, None, None)


def test_the_audit_entry_shows_the_same_and_names_no_gang_of_others_to_who_sees_both_sides(world) -> None:
    row = _mine(world)
    both = sorted({world.queues["search-rank-inference"].tenant_id, world.queues["search-training"].tenant_id})
    after = {"session": 1, **row.receipt, "victims": []}
    entry = audit.append(
        chain=audit.cluster_chain(world.cluster.pk), actor="scheduler", action="reclaim.decide", object_type="reclaim",
        object_id=row.pk, object_label=row.reclaimer, cluster_id=world.cluster.pk, tenant_ids=both, after=after,
    )  # fmt: skip
    whole = client_of(world.auditor).get(f"/audit/{entry.pk}/").content.decode()
    for said in ("Was it within the quota at that moment?", "foundation/base-lap2-001", "37 more gangs"):
        assert said in whole, said
    for address in (f"/audit/{entry.pk}/", f"/api/v1/audit/{entry.pk}/"):
        page = client_of(world.member).get(address).content.decode()
        assert "search-rank-inference" in page
        assert "foundation/base-lap2-001" not in page


def test_what_one_victim_had_is_not_told_by_what_was_freed(world) -> None:
    """The tenant that gained took 8 cards from one gang of another tenant, for the 4 that it needed."""
    assert "8 × H200" in _page(world, world.auditor)
    page = _page(world, world.member)
    assert "4 × H200" in page
    assert "8 × H200" not in page
