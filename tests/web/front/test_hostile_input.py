"""Input that is made to hurt: each is refused with a 4xx that names the limit, and nothing of it is kept."""

from __future__ import annotations

import json
import re
import sys

import pytest

from tests.web.console import world as story
from tests.web.console.test_pages import client_of
from tidesched_web.changes import tree_csv
from tidesched_web.changes.models import QuotaChange

pytestmark = pytest.mark.django_db
TREE = "/clusters/demo/tree/"
EDITOR = "/clusters/demo/quota/edit/"


@pytest.fixture
def world() -> story.World:
    return story.full()


def deep(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def in_depth(levels: int) -> str:
    return '{"queue/search-rank-inference":{"card_quota":' + deep(levels) + "}}"


@pytest.mark.parametrize("levels", [99, 900, 5000, 100_000])
def test_json_nested_too_deep_is_never_kept(world, levels):
    client = client_of(world.admin)
    form = client.post(f"{EDITOR}review/", {"edits": in_depth(levels)}, follow=True)
    assert form.status_code == 200
    checked = client.post(f"{EDITOR}check/", in_depth(levels), content_type="application/json")
    assert checked.json()["errors"]
    body = f'{{"cluster":"demo","reason":"x","edits":{in_depth(levels)}}}'
    answer = client.post("/api/v1/quota-changes/", body, content_type="application/json")
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    assert "100 deep" in answer.json()["detail"]
    assert QuotaChange.objects.count() == 0


def test_numbers_of_thousands_of_digits(world):
    client = client_of(world.admin)
    number = "9" * 5000
    edits = f'{{"queue/search-rank-inference":{{"weight":{number}}}}}'
    assert client.post(f"{EDITOR}check/", edits, content_type="application/json").json()["errors"]
    assert client.post(f"{EDITOR}review/", {"edits": edits}, follow=True).status_code == 200
    body = f'{{"cluster":"demo","reason":"x","edits":{edits}}}'
    answer = client.post("/api/v1/quota-changes/", body, content_type="application/json")
    assert answer.status_code == 400
    assert str(sys.get_int_max_str_digits()) in answer.json()["detail"]
    for kind, text in (
        ("csv", f"queue,weight\r\nsearch-rank-inference,{number}\r\n"),
        ("yaml", f"format: 1\nqueues:\n  search-rank-inference:\n    weight: {number}\n"),
    ):
        page = client.post(TREE, {"text": text, "format": kind, "act": "compare"})
        assert page.status_code == 400, kind
    assert QuotaChange.objects.count() == 0


@pytest.mark.parametrize(
    "text",
    [
        "queue" + ",'" * 12_000 + "\n",
        '"' * 200_001,
        "queue,weight\n" + "a\n" * 60_000,
        "queue" + ",x" * 1_200,
        "queue;" + "x" * 1_000_000,
    ],
    ids=["quotes and commas", "only quotes", "many lines", "many columns", "a long name"],
)
def test_a_table_that_is_no_table(world, text):
    page = client_of(world.admin).post(TREE, {"text": text, "format": "csv", "act": "compare"})
    assert page.status_code == 400


def test_no_guessing_at_the_separator():
    """The standard library's guess takes quadratic time and stops every thread meanwhile."""
    assert not hasattr(tree_csv.csv, "Sniffer") or "Sniffer" not in tree_csv.loads.__code__.co_names


@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_each_separator_is_read(world, sign):
    text = sign.join(("queue", "weight")) + "\n" + sign.join(("search-rank-inference", "7")) + "\n"
    page = client_of(world.admin).post(TREE, {"text": text, "format": "csv", "act": "compare"})
    assert "search-rank-inference" in page.content.decode()
    assert page.status_code == 200


def test_a_form_over_its_limit_is_a_413(world, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    client = client_of(world.admin)
    client.raise_request_exception = False
    page = client.post(
        TREE, {"text": "x" * 2000, "format": "csv", "act": "compare"}, "application/x-www-form-urlencoded"
    )
    assert page.status_code in (400, 413)
    answer = client.post("/api/v1/quota-changes/", json.dumps({"x": "y" * 2000}), content_type="application/json")
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("size", [1000, 5000])
def test_a_form_whose_field_has_too_long_a_name_is_refused_with_the_limit(world, size):
    page = client_of(world.admin).post(TREE, {"x" * size: "1", "text": "format: 1\n", "act": "compare"})
    assert page.status_code == 400
    assert re.search(r'role="alert">[^<]*the name of a field or of a file, may have 1024 bytes', page.content.decode())
