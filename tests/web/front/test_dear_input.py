"""Input of the largest size that is made to be dear: its size bounds what it costs, counted in steps, not in time."""

from __future__ import annotations

import difflib
import json

import pytest
from rest_framework.exceptions import ParseError

from tests.web.console import world as story
from tests.web.console.cast import H200
from tests.web.console.test_pages import client_of
from tidesched_web.api.parsers import _each_once
from tidesched_web.changes import tree_file
from tidesched_web.changes.documents import MOST_CARD_TYPES
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.tree_document import LONGEST_KEY, _short
from tidesched_web.common.errors import MOST_ERRORS, DomainError
from tidesched_web.common.hints import MOST_HINTS, MOST_UNKNOWN, Shown
from tidesched_web.common.plain_json import LONGEST_PATH, check_plain
from tidesched_web.console.change_parts import FIGURES

TREE = "/clusters/demo/tree/"
EDITOR = "/clusters/demo/quota/edit/"
CHANGES = "/api/v1/quota-changes/"
BODY = 4_194_304
MANY = 20_000
QUEUE = "queue/search-rank-inference"


class Counted(str):
    """A text that counts what is done with it."""

    __slots__ = ()
    steps = 0

    def __eq__(self, other: object) -> bool:
        Counted.steps += 1
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        Counted.steps += 1
        return str.__hash__(self)

    def __format__(self, spec: str) -> str:
        Counted.steps += 1
        return str.__format__(self, spec)

    def __add__(self, other: str) -> str:
        Counted.steps += 1
        return str.__add__(self, other)


@pytest.fixture
def steps():
    Counted.steps = 0
    return lambda: Counted.steps


@pytest.fixture
def compared(monkeypatch):
    """How many names were compared with how many known ones, letter by letter."""
    found: list[int] = []
    real = difflib.get_close_matches

    def counted(word, possibilities, *args, **kwargs):
        names = list(possibilities)
        found.append(len(names))
        return real(word, names, *args, **kwargs)

    monkeypatch.setattr(difflib, "get_close_matches", counted)
    return found


@pytest.fixture
def world(db) -> story.World:
    return story.full()


def post(client, body, address=CHANGES):
    text = body if isinstance(body, str) else json.dumps(body)
    assert len(text) <= BODY
    return client.post(address, text, content_type="application/json")


def edits_of(**named):
    return {"cluster": "demo", "reason": "many", "edits": named}


def test_a_member_twice_is_found_in_one_walk(steps):
    members = [(Counted(f"n{number}"), 0) for number in range(5000)]
    with pytest.raises(ParseError, match="n4999"):
        _each_once([*members, (Counted("n4999"), 0)])
    assert steps() < 10 * len(members)


def test_the_place_of_a_value_is_written_only_where_it_is_refused(steps):
    check_plain([[0] * 1000] * 100, Counted("/at"))
    assert steps() == 0
    with pytest.raises(DomainError) as refused:
        check_plain({"a/b": [0, {"c": "\0"}]}, Counted("/at"))
    assert refused.value.extra["errors"][0]["pointer"] == "/at/a~1b/1/c"
    assert steps() == 1


def test_a_body_of_the_largest_size_with_a_member_twice(world):
    names = "".join(f'"{number:x}":0,' for number in range(450_000))
    answer = post(client_of(world.admin), f"{{{names[: BODY - 20]}".rpartition(",")[0] + ',"0":0}', "/api/v1/tokens/")
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed_body")
    assert "'0' is there more than once" in answer.json()["detail"]


