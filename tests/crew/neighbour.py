"""A neighbour who runs eight replays at once: each tries a draft out on the recorded sessions of a day."""

from __future__ import annotations

from tests.crew.cluster import CARD
from tests.crew.platform import draft
from tests.crew.scene import SHEET, SLUG, Person, Scene, until
from tests.crew.web_client import WebClient, fields_of, needed

REPLAYS = 8


def work(scene: Scene, account: Person) -> None:
    """Eight drafts, eight replays, and again when they are over."""
    client = WebClient(scene.address, account.name, scene.ledger, cookies=account.cookies)
    rest = scene.client("neighbour (REST)")
    drafts = []
    for number in range(REPLAYS):
        edits = {f"queue/{SHEET[number % len(SHEET)]}": {"card_quota": {CARD: 7 + number}}}
        change, _saved = draft(rest, scene, edits, "Only to try it out.")
        scene.book.void(_saved, "only tried out", 0.0)
        drafts.append(change["id"])
    while not scene.over():
        for number in drafts:
            opened = client.get(f"/clusters/{SLUG}/changes/{number}/day/", page="page day of a change")
            token = next(
                (one["value"] for one in fields_of(opened.text) if one.get("name") == "csrfmiddlewaretoken"), ""
            )
            if token:
                path = f"/clusters/{SLUG}/changes/{number}/day/"
                client.ask("POST", path, page="form day of a change", data={"csrfmiddlewaretoken": token})

        def under_way() -> bool:
            rows = needed(client.get("/api/v1/jobs/?limit=50", page="rest jobs"), 200)["results"]
            return any(row["state"] in ("queued", "running") for row in rows)

        until(lambda: scene.over() or not under_way(), seconds=900, every=5)
        scene.rest(5)
    client.close()
    rest.close()
