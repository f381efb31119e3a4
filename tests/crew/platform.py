"""A platform that works by REST with retries: a team submits a job, the platform gives quota, and what was said comes.

Each lane has queues of its own and sets them in one change; the lanes run side by side in one tree.
"""

from __future__ import annotations

import random
import time
import uuid
from typing import Any

from tests.crew.book import APPLIED, IMPACT, SAVED, Promise, Written
from tests.crew.cluster import CARD, NAMESPACE
from tests.crew.deeds import ROUND
from tests.crew.scene import SLUG, TREES, Scene, carry, until
from tests.crew.web_client import WebClient, needed

PODS = 2
# A gang that is called to run at once is bound by one of the next sessions; they come each second, slower under load.
IMPACT_SECONDS = 60.0
# A platform has something to do now and then: without a pause, a faster server would only be asked more; and with one
# pause for all, lanes that once waited for each other would go on in step.
BETWEEN_ROUNDS = (15.0, 45.0)
STARTED = ("running", "finished")


def cell(queue: str) -> str:
    """A cell of the tree, as the book calls it."""
    return f"{queue} {CARD}"


def draft(client: WebClient, scene: Scene, edits: dict[str, Any], reason: str) -> tuple[dict[str, Any], Promise]:
    """A draft, asked for twice under one key as after a lost answer: there is one, and it holds what was sent."""
    body = {"cluster": SLUG, "edits": edits, "reason": reason}
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    change = None
    for _attempt in range(2):
        answer = client.retried(
            "POST", "/api/v1/quota-changes/", page="rest quota-changes", json=body, headers=headers, expected=(409,)
        )
        found = needed(answer, 201)
        if change is not None and found["id"] != change["id"]:
            scene.book.lose(f"one key made two drafts: changes {change['id']} and {found['id']}")
        change = found
    assert change is not None
    promise = scene.book.promise(SAVED, f"change {change['id']}", f"draft with {edits}", time.time())
    return change, promise


def check_saved(client: WebClient, scene: Scene, change: dict[str, Any], promise: Promise, edits: Any) -> None:
    """The draft holds what was sent."""
    found = needed(client.get(f"/api/v1/quota-changes/{change['id']}/", page="rest quota-change"), 200)
    scene.book.check(promise, kept=found["edits"] == edits, came=str(found["edits"]), at=time.time())


def impact_of(client: WebClient, change: dict[str, Any]) -> dict[str, Any] | None:
    """What the change is said to do, as soon as that is known; None where it is not said."""

    def found() -> dict[str, Any] | None:
        plan = needed(client.get(f"/api/v1/quota-changes/{change['id']}/plan/", page="rest plan"), 200)
        impact: dict[str, Any] | None = plan["impact"]
        return impact if impact and not impact.get("unavailable") else None

    answer: dict[str, Any] | None = until(found, seconds=60, every=2)
    return answer


def name_faults(scene: Scene, promise: Promise) -> None:
    """What the pages say of parts that are away, before a promise is checked."""
    if text := scene.status_line():
        scene.book.name_fault(promise, text, time.time())


def written_down(scene: Scene, figures: dict[str, int], version: int, where: str) -> dict[str, Written]:
    """Figures of a change that the product called written, by queue."""
    return {queue: scene.book.wrote(cell(queue), value, version, where) for queue, value in figures.items()}


def compare_applied(scene: Scene, written: dict[str, Written]) -> None:
    """What is called applied, the cluster has."""
    for queue, mine in written.items():
        promise = scene.book.promise(APPLIED, mine.where, f"{queue}: {mine.value} {CARD}", time.time())
        name_faults(scene, promise)
        found = (scene.cluster.quota(queue) or {}).get(CARD, 0)
        scene.book.applied(promise, mine, found=found, at=time.time())


def apply_one(
    client: WebClient, scene: Scene, change: dict[str, Any], figures: dict[str, int]
) -> dict[str, Any] | None:
    """Apply a draft. ``figures``: quota of the crew's card by queue; called applied, the cluster has them."""
    done = carry(client, change)
    if done["state"] == "refused":
        scene.note(f"change {change['id']} refused: {done['refusal'][:200]}")
        return None
    where = f"change {change['id']}"
    if done["state"] != "applied":
        scene.note(f"{where} is {done['state']}: {done['error']} {done['failure']}")
        if done["committed_at"] is None:
            return None
    written = written_down(scene, figures, done["tree_version"], where)
    if done["state"] != "applied":
        return None
    compare_applied(scene, written)
    return done


def gang_of(client: WebClient, gang: str) -> dict[str, Any] | None:
    """A gang as the product shows it, also where it has left the cluster."""
    space, _slash, name = gang.partition("/")
    path = f"/api/v1/gangs/?cluster={SLUG}&namespace={space}&name={name}"
    for gone in ("", "&gone=true"):
        rows: list[dict[str, Any]] = needed(client.get(f"{path}{gone}", page="rest gangs"), 200)["results"]
        if rows:
            return rows[0]
    return None


