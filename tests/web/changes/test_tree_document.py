"""Merge patches over documents: laws that hold for any maps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidesched_web.changes.documents import canonical
from tidesched_web.changes.tree_document import (
    changed_since,
    differences,
    inverse,
    merge_patch,
    merged,
    parts_of,
    patch_between,
    pointer,
)

LEAVES = st.one_of(st.integers(-3, 3), st.booleans(), st.sampled_from(("", "a")), st.lists(st.integers(), max_size=2))
DOCUMENTS = st.recursive(
    st.dictionaries(st.sampled_from("abc"), LEAVES, max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), st.one_of(LEAVES, inner), max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(("queue/x", "queue/y", "tenant/t", "project/t/p"))
TREES = st.dictionaries(KEYS, DOCUMENTS)


@given(TREES, TREES)
def test_the_patch_between_two_maps_leads_from_one_to_the_other_and_back(before, after):
    patch = patch_between(before, after)
    assert merged(before, patch) == after
    assert merged(after, inverse(before, after, {*before, *after})) == before
    assert (patch == {}) == (before == after)


@given(TREES, TREES)
def test_differences_are_none_for_equal_maps_only(before, after):
    found = differences(before, after)
    assert {difference.object for difference in found} == {
        key for key in {*before, *after} if before.get(key) != after.get(key)
    }
    assert changed_since({key: before.get(key) for key in {*before, *after}}, after) == found


@given(DOCUMENTS, DOCUMENTS, DOCUMENTS)
def test_a_patch_twice_is_the_patch_once_and_touches_nothing_else(document, patch, other):
    once = merge_patch(document, patch)
    assert merge_patch(once, patch) == once
    assert merged({"queue/o": other}, {"queue/x": patch})["queue/o"] is other


def test_rfc_7386_by_its_own_examples():
    for target, patch, result in (
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ):
        assert merge_patch(target, patch) == result


def test_keys_and_pointers():
    assert parts_of("card-type/NVIDIA-H200/mig-1g.18gb") == ("NVIDIA-H200/mig-1g.18gb",)
    assert parts_of("business-line/-/base") == ("-", "base")
    assert pointer("edits", "queue/a~b") == "/edits/queue~1a~0b"


@given(st.dictionaries(st.sampled_from(("service_type", "weight", "card_quota", "memory_bytes", "state", "x")), LEAVES))
def test_canonical_is_stable_and_never_fails(document):
    form, faults = canonical("queue/x", document)
    if not faults:
        assert canonical("queue/x", form) == (form, [])
