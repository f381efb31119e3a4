"""Changes of thousands of figures: what each look at one reads, plans and shows."""

from __future__ import annotations

import html
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.web.console.cast import H200
from tests.web.console.test_changes import BASE, LOWER, act, drafted, lead, text_of, world
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.selectors import access_of
from tidesched_web.changes import services
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.changes.selectors import with_touched
from tidesched_web.changes.services import known_plan
from tidesched_web.console import change_parts, change_words

__all__ = ["lead", "world"]
pytestmark = pytest.mark.django_db


def test_a_list_reads_of_each_change_what_it_shows_alone(world, lead) -> None:
    """Each draft may hold megabytes: the list of one's own 500 took all of them to name three objects of each."""
    client = client_of(world.admin)
    names = ["b-2", "B-1", "a", "\u00e4", "_x", "A"]
    drafted(client, {f"grant/{name}/search-training": {} for name in ("b-2", "b-1", "a", "c")})
    made = drafted(client, LOWER)
    QuotaChange.objects.filter(pk=made.pk).update(edits={f"priority-class/{name}": {} for name in names})
    with CaptureQueriesContext(
        connection,
    ) as asked:
        listed = text_of(client.get(f"{BASE}changes/"))
    assert "and 1 more" in listed
    assert "and 3 more" in listed
    found = with_touched(QuotaChange.objects.filter(pk=made.pk)).get()
    assert found.touched_first == sorted(f"priority-class/{name}" for name in names)[:3]
    read = [query["sql"] for query in asked if 'FROM "changes_quotachange"' in query["sql"]]
    assert [sql for sql in read if re.search(r'"changes_quotachange"."(edits|base|plan)"(,| FROM)', sql)] == []
    csv = client.get(f"{BASE}changes/?format=csv").content.decode("utf-8-sig").splitlines()
    assert [line.split(",")[2] for line in csv] == ["objects", "6", "4"]


def many_queues(count: int) -> dict:
    """New queues with a dozen figures each: more than `LARGE` of them, and an object of the cluster for each."""
    new = {
        "service_type": "training", "tenant": "search", "business_line": "search-training", "weight": 1,
        "priority": 40000, "reclaimable": True, "state": "Open", "cpu_milli": 1000, "memory_bytes": 2**30,
        "card_quota": {H200: 0},
    }  # fmt: skip
    return {f"queue/made-{n}": new for n in range(count)}


def rows_of(page: str) -> list[tuple[str, ...]]:
    """What the table of figures says, row by row."""
    table = page[page.index('id="fields-title"') : page.index('id="objects-title"')]
    found = []
    for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)[1:]:
        cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        found.append(tuple(" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in cells[:4]))
    return found


def test_the_page_of_a_large_change_is_bounded_and_its_parts_have_each_figure_once(world) -> None:
    """A draft of thousands of figures had a page of 819 KB."""
    client = client_of(world.admin)
    count = known_plan.LARGE // 10 + 1
    change = drafted(client, many_queues(count))
    assert known_plan.is_large(change.edits)
    url, places, seen, objects = f"{BASE}changes/{change.pk}/", [""], [], []
    for place in places:
        page = client.get(url + place).content.decode()
        assert len(page) < 400_000
        assert 0 < page.count('data-label="Field"') <= change_parts.FIGURES
        seen += rows_of(page)
        places += [html.unescape(found) for found in re.findall(r'href="(\?fields=\d+)#fields-title">Next', page)]
    assert len(places) > 5
    whole = change_words.fields_of_plan(change.plan["fields"], base=change.base, edits=change.edits)
    assert len(seen) == sum(len(one.fields) for one in whole)
    assert len({(re.search(r"made-\d+", row[0])[0], *row[1:]) for row in seen}) == len(seen)
    for place in [""] + [f"?objects={at}" for at in range(change_parts.OBJECTS, count, change_parts.OBJECTS)]:
        page = client.get(url + place).content.decode()
        found = re.findall(r'<summary><strong class="key">Queue ([\w-]+)</strong>', page)
        assert len(found) <= change_parts.OBJECTS
        objects += found
    assert sorted(objects) == sorted(f"made-{n}" for n in range(count))
    for place in ("?fields=x", "?fields=-1", "?fields=999999", "?objects=9999999999", "?fields=%00"):
        page = client.get(url + place)
        assert (page.status_code, f"1 to {change_parts.FIGURES} of" in text_of(page)) == (200, True), place


def reads_of_the_tree(client: Client, url: str) -> int:
    """How often one look at a page reads the queues of the tree."""
    with CaptureQueriesContext(connection) as asked:
        assert client.get(url).status_code == 200
    return sum('FROM "quota_cardquota"' in query["sql"] for query in asked)


def test_the_plan_of_a_large_change_is_worked_out_once_while_nothing_of_it_moves(world, lead) -> None:
    client, author = client_of(world.admin), client_of(lead)
    small, large = drafted(client, LOWER), drafted(client, {**LOWER, **many_queues(known_plan.LARGE // 10 + 1)})
    url = f"{BASE}changes/{large.pk}/"
    first = reads_of_the_tree(client, url)
    assert first > 0
    assert reads_of_the_tree(client, url) == 0, "it is the plan of before"
    assert reads_of_the_tree(client, f"{url}?fields={change_parts.FIGURES}") == 0
    assert reads_of_the_tree(client, f"/api/v1/quota-changes/{large.pk}/plan/?impact=false") == 0
    assert reads_of_the_tree(client, f"{BASE}changes/{small.pk}/") > 0, "a small one is planned at each look"
    other = drafted(client, {"queue/search-training": {"card_quota": {H200: 20}}})
    act(client, other, "apply", reason="It moved.", when="now")
    page = text_of(client.get(url))
    assert "What was changed since this draft was made" in page, "the tree moved"
    assert "24 20" in page
    services.edit_draft(change=large, access=access_of(world.admin), edits={**large.edits, "queue/made-0": None})
    assert reads_of_the_tree(client, url) > 0, "it was edited"
    assert reads_of_the_tree(author, url) > 0, "who sees another part of the cluster has a plan of their own"


def test_what_stands_beside_the_figures_is_bounded_too(world) -> None:
    client = client_of(world.admin)
    change = drafted(client, LOWER)
    note = {
        "object": "queue/search-training",
        "field": "/weight",
        "code": "x",
        "detail": "Told.",
        "before": 1,
        "after": 2,
    }
    more = change_parts.NOTES + 50
    QuotaChange.objects.filter(pk=change.pk).update(
        state=ChangeState.FAILED, plan=change.plan | {"warnings": [note] * more, "stale": [note] * more}
    )
    page = client.get(f"{BASE}changes/{change.pk}/").content.decode()
    assert page.count("Told.") == change_parts.NOTES
    assert page.count("and 50 more") == 2
