"""Those who take the product at its word: a remedy is followed, an hour and the end of a wait are waited for."""

from __future__ import annotations

import datetime as dt
import random
import time
from dataclasses import dataclass
from typing import Any

from tests.crew.book import ETA, REMEDY, Promise
from tests.crew.cluster import CARD, NAMESPACE
from tests.crew.deeds import FOLLOWED, HOUR
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
            scene.gave_up(FOLLOWED, client.person, f"{name}: no remedy within 90 s: {gang_of(client, gang)}")
            return
        remedy = found["reason"]["remedy"]
        if remedy["change"] != "quota" or remedy["queue"] != queue or remedy["card"] != CARD:
            scene.gave_up(FOLLOWED, client.person, f"{name}: a remedy that the crew does not follow: {remedy}")
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
            scene.deeds.did(FOLLOWED, client.person)
    finally:
        scene.cluster.end(name)
    take_back(client, scene, queue)


def remedies(scene: Scene, queue: str) -> None:
    """One round after the other."""
    client = scene.client(f"follower {queue}")
    choice, number = random.Random(queue), 0
    while not scene.over():
        number += 1
        follow_remedy(client, scene, queue, number)
        scene.rest(choice.uniform(*BETWEEN_ROUNDS))
    client.close()


def later(scene: Scene, queue: str) -> None:
    """A change with an hour of its own: by the cluster's log it is written then, not before, and not much after."""
    client = scene.client(f"planner {queue}")
    value = 0
    while not scene.over():
        value = 1 - value
        edits = {f"queue/{queue}": {"card_quota": {CARD: value}}}
        change, saved = draft(client, scene, edits, "At its hour.")
        check_saved(client, scene, change, saved, edits)
        asked = time.time()
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

        def written(promise: Promise = promise, value: int = value) -> bool:
            name_faults(scene, promise)
            return (scene.cluster.quota(queue) or {}).get(CARD, 0) == value

        until(written, seconds=AHEAD_SECONDS + LATE_SECONDS)
        name_faults(scene, promise)
        times = [at - hour.timestamp() for at in scene.cluster.figure_written(queue, value, asked)]
        kept = bool(times) and min(times) >= 0 and written()
        came = f"the Queue object was written {', '.join(f'{late:+.1f} s' for late in times) or 'never'} from its hour"
        scene.book.check(promise, kept=kept, came=came, at=time.time())

        def over(path: str = path) -> dict[str, Any] | None:
            found = needed(client.get(path, page="rest quota-change"), 200)
            return found if found["state"] in ("applied", "failed") else None

        if (done := until(over, seconds=90)) and done["committed_at"]:
            scene.book.wrote(cell(queue), value, done["tree_version"], f"change {change['id']}")
            scene.deeds.did(HOUR, client.person)
        else:
            scene.gave_up(HOUR, client.person, f"change {change['id']} is {done and done['state']}")
        scene.rest(5)
    client.close()


@dataclass
class Wait:
    """A gang of the demo that is said to wait until a time. ``ends``: that time by the wall clock."""

    promise: Promise
    ends: float
    gang: str
    pods: int
    code: str
    until: str

    def over(self, scene: Scene) -> str:
        """What the cluster shows of its end; empty while it waits."""
        namespace, _slash, name = self.gang.partition("/")
        placed = sum(bool(one["spec"].get("nodeName")) for one in scene.cluster.pods_of(namespace, name))
        if placed >= self.pods:
            return f"{placed} pods have nodes"
        return "" if scene.cluster.has_gang(self.gang) else "it left the cluster"


def waits(scene: Scene) -> None:
    """Gangs of the demo whose page says until when they wait: then their pods have nodes in the cluster.

    What the page took back before that time is void; what it says only afterwards is no excuse.
    """
    client = scene.client("one who waits")
    open_ones: dict[int, Wait] = {}
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
            wall = time.time() + max(0.0, (ends - now).total_seconds()) / clock["rate"]
            said = f"{row['display']} waits until {worked_out['until']} ({worked_out['until_why']})"
            promise = scene.book.promise(ETA, f"gang {row['id']}", said, time.time())
            gang = f"{row['namespace']}/{row['name']}"
            needs = row["min_available"]
            open_ones[row["id"]] = Wait(promise, wall, gang, needs, row["reason"]["code"], worked_out["until"])
        for key, one in list(open_ones.items()):
            name_faults(scene, one.promise)
            went_on = one.over(scene)
            if not went_on and time.time() < one.ends:
                reason = by_id[key]["reason"] if key in by_id else None
                worked_out = reason and reason["remedy_worked_out"]
                if reason is None or reason["code"] != one.code or (worked_out and worked_out["until"] != one.until):
                    scene.book.void(one.promise, "the page said otherwise before that time", time.time())
                    del open_ones[key]
            elif went_on or time.time() > one.ends + GOES_ON:
                reason = by_id[key]["reason"] if key in by_id else None
                came = went_on or f"it still waits: {reason and reason['code']}"
                scene.book.check(one.promise, kept=bool(went_on), came=came, at=time.time())
                del open_ones[key]
        time.sleep(3)
    client.close()
