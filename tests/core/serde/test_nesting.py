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


# Read as a number of base 60, each of them would take minutes.
SIXTIES = ["a: 1" + ":1" * 200_000, "a: !!int 1" + ":1" * 200_000, "a: !!int '1" + ": 1" * 200_000 + "'"]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "- " * 100_000,
        "{a: " * 50_000,
        "? " * 50_000,
        "a: &a [*a]",
        "a: &a {b: {c: *a}}",
        BOMB,
        MERGES,
        *SIXTIES,
    ],
    ids=["flow", "block", "maps", "keys", "itself", "itself deeper", "bomb", "merges", "base 60", "tagged", "spaced"],
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


def test_more_than_one_merge_in_a_mapping_is_refused() -> None:
    """What merges them takes each out of a list: quadratic time for a text of a few megabytes."""
    for twice in (True, False):
        with pytest.raises(yaml.MarkedYAMLError, match="<< is in one mapping twice"):
            check_shape("a: &a {b: 1}\nc: {<<: *a, <<: *a}\n", twice=twice)


def test_a_reader_bounds_how_many_values_it_takes() -> None:
    check_shape("[1, 2, 3]", most=4)
    with pytest.raises(yaml.MarkedYAMLError, match="more than 4 keys and values"):
        check_shape("[1, 2, 3, 4]", most=4)
    with pytest.raises(BadInput, match="more than 200000 keys and values"):
        read_tree("[" + "0," * 250_000 + "]", Source(None))


def test_a_policy_of_more_lines_than_can_be_compared() -> None:
    with pytest.raises(BadInput, match="more than 2000 lines"):
        read_tree("#\n" * 2001 + "actions: enqueue\n", Source("p"))


def test_keys_of_a_policy_that_are_too_long_to_stand_beside_each_value() -> None:
    with pytest.raises(BadInput, match="more than 2000 characters"):
        read_tree(f"? {'k' * 2100}\n: [0, 0]\n", Source("p"))
