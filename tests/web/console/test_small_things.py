"""Small things of every page: what passes, what is readable, what is explained."""

from __future__ import annotations

import re

import pytest

from tests.quota_writes import ensure_tenant
from tests.web.console.test_pages import client_of
from tidesched_web.audit.models import AuditEntry
from tidesched_web.console.drift import line_of
from tidesched_web.console.help_page import EXPLAINED
from tidesched_web.console.reason_words import TITLES
from tidesched_web.quota.models import DriftLook

pytestmark = pytest.mark.django_db


def test_each_reason_has_words(world) -> None:
    assert set(EXPLAINED) == set(TITLES)
    page = client_of(world.member).get("/help/").content.decode()
    for code, words in EXPLAINED.items():
        assert f"<code>{code}</code>" in page
        assert str(words).partition("'")[0] in page


def test_what_went_well_goes_away_and_is_announced(world) -> None:
    client = client_of(world.member)
    client.post("/profile/", {"language": "en", "time_zone": "UTC"})
    page = client.get("/profile/").content.decode()
    assert re.search(r'<div data-passing\s+class="[^"]*"\s+role="status">', page)


def test_the_address_that_browsers_ask_for_the_mark_leads_to_it(client) -> None:
    answer = client.get("/favicon.ico")
    assert answer.status_code == 302
    assert answer.headers["Location"].endswith(".svg")


def test_the_cards_of_a_node_are_one_stop_for_the_keyboard(world) -> None:
    page = client_of(world.admin).get("/clusters/demo/nodes/").content.decode()
    table = page[page.index("<tbody>") : page.index("</tbody>")]
    groups, links = table.count('role="group" tabindex="0"'), re.findall(r"<a [^>]*>", table)
    assert len(links) > 3 * groups, "many cards are held"
    assert all('tabindex="-1"' in link for link in links)
    assert groups <= 2 * table.count("<tr>")


def test_the_bytes_of_an_entry_are_readable(world) -> None:
    ensure_tenant(slug="new", name="Neu", actor="tests", reason="by hand")
    entry = AuditEntry.objects.latest("id")
    page = client_of(world.auditor).get(f"/audit/{entry.pk}/").content.decode()
    assert bytes(entry.payload).decode().replace('"', "&quot;") in page, "the bytes themselves stay"
    assert f"\n  &quot;seq&quot;: {entry.seq}" in page, "and stand line by line"


def test_what_does_not_fit_stays_beside_the_grid(world) -> None:
    page = client_of(world.admin).get("/clusters/demo/quota/edit/").content.decode()
    assert re.search(r'<a class="num" id="count-errors">', page)
    assert re.search(r'<section class="[^"]*sheet-faults[^"]*" id="faults"', page)


def test_a_cluster_is_connected_from_the_switcher_and_its_commands_are_copied(world) -> None:
    page = client_of(world.admin).get("/clusters/demo/").content.decode()
    assert 'href="/new/cluster/">Connect a cluster</a>' in page
    assert "Connect a cluster" not in client_of(world.member).get("/clusters/demo/").content.decode()
    connect = client_of(world.admin).get("/new/cluster/").content.decode()
    assert 'data-copy="account-commands"' in connect
    assert '<pre class="manifest" id="account-commands"' in connect


@pytest.mark.parametrize(
    ("everything", "said"),
    [
        (True, "All objects of the cluster are as they were sent."),
        (False, "All objects that you see are as they were sent."),
    ],
)
def test_who_sees_a_part_of_the_cluster_is_told_of_that_part(everything: bool, said: str) -> None:
    assert line_of({}, DriftLook(), everything=everything) == said
