"""The auditor: "who took these cards, and was it allowed?", from the list of reclaims to the chain that holds."""

from __future__ import annotations

import random
import re
import time
from typing import Any

from tests.crew.book import TAKEN_BACK
from tests.crew.browsers import Browser, browser_of
from tests.crew.ledger import UNEXPECTED
from tests.crew.platform import name_faults
from tests.crew.scene import SLUG, Scene, until
from tests.crew.web_client import WebClient, needed

SETTLE_SECONDS = 45.0


def evicted(scene: Scene, since: float) -> dict[str, str]:
    """Pod → the session that evicted it, by the cluster's own log."""
    return {
        row["key"]: str(row["session"])
        for row in scene.cluster.writes()
        if row["wall"] >= since
        and row["resource"].endswith("pods/eviction")
        and row["code"] < 300
        and not row["dry_run"]
    }


def compare(scene: Scene, row: dict[str, Any], where: str) -> None:
    """A receipt says who lost which pods to whom; the cluster was told to evict these pods, by that session."""
    pods = [pod for victim in row["victims"] for pod in victim["pods"] or ()]
    said = f"{row['reclaimer']} took {pods} in session {row['session']['number']} ({row['rule'][:60]})"
    promise = scene.book.promise(TAKEN_BACK, where, said, time.time())
    told: dict[str, str] = {}

    def all_told() -> bool:
        name_faults(scene, promise)
        told.update(evicted(scene, 0.0))
        return all(pod in told for pod in pods)

    kept = bool(until(all_told, seconds=SETTLE_SECONDS, every=3))
    missing = [pod for pod in pods if pod not in told]
    came = f"the cluster was not told to evict {missing}" if missing else "the cluster was told to evict each of them"
    scene.book.check(promise, kept=kept and bool(pods), came=came, at=time.time())


def look_at(browser: Browser, client: WebClient, scene: Scene, row: dict[str, Any]) -> None:
    """The page of one reclaim says the same as REST, and leads to its entry in the audit log."""
    page = browser.page
    browser.open(f"/clusters/{SLUG}/reclaims/{row['id']}/")
    text = page.locator("main, .page-body").first.inner_text()
    missing = [name for name in [row["reclaimer"], *(one["gang"] for one in row["victims"])] if name not in text]
    if missing:
        scene.ledger.trouble(UNEXPECTED, browser.person, page.url, f"the page of the reclaim does not name {missing}")
    if row["audit_entry"]:
        browser.open(f"/audit/{row['audit_entry']}/")
        entry = page.locator("main, .page-body").first.inner_text()
        if row["reclaimer"] not in entry:
            scene.ledger.trouble(UNEXPECTED, browser.person, page.url, f"the entry does not name {row['reclaimer']}")


def verify(browser: Browser, scene: Scene) -> None:
    """The page of the chains, verified now: none of them is broken."""
    page = browser.page
    browser.open("/audit/integrity/")
    page.get_by_role("button", name="Verify now").click()
    page.wait_for_load_state("load")

    def done() -> bool:
        browser.open("/audit/integrity/")
        return "asked for, not done yet" not in page.locator(".page-body").inner_text()

    if not until(done, seconds=120, every=5):
        scene.note("the chains were not verified within 120 s")
    states = page.locator("td[data-label=State]").all_inner_texts()
    if any(re.search(r"entry [\d,]+:", text) for text in states):
        scene.ledger.trouble(UNEXPECTED, browser.person, page.url, f"the audit log does not hold: {states}")


def work(scene: Scene, person: str) -> None:
    """A question after the other until the end; now and then the chains."""
    choice = random.Random(person)
    client = scene.client(f"{person} (REST)")
    seen: set[int] = set()
    with browser_of(scene, person) as browser:
        number = 0
        while not scene.over():
            number += 1
            browser.open(f"/clusters/{SLUG}/reclaims/")
            rows = needed(client.get(f"/api/v1/reclaims/?cluster={SLUG}&limit=50", page="rest reclaims"), 200)
            # What the medium demo begins with is drawn: no receipt says that it was sent to the cluster.
            decided = [row for row in rows["results"] if row["source"] == "own" and row["made_by"] == "tidesched"]
            fresh = [row for row in decided if row["id"] not in seen]
            for row in choice.sample(fresh, min(3, len(fresh))):
                seen.add(row["id"])
                look_at(browser, client, scene, row)
                compare(scene, row, f"reclaim {row['id']}")
            if number % 5 == 1:
                verify(browser, scene)
            scene.rest(8)
    client.close()
