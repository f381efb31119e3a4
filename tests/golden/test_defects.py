"""The list of upstream's defects is complete, and every entry leads to a story in each mode or to a test."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import yaml

from tests.architecture import sources

HERE = Path(__file__).parent
LIST = yaml.load((HERE / "lists" / "defects.yaml").read_text(), yaml.CSafeLoader)
# What volcano-semantics numbers: 1.5 by row, 3.5 and 3.6 by sentence, 4.10 by letter, 7 by number.
NAMED = {
    "1.5": "1234",
    "3.5": "123456",
    "3.6": "123",
    "4.10": "abcdefghijklmn",
    "7": [str(number) for number in range(1, 21)],
}


VECTORS = yaml.load((HERE / "lists" / "vectors.yaml").read_text(), yaml.CSafeLoader)


@cache
def stories():
    return {
        f"{file.stem}: {name}": case
        for file in sorted(HERE.glob("*.yaml"))
        for name, case in yaml.load(file.read_text(), yaml.CSafeLoader)["cases"].items()
    }


def test_every_defect_is_on_the_list():
    listed = {entry.split()[0] for entry in LIST}
    assert [f"{part}/{one}" for part, ones in NAMED.items() for one in ones if f"{part}/{one}" not in listed] == []


@pytest.mark.parametrize("entry", LIST)
def test_it_is_shown_in_both_modes(entry):
    given, known = LIST[entry], stories()
    if "test" in given:
        file, _, name = given["test"].partition("::")
        assert given["why"]
        path = HERE.parents[1] / file
        assert name in sources.tests_of(path) if name else path.exists()
        return
    ours, theirs = known[given["ours"]], known[given["theirs"]]
    assert "compatibility: volcano" not in ours.get("policy", "")
    assert "compatibility: volcano" in theirs["policy"]


def test_both_stories_of_a_pair_begin_with_the_same_cluster():
    known = stories()
    for name, case in known.items():
        file, _, title = name.partition(": ")
        what, comma, _ = title.partition(", upstream:")
        if comma and file.startswith("compatibility"):
            (other,) = [o for o in known if o.startswith(f"{file}: {what}, ours:")]
            assert known[other]["cluster"] == case["cluster"], name


@pytest.mark.parametrize("entry", VECTORS)
def test_each_worked_example_is_a_story(entry):
    assert VECTORS[entry] in stories()


def test_no_vector_is_left_out():
    listed = {entry.split()[0] for entry in VECTORS}
    assert {f"9/{number}" for number in range(1, 18)} - listed == set()
