"""A change in words: its layers, fields, texts side by side, and its impact."""

from __future__ import annotations

import re

import pytest

from tests.web.console.cast import H200
from tests.web.console.test_changes import BASE, drafted, world
from tests.web.console.test_pages import client_of
from tidesched_web.console import change_words, impact_view
from tidesched_web.quota.tide import WEEKDAYS

__all__ = ["world"]
pytestmark = pytest.mark.django_db


def test_the_layers_of_a_tide_plan_are_said_in_words() -> None:
    layer = {"name": "night", "days": ["mon", "sat"], "start": "22:00", "end": "07:00"}
    layers = [
        {**layer, "quota": {"chat": {"NVIDIA-H200": {"add": -4}}, "lab": {"NVIDIA-H200": {"set": 8}}}},
        {**layer, "name": "", "days": list(WEEKDAYS), "quota": {"lab": {"NVIDIA-A100": {"add": 2}}}},
    ]
    assert change_words.figure("/layers", layers) == (
        "night, Monday, Saturday, 22:00–07:00 (chat H200 −4, lab H200 =\u00a08); "
        "layer 2, every day, 22:00–07:00 (lab A100 +2)"
    )
    assert change_words.figure("/layers", []) == change_words.figure("/exceptions", {}) == "–"
    said = change_words.figure("/exceptions", {"2027-01-01": "sun", "2027-01-02": "none"})
    assert said == "2027-01-01: Sunday, 2027-01-02: no layer begins"


def told(before: list, after: list) -> list[tuple[str, str, str]]:
    """The lines of a change that makes these layers of those."""
    fields = [{"object": "tide-plan/night", "field": "/layers", "before": before, "after": after}]
    (found,) = change_words.fields_of_plan(fields, base={"tide-plan/night": {}})
    return [(line.field, line.before, line.after) for line in found.fields]


def test_of_the_layers_of_a_tide_plan_only_what_differs_is_said() -> None:
    """The whole old and new sentence of all layers stood in one cell each."""
    night = {
        "name": "night", "days": ["mon"], "start": "22:00", "end": "07:00", "quota": {"chat": {H200: {"add": -4}}},
    }  # fmt: skip
    noon = {"name": "", "days": list(WEEKDAYS), "start": "12:00", "end": "13:00", "quota": {"lab": {H200: {"set": 8}}}}
    day = {**noon, "name": "day"}
    assert told([night, noon], [{**night, "end": "06:00"}, noon]) == [
        ("layer night: hours", "22:00–07:00", "22:00–06:00")
    ]
    more = {**night, "days": ["mon", "tue"], "quota": {"chat": {H200: {"add": -6}}, "lab": {H200: {"set": 2}}}}
    assert told([noon, night], [noon, more]) == [
        ("layer night: days", "Monday", "Monday, Tuesday"),
        ("layer night: chat H200", "−4", "−6"),
        ("layer night: lab H200", "–", "=\u00a02"),
    ]
    assert told([night], [night, day]) == [
        ("new layer day", "–", "day, every day, 12:00–13:00 (lab H200 =\u00a08)"),
    ]
    assert told([night, noon], [night]) == [
        ("layer 2 goes", "layer 2, every day, 12:00–13:00 (lab H200 =\u00a08)", "–"),
    ]
    assert told([noon], [day]) == [("layer day: name", "–", "day")]
    assert told([night, day], [day, night]) == [("order of the layers", "night, day", "day, night")]
    ended = {**night, "ended_at": "2026-01-05T23:30:00+00:00"}
    assert told([night], [ended]) == [("layer night: ended by hand", "–", "2026-01-05 23:30 UTC")]
    assert [line[0] for line in told([], [night])] == ["new layer night"]
    assert told([night, night], [night]) != []


@pytest.mark.parametrize(
    ("pointer", "words"),
    [
        ("/card_quota/NVIDIA-H200", "H200"),
        ("/card_quota/NVIDIA-H200~1mig-1g.18gb-mixed", "H200 MIG 1g.18gb"),
        ("/quota/inference/card_quota/NVIDIA-H200", "Inference: H200"),
        ("/quota/training/cpu_milli", "Training: CPU cores"),
        ("/weight", "weight"),
        ("/layers", "layers"),
        ("/something/new", "something › new"),
        ("", ""),
    ],
)
def test_pointers_are_told_in_words(pointer: str, words: str) -> None:
    assert change_words.field_name(pointer) == words


