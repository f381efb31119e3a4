"""Editions: each is what a sorted dict would be, and the steps between two lead from the one to the other."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.model.edition import Edition, Series, Step, step_between
from scheduler_core.model.journal import Journal
from scheduler_core.model.queue import Queue

changes = st.dictionaries(
    st.sampled_from([f"k{i:02}" for i in range(40)]), st.one_of(st.none(), st.integers(0, 9)), max_size=12
)


def follow(before: list[tuple[str, object]], steps: list[Step]) -> list[tuple[str, object]]:
    """The list after the steps, done the naive way."""
    pairs = list(before)
    for step in steps:
        for at, key in reversed(step.removed):
            assert pairs.pop(at)[0] == key
        for at, key, value in step.added:
            pairs.insert(at, (key, value))
        for at, key, value in step.changed:
            assert pairs[at][0] == key
            pairs[at] = (key, value)
    return pairs


@given(st.lists(changes, max_size=8))
@settings(max_examples=200, deadline=None)
def test_an_edition_is_what_a_sorted_dict_would_be_and_steps_lead_to_it(rounds):
    series: Series[str] = Series()
    expected: dict[str, str] = {f"k{i:02}": f"start {i}" for i in range(0, 40, 2)}
    series.change(expected)
    history = [(series.edition, sorted(expected.items()))]
    for round_ in rounds:
        for key, value in round_.items():
            if value is None:
                expected.pop(key, None)
            else:
                expected[key] = f"{key} {value} {len(history)}"
        now = series.change({key: expected.get(key) for key in round_})
        assert list(now) == [value for _, value in sorted(expected.items())]
        for before, pairs in history:
            steps = now.steps_since(before)
            if steps is not None:
                assert follow(pairs, steps) == sorted(expected.items())
        history.append((now, sorted(expected.items())))


@given(st.lists(changes, max_size=8))
@settings(max_examples=200, deadline=None)
def test_a_journal_is_what_a_sorted_dict_would_be_and_knows_what_it_was_told(rounds):
    journal: Journal[str] = Journal()
    expected: dict[str, str] = {}
    history = []
    for turn, round_ in enumerate([{f"k{i:02}": i for i in range(0, 40, 2)}, *rounds]):
        for key, value in round_.items():
            if value is None:
                expected.pop(key, None)
            else:
                expected[key] = f"{key} {value} {turn}"
            journal.note(key, expected.get(key), f"remark {turn}")
        now = journal.next()
        assert list(now) == [value for _, value in sorted(expected.items())]
        assert len(now) == len(expected)
        for before, values in history:
            found = now.changes_since(before)
            if found is not None:
                after = {**values, **found[0]}
                assert {key: value for key, value in after.items() if value is not None} == expected
                assert found[0].keys() == found[1].keys()
        history.append((now, dict(expected)))
    assert history[-1][0].changes_since(history[-1][0]) == ({}, {})


def test_a_journal_that_is_told_nothing_gives_the_very_same_edition():
    journal: Journal[str] = Journal()
    journal.note("a", "1")
    one = journal.next()
    assert journal.next() is one
    for number in range(500):
        journal.note(f"b{number:03}", str(number))
    two = journal.next()
    assert len(two) == 501
    assert one == ("1",)
    found = two.changes_since(one)
    assert found is not None
    assert len(found[0]) == 500


def test_no_change_is_the_very_same_edition():
    series: Series[str] = Series()
    one = series.change({"a": "1", "b": "2"})
    assert series.change({"c": None}) is one
    assert series.change({}) is one
    assert series.change({"a": one[0]}) is one
    assert one == ("1", "2")


def test_editions_of_others_and_plain_tuples_are_strangers():
    one, two = Series[str](), Series[str]()
    first = one.change({"a": "1"})
    assert isinstance(first, Edition)
    assert two.change({"a": "1"}).steps_since(first) is None
    assert first.steps_since(("1",)) is None
    assert first.steps_since(first) == []


def test_only_the_last_steps_are_kept():
    series: Series[str] = Series()
    first = series.change({f"k{i:03}": str(i) for i in range(100)})
    for turn in range(60):
        last = series.change({f"k{turn:03}": f"again {turn}"})
    assert last.steps_since(first) is None
    assert sum(1 for _ in series._steps) <= 60


def test_plain_lists_are_compared_by_the_very_objects():
    a, b, c, d = (Queue(name=name) for name in "abcd")
    other = Queue(name="b")
    assert step_between((a, b, c), (a, other, d), ["a", "b", "c"]) == Step(
        [(1, "b"), (2, "c")], [(1, "b", other), (2, "d", d)]
    )
    assert step_between((a, b), (b, a), ["a", "b"]) is None
