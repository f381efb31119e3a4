"""The auditor: "who took these cards, and was it allowed?", from the list of reclaims to the chain that holds."""

from __future__ import annotations

import random
import re
import time
from typing import Any

from tests.crew.book import TAKEN_BACK
from tests.crew.browsers import Browser, browser_of
from tests.crew.deeds import RECEIPT
from tests.crew.ledger import UNEXPECTED
from tests.crew.platform import name_faults
from tests.crew.scene import SLUG, Scene, until
from tests.crew.web_client import WebClient, needed

SETTLE_SECONDS = 45.0
EXAMINERS = 3


def evictions(scene: Scene) -> dict[tuple[str, str], float]:
    """(pod, session that evicted it) → when, by the cluster's own log."""
    return {
        (row["key"], str(row["session"])): row["wall"]
        for row in scene.cluster.writes()
        if row["resource"].endswith("pods/eviction") and row["code"] < 300 and not row["dry_run"]
    }


def came_after(scene: Scene, gang: str, pods: list[str], at: float) -> bool:
    """Whether a pod of a gang was bound to a node of these pods after a moment, by the cluster's own log."""
    bound = [
        row
        for row in scene.cluster.writes()
        if row["resource"].endswith("pods/binding") and row["code"] < 300 and not row["dry_run"]
    ]
    nodes = {row["detail"] for row in bound if row["key"] in pods and row["wall"] <= at}
    return any(row["detail"] in nodes and row["wall"] >= at and row["key"].startswith(f"{gang}-") for row in bound)


def compare(scene: Scene, client: WebClient, row: dict[str, Any]) -> None:
    """A receipt says who lost which pods to whom, in which session.

    By the cluster's log that very session evicted these very pods, and a pod of the gang that is said to have taken
    them was bound to one of their nodes afterwards. Where that gang has left first there is nothing to compare. Pods
    of which the receipt says that they had left by themselves were evicted by no session. It is read again for that:
    what came of the evictions is known only after the decision.
    """
    pods = [pod for victim in row["victims"] for pod in victim["pods"] or ()]
    session, gang = str(row["session"]["number"]), row["reclaimer"]
    said = f"{gang} took {pods} in session {session} ({row['rule'][:60]})"
    nothing_came = f"no pod of {gang} was bound to one of their nodes afterwards"
    promise = scene.book.promise(TAKEN_BACK, f"reclaim {row['id']}", said, time.time())
    read: dict[str, Any] = {}

    def taken() -> list[str]:
        victims = read["victims"]
        return [pod for one in victims for pod in one["pods"] or () if pod not in (one["ended_pods"] or ())]

    def missing() -> list[str]:
        log = evictions(scene)
        lacks = [f"{pod} is not evicted in session {session}" for pod in taken() if (pod, session) not in log]
        lacks += [f"{pod} is evicted" for pod in set(pods) - set(taken()) if (pod, session) in log]
        if not lacks and taken() and not came_after(scene, gang, pods, min(log[pod, session] for pod in taken())):
            lacks.append(nothing_came)
        return lacks

    def kept() -> bool:
        name_faults(scene, promise)
        read.update(needed(client.get(f"/api/v1/reclaims/{row['id']}/", page="rest reclaim"), 200))
        return read["state"] == "cancelled" or not missing()

    if not pods:
        scene.book.check(promise, kept=False, came="the receipt names no pod", at=time.time())
        return
    if not until(kept, seconds=SETTLE_SECONDS, every=3):
        lacks = missing()
        if lacks == [nothing_came] and not scene.cluster.has_gang(gang):
            scene.book.void(promise, f"{gang} left the cluster first", time.time())
            return
        scene.book.check(promise, kept=not lacks, came="; ".join(lacks), at=time.time())
    elif read["state"] == "cancelled":
        came = [pod for pod in pods if (pod, session) in evictions(scene)]
        if came:
            scene.book.check(promise, kept=False, came=f"it is cancelled, and {came} are evicted", at=time.time())
        else:
            scene.book.void(promise, "the receipt says that it was cancelled, and nothing was evicted", time.time())
    elif not taken():
        scene.book.void(promise, "the receipt says that all had left by themselves", time.time())
    else:
        scene.book.check(
            promise, kept=True, came="evicted by that session; its pods came to their nodes", at=time.time()
        )


def receipts_are_whole(scene: Scene, client: WebClient) -> None:
    """Each eviction that a session sent has its receipt: what was taken without one is a broken promise."""
    log = evictions(scene)
    rows = client.rows(f"/api/v1/reclaims/?cluster={SLUG}&limit=200", page="rest reclaims")
    named = {
        (pod, str(row["session"]["number"]))
        for row in rows
        if row["source"] == "own" and row["session"]
        for victim in row["victims"]
        for pod in victim["pods"] or ()
    }
    for (pod, session), at in sorted(log.items(), key=lambda entry: entry[1]):
        if session and (pod, session) not in named:
            promise = scene.book.promise(TAKEN_BACK, f"session {session}", f"each eviction has a receipt: {pod}", at)
            scene.book.check(promise, kept=False, came="no receipt names it", at=time.time())


def look_at(browser: Browser, scene: Scene, row: dict[str, Any]) -> None:
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


def decided(client: WebClient) -> list[dict[str, Any]]:
    """The newest receipts of evictions that were sent: what the medium demo begins with is drawn, and never was."""
    rows = needed(client.get(f"/api/v1/reclaims/?cluster={SLUG}&limit=50", page="rest reclaims"), 200)["results"]
    return [row for row in rows if row["source"] == "own" and row["made_by"] == "tidesched"]


def examine(scene: Scene, share: int) -> None:
    """Compare each receipt of one share with the cluster's log, by REST: a comparison waits for what it expects."""
    client = scene.client(f"examiner {share}")
    seen: set[int] = set()
    while not scene.over():
        for row in decided(client):
            if row["id"] % EXAMINERS == share and row["id"] not in seen and not scene.over():
                seen.add(row["id"])
                compare(scene, client, row)
        scene.rest(5)
    client.close()


def work(scene: Scene, person: str) -> None:
    """A question after the other until the end, on the pages; now and then the chains."""
    choice = random.Random(person)
    client = scene.client(f"{person} (REST)")
    seen: set[int] = set()
    with browser_of(scene, person) as browser:
        number = 0
        while not scene.over():
            number += 1
            browser.open(f"/clusters/{SLUG}/reclaims/")
            fresh = [row for row in decided(client) if row["id"] not in seen]
            for row in choice.sample(fresh, min(3, len(fresh))):
                seen.add(row["id"])
                look_at(browser, scene, row)
                scene.deeds.did(RECEIPT, person)
            if number % 5 == 1:
                verify(browser, scene)
            scene.rest(8)
    client.close()