def test_what_was_not_set_is_none_beside_other_cards_and_no_limit_alone() -> None:
    field = "/quota/training/card_quota/NVIDIA-H200"
    plan = {"fields": [{"object": "tenant/a", "field": field, "before": None, "after": 4, "in_use": 0}]}
    limited = {"tenant/a": {"quota": {"training": {"card_quota": {"NVIDIA-L40S": 8}}}}}
    cases = [
        (limited, "0", "+4", "changed"),
        ({"tenant/a": {}}, "no limit", "", "changed"),  # it is less than before, by no number
        ({"tenant/a": None}, "no limit", "", "new"),
    ]
    for base, before, by, act in cases:
        (told,) = change_words.fields_of_plan(plan["fields"], base=base)
        assert (told.fields[0].before, told.fields[0].by, told.act) == (before, by, act)


def test_texts_stand_side_by_side_with_signs() -> None:
    before = [f"line {n}" for n in range(20)]
    after = [*before[:9], "new", *before[10:], "more"]
    lines = change_words.side_by_side(before, after)
    assert [line.sign for line in lines if line.sign != " "] == ["…", "~", "…", "+"]
    assert next(line for line in lines if line.sign == "~") == change_words.DiffLine("~", "line 9", "new")
    assert {line.sign for line in change_words.side_by_side([], ["a"])} == {"+"}


def test_an_impact_without_its_flood_says_so() -> None:
    known = impact_view.view_of({"counts": {}, "pending": []})
    unknown = impact_view.view_of({"counts": {}, "pending": [], "flood_unavailable": "failed"})
    assert (known.flood_unknown, unknown.flood_unknown) == (False, True)


def test_an_impact_is_told_by_what_becomes_of_gangs() -> None:
    gang = {"queue": "q", "service_type": "training", "priority": 1, "cards": {H200: 8}}
    view = impact_view.view_of(
        {
            "counts": {"gangs_run": 1, "gangs_lose": 0, "queues_over": 1, "reclaimed_next": 3},
            "hidden": {"reclaimed_next": 2},
            "gangs_run": [{**gang, "gang": "a/waits", "becomes": "running", "reason_before": None}],
            "gangs_lose": [],
            "queues_over": [
                {
                    "queue": "q",
                    "service_type": "training",
                    "resource": H200,
                    "quota_before": 8,
                    "quota": 4,
                    "in_use": 6,
                    "over": 2,
                }
            ],
            "reclaimed_next": [
                {
                    "gang": "b/falls",
                    "queue": "q",
                    "cards": {H200: 8},
                    "pods": 1,
                    "reclaimer": "a/waits",
                    "work_lost_card_seconds": 7200,
                }
            ],
            "card_hours": {
                H200: {"q": {"gained": 4.5, "lost": 0, "over": 0}, "idle": {"gained": 0, "lost": 0, "over": 0}}
            },
        }
    )
    assert view.line == "1 gang would run at once · 3 would be reclaimed · 1 queue is above its new quota"
    by_key = {section.key: section for section in view.sections}
    assert by_key["gangs_run"].entries[0].note == "runs"
    assert by_key["queues_over"].entries[0].note == "H200: 6 in use after the next session, quota 8 → 4"
    assert by_key["reclaimed_next"].entries[0].note == "for a/waits · 2 card-hours lost"
    assert by_key["reclaimed_next"].hidden == 2
    assert [row.queue for row in view.hours] == ["q"]
    assert impact_view.view_of({"counts": {}}).line == "The next session would decide the same as today"


def test_an_empty_map_that_comes_or_goes_is_no_line_beside_the_figures(world) -> None:
    client = client_of(world.admin)
    plan = {"time_zone": "UTC", "enabled": False, "position": 0, "layers": [], "exceptions": {}}
    page = client.get(f"{BASE}changes/{drafted(client, {'tide-plan/quiet': plan}).pk}/").content.decode()
    fields = re.findall(r'data-label="Field">([^<]+)</td>', page)
    assert "time zone" in fields
    assert "exceptions" not in fields, "– before, – after"