@pytest.mark.parametrize("length", [LONGEST_PATH + 1, 2_000_000])
def test_a_name_too_long_to_be_written_beside_each_value_is_refused(world, length):
    client = client_of(world.admin)
    edits = {"queue/x": {"A" * length: [0] * ((BODY - length - 200) // 4)}}
    answer = post(client, {"cluster": "demo", "edits": edits})
    assert (answer.status_code, str(LONGEST_PATH) in answer.json()["detail"]) == (400, True)
    assert len(answer.content) < 2000
    for said in (
        post(client, edits, f"{EDITOR}check/").json()["errors"][0]["detail"],
        client.post(f"{EDITOR}review/", {"edits": json.dumps(edits)}, follow=True).content.decode(),
    ):
        assert str(LONGEST_PATH) in said
    assert QuotaChange.objects.count() == 0


def test_a_key_longer_than_any_name_is_refused_and_not_remembered(world):
    before = _short.cache_info().currsize
    answer = post(client_of(world.admin), edits_of(**{"queue/" + "x" * LONGEST_KEY: {"weight": 1}}))
    assert (answer.status_code, f"at most {LONGEST_KEY} characters" in answer.json()["detail"]) == (400, True)
    assert _short.cache_info().currsize <= before + 2


def test_a_list_longer_than_its_bound_is_not_gone_through(world):
    answer = post(client_of(world.admin), {"scopes": ["x"] * 100_000}, "/api/v1/tokens/")
    assert [error["detail"] for error in answer.json()["errors"]] == ["At most 20 entries; here are 100000."]


def test_of_unknown_members_of_a_body_the_first_are_named(world):
    members = {f"member-{number}": 1 for number in range(80_000)}
    refused = post(client_of(world.admin), members, "/api/v1/tokens/")
    assert (refused.status_code, len(refused.json()["errors"])) == (400, 1)
    assert "'member-0'" in refused.json()["detail"]
    assert "79999 more are not known" in refused.json()["detail"]


def test_hints_are_given_for_the_first_faults_of_a_change_alone(world, compared):
    """Each name is compared letter by letter with all known ones, under the lock of the tree."""
    client = client_of(world.admin)
    edits = {f"grant/ns-{number}/serch-rank-{number}": {} for number in range(MANY)}
    answer = post(client, edits, f"{EDITOR}check/").json()
    assert (len(answer["errors"]), answer["more_errors"]) == (MOST_ERRORS, MANY - MOST_ERRORS)
    assert "Did you mean" in answer["errors"][0]["detail"]
    assert "Did you mean" not in answer["errors"][-1]["detail"]
    assert len(compared) <= MOST_HINTS


def test_a_refusal_names_the_first_faults_and_counts_the_others(world, compared):
    client = client_of(world.admin)
    made = post(client, edits_of(**{f"grant/ns-{number}/serch-rank-{number}": {} for number in range(500)}))
    assert (made.status_code, made.json()["state"]) == (201, "draft")
    applied = post(client, {"reason": "many"}, f"{CHANGES}{made.json()['id']}/apply/")
    assert applied.status_code in (400, 428)
    page = client.get(f"/clusters/demo/changes/{made.json()['id']}/").content.decode()
    assert f"and {500 - MOST_ERRORS} more" in page
    compared.clear()
    etag = f'"{made.json()["version"]}"'
    refused = client.post(
        f"{CHANGES}{made.json()['id']}/apply/", "{}", content_type="application/json", headers={"If-Match": etag}
    )
    assert (refused.status_code, refused.json()["code"]) == (400, "against_rules")
    assert (len(refused.json()["errors"]), refused.json()["more_errors"]) == (MOST_ERRORS, 500 - MOST_ERRORS)
    assert len(compared) <= MOST_HINTS


@pytest.mark.parametrize("key", [QUEUE, "tide-plan/nights"])
def test_of_unknown_fields_the_first_are_named(world, compared, key):
    fields = {f"weigth{number}": 1 for number in range(MANY)}
    answer = post(client_of(world.admin), edits_of(**{key: fields}))
    assert (answer.status_code, len(answer.json()["errors"])) == (400, MOST_UNKNOWN + 1)
    assert answer.json()["errors"][-1]["detail"] == f"{MANY - MOST_UNKNOWN} more fields are not known."
    assert len(compared) <= MOST_HINTS


def test_unknown_cards_are_compared_for_the_first_of_them(world, compared):
    edits = {QUEUE: {"card_quota": {f"NVIDA-H{number}": 1 for number in range(900)}}}
    answer = post(client_of(world.admin), edits, f"{EDITOR}check/").json()
    assert (len(answer["errors"]), answer["more_errors"]) == (MOST_ERRORS, 900 - MOST_ERRORS)
    assert len(compared) <= MOST_HINTS


@pytest.mark.parametrize("key", [QUEUE, "tenant/search"])
def test_a_quota_of_more_cards_than_any_cluster_has_is_refused_and_not_kept(world, key):
    """A draft with 80,000 cards of one queue was accepted; its page then held a web process for minutes."""
    cards = {"card_quota": {f"card-{number}": 1 for number in range(MOST_CARD_TYPES + 1)}}
    edits = {key: cards if key == QUEUE else {"quota": {"training": cards}}}
    answer = post(client_of(world.admin), edits_of(**edits))
    assert (answer.status_code, QuotaChange.objects.count()) == (400, 0)
    assert f"At most {MOST_CARD_TYPES} entries" in answer.json()["detail"]


def test_the_page_of_a_change_shows_its_figures_in_parts(world):
    queues = ("search-rank-inference", "search-training")
    cards = {"card_quota": {f"card-{number}": 1 for number in range(FIGURES - 50)}}
    client, count = client_of(world.admin), 2 * (FIGURES - 50)
    made = post(client, edits_of(**{f"queue/{name}": cards for name in queues})).json()
    page = client.get(f"/clusters/demo/changes/{made['id']}/").content.decode()
    assert page.count('data-label="Field"') == FIGURES
    assert f"1 to {FIGURES} of {count}" in page
    assert f"/api/v1/quota-changes/{made['id']}/plan/" in page
    page = client.get(f"/clusters/demo/changes/{made['id']}/?fields={FIGURES}").content.decode()
    assert page.count('data-label="Field"') == count - FIGURES
    assert f"{FIGURES + 1} to {count} of {count}" in page


def test_a_number_of_thousands_of_digits_is_said_by_its_size():
    assert f"{Shown(10**5000)!r} {Shown({'a': -(10**5000)})!r} {Shown(12)!r}" == "10^4983 {'a': -10^4983} 12"


def test_a_tree_file_with_thousands_of_faults(world, compared):
    text = "format: 1\nqueues:\n" + "".join(
        f"  wrong-{number}: {{service_type: training, weigth: 1}}\n" for number in range(2000)
    )
    page = client_of(world.admin).post(TREE, {"text": text, "format": "yaml", "act": "compare"})
    assert page.status_code == 400
    assert f"and {2000 - MOST_ERRORS:,} more" in page.content.decode()
    assert len(compared) <= MOST_HINTS


@pytest.mark.parametrize(("bound", "text"), [("MOST_OBJECTS", "10"), ("MOST_VALUES", "10")])
def test_a_tree_file_larger_than_any_tree(world, monkeypatch, bound, text):
    monkeypatch.setattr(tree_file, bound, int(text))
    lines = "".join(f"  ns-{number}/search-rank-inference: {{}}\n" for number in range(30))
    page = client_of(world.admin).post(
        TREE, {"text": f"format: 1\ngrants:\n{lines}", "format": "yaml", "act": "compare"}
    )
    assert (page.status_code, f" {text} " in page.content.decode()) == (400, True)


def test_a_cluster_has_a_bounded_number_of_tide_plans(world, monkeypatch):
    monkeypatch.setattr("tidesched_web.changes.tree_references.MOST_PLANS", 3)
    plans = {f"tide-plan/p{number}": {"enabled": True} for number in range(50)}
    answer = post(client_of(world.admin), plans, f"{EDITOR}check/").json()
    assert len(answer["errors"]) == 1
    assert "at most 3 tide plans" in answer["errors"][0]["detail"]


def test_the_layers_that_are_switched_on_are_bounded_together(world, monkeypatch):
    monkeypatch.setattr("tidesched_web.changes.tree_references.MOST_LAYERS_ON", 3)
    layers = [
        {"days": ["mon"], "start": f"{hour:02}:00", "end": "23:00", "quota": {"search-training": {H200: {"add": -1}}}}
        for hour in range(2)
    ]
    plans = {f"tide-plan/p{number}": {"enabled": True, "layers": layers} for number in range(2)}
    client = client_of(world.admin)
    errors = post(client, plans, f"{EDITOR}check/").json()["errors"]
    assert [error["code"] for error in errors] == ["invalid"]
    assert "at most 3 layers together; with this change they would have 4" in errors[0]["detail"]
    plans["tide-plan/p1"]["enabled"] = False
    said = post(client, plans, f"{EDITOR}check/").json()["errors"]
    assert not any("layers together" in error["detail"] for error in said)