def expect_start(
    client: WebClient, scene: Scene, promise: Promise, change: dict[str, Any], gang: str, pods: int
) -> None:
    """A gang that was called to start has all its pods on nodes before long, in the cluster itself."""
    name = gang.partition("/")[2]

    def placed() -> bool:
        name_faults(scene, promise)
        if gang.startswith(f"{NAMESPACE}/"):
            return scene.cluster.pods_placed(name) >= pods
        found = gang_of(client, gang)
        return found is not None and found["state"] in STARTED

    kept = until(placed, seconds=IMPACT_SECONDS)
    if not kept and gang.startswith(f"{NAMESPACE}/") and name in scene.cluster.ended:
        scene.book.void(promise, "the crew had ended the gang", time.time())
        return
    if not kept:
        name_faults(scene, promise)
        row = needed(client.get(f"/api/v1/quota-changes/{change['id']}/forecast/", page="rest forecast"), 200)
        outcome = next((one["outcome"] for one in row["rows"] if one["gang"] == gang), "")
        if outcome in ("gone", "overtaken") and not gang.startswith(f"{NAMESPACE}/"):
            scene.book.void(promise, f"the product says {outcome}", time.time())
            return
    found = gang_of(client, gang)
    came = (
        "all pods have nodes"
        if kept
        else f"after {IMPACT_SECONDS:.0f} s: {found and (found['state'], found['reason'])}"
    )
    scene.book.check(promise, kept=bool(kept), came=came, at=time.time())


def expect_no_start(scene: Scene, promise: Promise, name: str, *, applied: bool) -> None:
    """A gang that an impact does not name does not start by the change."""
    if not applied:
        scene.book.void(promise, "the change was not applied", time.time())
        return
    started = until(lambda: scene.cluster.pods_placed(name) >= PODS, seconds=IMPACT_SECONDS)
    came = "all pods have nodes" if started else "it waits"
    scene.book.check(promise, kept=not started, came=came, at=time.time())


def give_quota(client: WebClient, scene: Scene, queue: str, number: int) -> None:
    """One round: a job waits, quota is given, what the impact named starts; then all is taken back."""
    name = f"{queue}-{number}"
    scene.cluster.submit(name, queue, pods=PODS)
    try:
        gang = until(
            lambda: (found := gang_of(client, f"{NAMESPACE}/{name}")) and found["reason"] and found, seconds=60
        )
        if not gang:
            scene.gave_up(ROUND, client.person, f"{name}: the product does not show its reason within 60 s")
            return
        figures = {queue: PODS} | {one: (number + place) % 3 for place, one in enumerate(TREES[queue])}
        edits = {f"queue/{one}": {"card_quota": {CARD: value}} for one, value in figures.items()}
        change, saved = draft(client, scene, edits, f"Round {number} of {queue}.")
        check_saved(client, scene, change, saved, edits)
        impact = impact_of(client, change)
        promises = []
        mine, unnamed = f"{NAMESPACE}/{name}", None
        if impact is None:
            scene.gave_up(ROUND, client.person, f"change {change['id']}: no impact within 60 s")
        else:
            named = [row["gang"] for row in impact["gangs_run"] if row.get("becomes") != "larger"]
            promises = [
                (gang, scene.book.promise(IMPACT, f"change {change['id']}", f"{gang} starts", time.time()))
                for gang in named
            ]
            if mine not in named:
                said = f"{mine} does not start: {impact.get('counts')}"
                unnamed = scene.book.promise(IMPACT, f"change {change['id']}", said, time.time())
        done = apply_one(client, scene, change, figures)
        if unnamed is not None:
            expect_no_start(scene, unnamed, name, applied=done is not None)
        for gang, promise in promises:
            if done is None:
                scene.book.void(promise, "the change was not applied", time.time())
            else:
                expect_start(client, scene, promise, change, gang, PODS)
        if done is not None and impact is not None:
            scene.deeds.did(ROUND, client.person)
    finally:
        scene.cluster.end(name)
    take_back(client, scene, queue)


def take_back(client: WebClient, scene: Scene, queue: str) -> None:
    """The quota goes back to nothing, in one step with the ETag that was looked at."""
    edits = {f"queue/{queue}": {"card_quota": {CARD: 0}}}
    change, saved = draft(client, scene, edits, f"{queue} is done.")
    check_saved(client, scene, change, saved, edits)
    apply_one(client, scene, change, {queue: 0})


def work(scene: Scene, queue: str) -> None:
    """A lane, round after round until the end."""
    client = scene.client(f"platform {queue}")
    choice, number = random.Random(queue), 0
    while not scene.over():
        number += 1
        give_quota(client, scene, queue, number)
        scene.rest(choice.uniform(*BETWEEN_ROUNDS))
    client.close()
