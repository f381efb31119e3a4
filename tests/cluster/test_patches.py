"""Merge patches and field ownership, without a server."""

from __future__ import annotations

from typing import Any

import pytest

from tidesched_web.simcluster.field_ownership import FieldConflict, apply, leaves, record_update
from tidesched_web.simcluster.patching import merge_patch


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [  # RFC 7396, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patches_are_those_of_the_rfc(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


def managers(obj: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(e["manager"], e["operation"]): e["fieldsV1"] for e in obj["metadata"].get("managedFields", [])}


def test_a_field_goes_when_its_only_owner_gives_it_up() -> None:
    one = apply(None, {"metadata": {"name": "q"}, "spec": {"a": 1, "b": {"c": 2}}}, "x", "t0", force=False)
    both = apply(one, {"metadata": {"name": "q"}, "spec": {"a": 1}}, "y", "t1", force=False)
    left = apply(both, {"metadata": {"name": "q"}, "spec": {"z": 1}}, "x", "t2", force=False)
    assert left["spec"] == {"a": 1, "z": 1}
    assert managers(left)["y", "Apply"] == {"f:spec": {"f:a": {}}}


def test_who_changes_a_field_by_an_update_owns_it() -> None:
    one = apply(None, {"metadata": {"name": "q"}, "spec": {"a": 1, "b": 2}}, "x", "t0", force=False)
    changed = {**one, "metadata": dict(one["metadata"]), "spec": {"a": 5, "b": 2}}
    record_update(changed, one, "kubectl", "t1")
    assert managers(changed) == {
        ("x", "Apply"): {"f:spec": {"f:b": {}}},
        ("kubectl", "Update"): {"f:spec": {"f:a": {}}},
    }
    with pytest.raises(FieldConflict) as caught:
        apply(changed, {"metadata": {"name": "q"}, "spec": {"a": 1, "b": 2}}, "x", "t2", force=False)
    assert [cause["field"] for cause in caught.value.causes] == [".spec.a"]
    taken = apply(changed, {"metadata": {"name": "q"}, "spec": {"a": 1, "b": 2}}, "x", "t2", force=True)
    assert taken["spec"]["a"] == 1
    assert ("kubectl", "Update") not in managers(taken)


def test_nobody_owns_what_is_the_servers() -> None:
    obj = {"kind": "Queue", "metadata": {"name": "q", "uid": "u", "labels": {"a": "b"}}, "spec": {"l": [], "m": {}}}
    assert leaves(obj) == {("metadata", "labels", "a"): "b", ("spec", "l"): [], ("spec", "m"): {}}
