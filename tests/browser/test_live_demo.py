"""The whole path on the real thing: one command, and two minutes later a tide whose records agree with each other.

The pages, the session's decisions and the simulated cluster's own log of writes are three witnesses of each reclaim.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Opener, Watched
from tests.browser.demo import Demo, running
from tests.browser.journey import Place, raise_the_quota, roll_back
from tests.browser.watching import until
from tidesched_web.embedded.up import PEOPLE_FILE

TIDE_SECONDS = 120
PAGES = ["", "queues/", "gangs/", "gangs/?order=waiting", "reclaims/", "sessions/", "nodes/", "alerts/"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """`make up` with its demo cluster."""
    with running(tmp_path_factory.mktemp("demo")) as found:
        yield found


def number(watched: Watched, label: str) -> float:
    """The sum of one column of the overview's first table, whose cells begin with their number."""
    cells = watched.page.locator(f".overview-cards td[data-label='{label}']").all_inner_texts()
    return sum(float(cell.split()[0].replace(",", "")) for cell in cells)


def test_two_minutes_after_the_start_the_tide_is_there(demo: Demo, open_browser: Opener) -> None:
    watched = open_browser(demo.address)
    page = watched.page
    watched.open("/clusters/demo/")
    # The page follows by itself, without being loaded again.
    expect(page.locator("[aria-labelledby=reclaims-title] li").first).to_be_visible(timeout=TIDE_SECONDS * 1000)
    expect(page.locator("[aria-labelledby=waiting-title] li").first).to_be_visible(timeout=TIDE_SECONDS * 1000)
    watched.settle()
    for label, least in (("Inference", 50), ("Training", 50), ("Total", 300)):
        until(page, lambda label=label, least=least: number(watched, label) > least)
    for text in page.locator("[aria-labelledby=waiting-title] li p").all_inner_texts():
        assert len(text) > 20, "each gang that waits says why"
    watched.picture("live-overview-light-1440")
    watched.check()
    for path in PAGES:
        watched.open(f"/clusters/demo/{path}")
        watched.check()


def test_it_begins_with_people_and_with_something_for_each_to_do(demo: Demo, open_browser: Opener) -> None:
    told = (demo.folder / "up.log").read_text()
    people = json.loads((demo.folder / PEOPLE_FILE).read_text())
    assert [person["username"] for person in people] == ["quota-admin", "ember-admin", "auditor"]
    for person in people:
        assert re.search(rf"{person['username']} +{re.escape(person['password'])} +\({person['part']}\)", told)
    watched = open_browser(demo.address)
    page = watched.page
    watched.open("/clusters/demo/alerts/")
    for alert in (r"Queues of \w+ are promised \d+ × .*1g\.10gb", r"differ from what was sent: [1-9]"):
        expect(page.get_by_text(re.compile(alert)).first).to_be_visible(timeout=TIDE_SECONDS * 1000)
    watched.open("/waiting/")
    expect(page.locator("main")).to_contain_text("ember")
    watched.check()


def test_reclaims_agree_with_their_sessions_and_with_the_cluster(demo: Demo, open_browser: Opener) -> None:
    watched = open_browser(demo.address)
    page = watched.page
    watched.open("/clusters/demo/reclaims/?state=done")
    expect(page.locator("tbody tr").first).to_be_visible(timeout=TIDE_SECONDS * 1000)
    addresses = [str(link.get_attribute("href")) for link in page.locator("tbody th a").all()[:5]]
    receipts = []
    for address in addresses:
        watched.open(address)
        watched.check()
        pods = page.locator("[aria-labelledby=evictions-title] tbody th .key").all_inner_texts()
        states = page.locator("[aria-labelledby=evictions-title] tbody .state").all_inner_texts()
        assert pods
        assert set(states) == {"Done"}
        session = str(page.locator("[aria-labelledby=facts-title] a[href*='/sessions/']").get_attribute("href"))
        needed, freed = (
            float(text) for text in page.locator("[aria-labelledby=balance-title] .figures").all_inner_texts()[:2]
        )
        assert 0 < needed <= freed
        receipts.append((address, session, pods))
    log = demo.writes()
    # A job that starts again makes its pods under their old names, so a name alone is not one eviction.
    evicted = {
        (entry["key"], entry["session"])
        for entry in log
        if entry["verb"] == "evict" and not entry["dry_run"] and entry["code"] == 201
    }
    bound = [entry["uid"] for entry in log if entry["verb"] == "bind" and entry["code"] == 201]
    assert len(bound) == len(set(bound)), "no pod is bound twice"
    for address, session, pods in receipts:
        watched.open(session)
        decided = page.locator("[aria-labelledby=dec-title] tbody tr").filter(has_text="Evict")
        targets = decided.locator("td[data-label=Target]").all_inner_texts()
        for pod in pods:
            assert pod in targets, f"{address}: {pod} is not among the decisions of {session}"
            told = (pod, session.rstrip("/").rpartition("/")[2]) in evicted
            assert told, f"{address}: the cluster was never told of {pod}"


def test_from_a_waiting_gang_to_the_roll_back_of_a_change(demo: Demo, open_browser: Opener) -> None:
    watched = open_browser(demo.address)
    place = Place("demo", demo.ask, promised=160, sibling=12)
    roll_back(place, watched, raise_the_quota(place, watched, pictures="quota-live"))
