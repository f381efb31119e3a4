"""The timekeeper, a process at the product's own priority: how long a page takes for a reader who has a processor.

`python -m tests.crew.timekeeper FOLDER` waits for `timekeeper.json` in the folder, then opens each list, its live part
and one of its rows, one after another with a pause between, as one of the crowd's accounts in turn: each of them has
twenty pages open. Then it opens all other pages as an admin. Between them it asks the probes. It writes
`timekeeper-ledger.json`. The times of the rest of the crew, at `nice 19`, contain its own waiting for a processor.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from itertools import cycle
from pathlib import Path

from tests.crew.crowd import LINKS, PATHS, Visitor
from tests.crew.ledger import Ledger
from tests.crew.timed_pages import FIXED, LINKED

PAUSE_SECONDS = 0.4
PROBES = ("healthz", "readyz")


async def once(visitor: Visitor, slug: str, choice: random.Random) -> None:
    """Each page, its part, one of its rows, and the probes."""
    for name, path in PATHS.items():
        where = f"/clusters/{slug}/{path}"
        _status, text, _given = await visitor.get(where, f"timed page {name}")
        await asyncio.sleep(PAUSE_SECONDS)
        headers = {"HX-Request": "true", "HX-Target": "live", "HX-Current-URL": f"{visitor.base}{where}"}
        await visitor.get(where, f"timed part {name}", headers)
        await asyncio.sleep(PAUSE_SECONDS)
        links = sorted(set(LINKS.findall(text)))
        if links and name in ("queues", "gangs", "reclaims", "sessions"):
            linked = choice.choice(links)
            await visitor.get(linked, f"timed page {linked.split('/')[3]} linked")
            await asyncio.sleep(PAUSE_SECONDS)
        for probe in PROBES:
            await visitor.get(f"/{probe}", f"timed probe {probe}")


async def others(visitor: Visitor, slug: str) -> None:
    """Each page that only few have open."""
    texts = {}
    for name, place in FIXED.items():
        path = place.format(slug)
        _status, texts[path], _etag = await visitor.get(path, f"timed page {name}")
        await asyncio.sleep(PAUSE_SECONDS)
    for name, (place, link) in LINKED.items():
        path = place.format(slug)
        text = texts.get(path) or (await visitor.get(path, f"timed list of {name}"))[1]
        if found := link.search(text):
            await visitor.get(found[1], f"timed page {name}")
            await asyncio.sleep(PAUSE_SECONDS)


async def keep(folder: Path) -> None:
    """Until the time is over; the ledger is stored after each round."""
    given = json.loads((folder / "timekeeper.json").read_text(encoding="utf-8"))
    ledger, choice = Ledger(), random.Random(1)
    visitors = [
        Visitor(given["address"], one["name"], one["cookies"], one["hidden"], ledger) for one in given["people"]
    ]
    admin = Visitor(given["address"], given["admin"]["name"], given["admin"]["cookies"], "", ledger)
    for visitor in cycle(visitors):
        if time.time() >= given["ends_at"]:
            break
        await once(visitor, given["slug"], choice)
        if visitor.hidden:  # a member of a tenant has a home, others are led to the cluster
            await visitor.get("/", "timed page home")
        await others(admin, given["slug"])
        ledger.store(folder / "timekeeper-ledger.part")
        (folder / "timekeeper-ledger.part").replace(folder / "timekeeper-ledger.json")
    for visitor in (*visitors, admin):
        await visitor.http.close()


if __name__ == "__main__":
    place = Path(sys.argv[1])
    while not (place / "timekeeper.json").exists():
        time.sleep(1)
    asyncio.run(keep(place))
