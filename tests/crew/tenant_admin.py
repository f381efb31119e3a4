"""A tenant admin who looks for her gang: from her home or the search to its page, its reason and what would help."""

from __future__ import annotations

import random

from tests.crew.browsers import browser_of
from tests.crew.deeds import LOOK
from tests.crew.hostile import SECRETS
from tests.crew.ledger import STRANGER, UNEXPECTED
from tests.crew.scene import SLUG, Scene
from tests.crew.web_client import WebClient, needed


def work(scene: Scene, person: str) -> None:
    """Look after look until the end. What REST shows of the gang is on its page; what is not hers does not."""
    choice = random.Random(person)
    account = next(one for one in scene.people if one.name == person)
    theirs = WebClient(scene.address, f"{person} (REST)", scene.ledger, cookies=account.cookies)
    with browser_of(scene, person) as browser:
        page = browser.page
        while not scene.over():
            browser.open("/")
            shown = [page.content()]
            path = f"/api/v1/gangs/?cluster={SLUG}&limit=200"
            rows = [
                row for row in needed(theirs.get(path, page="rest gangs"), 200)["results"] if row["state"] == "waiting"
            ]
            if rows:
                row = choice.choice(rows)
                browser.open(f"/clusters/{SLUG}/search/?q={row['name']}")
                page.wait_for_load_state("load")
                browser.open(f"/clusters/{SLUG}/gangs/{row['id']}/")
                shown.append(page.content())
                title = page.locator("h1").inner_text()
                scene.deeds.did(LOOK, person)
                if row["name"] not in title:
                    scene.ledger.trouble(UNEXPECTED, person, page.url, f"the page of {row['display']} is {title!r}")
            for text in shown:
                if found := SECRETS.search(text):
                    scene.ledger.trouble(STRANGER, person, page.url, f"she sees {found[0]}")
            scene.rest(6)
    theirs.close()
