"""Those who take the product at its word: a remedy is followed, an hour and the end of a wait are waited for."""

from __future__ import annotations

import datetime as dt
import time
from typing import Any

from tests.crew.book import ETA, REMEDY, Promise
from tests.crew.cluster import CARD, NAMESPACE
from tests.crew.platform import (
    BETWEEN_ROUNDS,
    apply_one,
    cell,
    check_saved,
    draft,
    expect_start,
    gang_of,
    name_faults,
    take_back,
)
from tests.crew.scene import SLUG, Scene, until
from tests.crew.web_client import WebClient, needed

PODS = 2
# A change that has an hour is looked for every five seconds; what carries it out comes after.
LATE_SECONDS = 30.0
AHEAD_SECONDS = 12.0
GOES_ON = 30.0


def follow_remedy(client: WebClient, scene: Scene, queue: str, number: int) -> None:
    """A gang waits; what its page says would help is done to the figure, and it starts."""
    name = f"{queue}-{number}"
    gang = f"{NAMESPACE}/{name}"
    scene.cluster.submit(name, queue, pods=PODS)

    def advised() -> dict[str, Any] | None:
        found = gang_of(client, gang)
        reason = found and found["reason"]
        return found if reason and reason["remedy"] and reason["remedy_worked_out"] else None

    try:
        found = until(advised, seconds=90)
        if not found:
            scene.note(f"{name}: no remedy within 90 s: {gang_of(client, gang)}")
            return
        remedy = found["reason"]["remedy"]
        if remedy["change"] != "quota" or remedy["queue"] != queue or remedy["card"] != CARD:
            scene.note(f"{name}: a remedy that the crew does not follow: {remedy}")
            return
        starts = found["reason"]["remedy_worked_out"]["starts"]
        promise = scene.book.promise(
            REMEDY, f"gang {found['id']}", f"{gang} {'starts' if starts else 'is admitted'} with {remedy}", time.time()
        )
        value = (scene.cluster.quota(queue) or {}).get(CARD, 0) + int(remedy["by"])
        edits = {f"queue/{queue}": {"card_quota": {CARD: value}}}
        change, saved = draft(client, scene, edits, f"As advised for {name}.")
        check_saved(client, scene, change, saved, edits)
        if apply_one(client, scene, change, {queue: value}) is None:
            scene.book.void(promise, "the change was not applied", time.time())
        else:
            expect_start(client, scene, promise, change, gang, PODS)
    finally:
        scene.cluster.end(name)
    take_back(client, scene, queue)


def remedies(scene: Scene, queue: str) -> None:
    """One round after the other."""
    client = scene.client(f"follower {queue}")
    number = 0
    while not scene.over():
        number += 1
        follow_remedy(client, scene, queue, number)
        scene.rest(BETWEEN_ROUNDS)
    client.close()


def later(scene: Scene, queue: str) -> None:
    """A change with an hour of its own: it is written then, not before, and not much after."""
    client = scene.client("one who plans ahead")
    value = 0
    while not scene.over():
        value = 1 - value
        edits = {f"queue/{queue}": {"card_quota": {CARD: value}}}
        change, saved = draft(client, scene, edits, "At its hour.")
        check_saved(client, scene, change, saved, edits)
        hour = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=AHEAD_SECONDS)
        path = f"/api/v1/quota-changes/{change['id']}/"
        sent = client.retried(
            "POST",
            f"{path}apply/",
            page="rest quota-changes apply",
            json={"apply_at": hour.isoformat()},
            headers={"If-Match": f'"{change["version"]}"'},
        )
        promise = scene.book.promise(ETA, f"change {change['id']}", f"written at {hour:%H:%M:%S}", time.time())
        needed(sent, 200, 202)

        def written(path: str = path, promise: Promise = promise) -> dict[str, Any] | None:
            name_faults(scene, promise)
            found = needed(client.get(path, page="rest quota-change"), 200)
            return found if found["state"] in ("applied", "failed") else None

        found = until(written, seconds=AHEAD_SECONDS + 90)
        name_faults(scene, promise)
        at = found and found["committed_at"] and dt.datetime.fromisoformat(found["committed_at"])
        kept = bool(at) and 0 <= (at - hour).total_seconds() <= LATE_SECONDS
        came = f"{found and found['state']}, written at {at:%H:%M:%S.%f}" if at else "not written"
        scene.book.check(promise, kept=kept, came=came, at=time.time())
        if at:
            scene.book.wrote(cell(queue), value, found["tree_version"], f"change {change['id']}")
        scene.rest(5)
    client.close()


def waits(scene: Scene) -> None:
    """Gangs of the demo whose page says until when they wait: then they go on, or wait for another reason."""
    client = scene.client("one who waits")
    open_ones: dict[int, tuple[Any, float, dict[str, Any]]] = {}
    while not scene.over() or open_ones:
        rows = client.rows(f"/api/v1/gangs/?cluster={SLUG}&waiting=true&limit=500", page="rest gangs all")
        clock = needed(client.get(f"/api/v1/clusters/?slug={SLUG}", page="rest clusters"), 200)["results"][0]["clock"]
        now = dt.datetime.fromisoformat(clock["now"])
        by_id = {row["id"]: row for row in rows}
        for row in rows:
            worked_out = row["reason"] and row["reason"]["remedy_worked_out"]
            if scene.over() or row["id"] in open_ones or not worked_out or not worked_out["until"]:
                continue
            ends = dt.datetime.fromisoformat(worked_out["until"])
            wall = time.time() + max(0.0, (ends - now).total_seconds()) / clock["rate"] + GOES_ON
            said = f"{row['display']} waits until {worked_out['until']} ({worked_out['until_why']})"
            open_ones[row["id"]] = (scene.book.promise(ETA, f"gang {row['id']}", said, time.time()), wall, row)
        for key, (promise, wall, was) in list(open_ones.items()):
            row = by_id.get(key)
            reason = row["reason"]["code"] if row and row["reason"] else ""
            went_on = row is None or reason != was["reason"]["code"] or row["waiting_since"] != was["waiting_since"]
            if not went_on:
                name_faults(scene, promise)
            if went_on or time.time() > wall:
                came = "waits no more" if row is None else f"{row['state']} {reason}"
                scene.book.check(promise, kept=went_on, came=came, at=time.time())
                del open_ones[key]
        time.sleep(3)
    client.close()
