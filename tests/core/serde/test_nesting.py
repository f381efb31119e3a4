"""Texts that end a process, or fill its memory, are refused before anything is built of them."""

from __future__ import annotations

from itertools import pairwise

import pytest
import yaml

from scheduler_core.model.errors import BadInput
from scheduler_core.serde.nesting import MOST_DEEP, check_shape
from scheduler_core.serde.policy.tree import Source, read_tree
from scheduler_core.serde.text import load_documents

LEVELS = "abcdefghij"
BOMB = "a: &a [1]\n" + "".join(
    f"{here}: &{here} [{', '.join([f'*{below}'] * 9)}]\n" for below, here in pairwise(LEVELS)
)
MERGES = "a: &a {k: 1}\n" + "".join(
    f"{here}: &{here} {{<<: [{', '.join([f'*{below}'] * 9)}]}}\n" for below, here in pairwise(LEVELS)
)


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "- " * 100_000, "{a: " * 50_000, "? " * 50_000, "a: &a [*a]", "a: &a {b: {c: *a}}", BOMB, MERGES],
    ids=["flow", "block", "maps", "keys", "itself", "itself deeper", "bomb", "merges"],
)
def test_hostile_shapes_are_refused_with_their_place(text: str) -> None:
    with pytest.raises(yaml.MarkedYAMLError):
        check_shape(text)
    with pytest.raises(BadInput):
        load_documents("x: 1\n---\n" + text if text.startswith("a") else text, None)
    with pytest.raises(BadInput):
        read_tree(text, Source(None))


@pytest.mark.parametrize("text", ['{"a":' * 2000, "a: !!timestamp soon", "a: !!int ''", "a: !!bool soon", "a: \ud800"])
def test_other_texts_that_no_reader_takes_are_bad_input(text: str) -> None:
    with pytest.raises(BadInput):
        load_documents(text, None)


def test_a_policy_with_a_value_that_its_tag_cannot_be_is_bad_input() -> None:
    with pytest.raises(BadInput):
        read_tree("a: !!bool soon", Source(None))


def test_ordinary_aliases_and_depths_pass() -> None:
    check_shape("a: &a {b: 1}\nc: {<<: *a}\nd: [*a, *a]\n---\na: &a 1\nb: *a\n")
    check_shape("[" * MOST_DEEP + "]" * MOST_DEEP)
    assert load_documents("a: &a {b: 1}\nc: {<<: *a}\n", None) == [{"a": {"b": 1}, "c": {"b": 1}}]
