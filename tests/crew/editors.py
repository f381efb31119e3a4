"""Two quota admins who edit the same tree in real browsers: one types, one pastes from a sheet and loads CSV."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Error

from tests.browser.sheet import Sheet
from tests.crew.book import SAVED
from tests.crew.browsers import PATIENCE_MS, Browser, browser_of
from tests.crew.cluster import CARD
from tests.crew.deeds import EDIT
from tests.crew.platform import cell, compare_applied, written_down
from tests.crew.scene import SHEET, SLUG, Scene, until
from tests.crew.web_client import WebClient, needed

MOST = 6
PAGE = f"/clusters/{SLUG}/quota/edit/"
PASTE = """text => {
  const data = new DataTransfer();
  data.setData("text/plain", text);
  const event = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
  document.activeElement.dispatchEvent(event);
}"""


def wanted(scene: Scene, choice: random.Random, count: int) -> dict[str, int]:
    """Some of the crew's queues and figures for them that differ from what is there."""
    found = {}
    for queue in choice.sample(SHEET, count):
        now = (scene.cluster.quota(queue) or {}).get(CARD, 0)
        found[queue] = choice.choice([value for value in range(MOST + 1) if value != now])
    return found


def shows(text: str, value: int) -> bool:
    """Whether a cell shows a figure, be it an edit or what is there already; nothing at all is written for 0."""
    lines = text.rsplit("→", maxsplit=1)[-1].strip().splitlines()
    return lines[-1:] == [str(value)] or (value == 0 and lines[-1:] in ([], ["–"]))


def in_the_grid(browser: Browser, figures: dict[str, int]) -> dict[str, str]:
    """What the cells of these figures show."""
    sheet = Sheet(browser.page)
    sheet.filter("crew-sheet", "training")
    return {queue: sheet.cell(queue, CARD).inner_text() for queue in figures}


def edited(browser: Browser, scene: Scene, figures: dict[str, int]) -> dict[str, int] | None:
    """Those of the figures that are edits: another admin may apply one of them at any moment. None: one is lost.

    A file or a sheet of cells is taken in after a moment, so the page is looked at until grid and count agree.
    """
    count = browser.page.locator("#count-changed")
    came: dict[str, str] = {}

    def agree() -> bool:
        came.update(in_the_grid(browser, figures))
        if not all(shows(came[queue], value) for queue, value in figures.items()):
            return False
        number = sum("→" in text for text in came.values())
        return count.inner_text().strip() == (f"{number} changed" if number else "nothing changed yet")

    agreed = until(agree, seconds=PATIENCE_MS / 1000, every=0.3)
    if lost := {queue: text for queue, text in came.items() if not shows(text, figures[queue])}:
        moved = browser.page.locator("#moved").inner_text() if browser.page.locator("#moved").is_visible() else ""
        scene.book.lose(f"{browser.person}: put in {figures}, the grid shows {lost} and says “{moved}”")
        return None
    assert agreed, f"put in {figures}, the grid shows {came} and counts “{count.inner_text()}”"
    return {queue: value for queue, value in figures.items() if "→" in came[queue]}


def typed(browser: Browser, scene: Scene, figures: dict[str, int]) -> None:
    """One cell after another. What is there already, since another admin was faster, is no edit and left out."""
    sheet = Sheet(browser.page)
    sheet.filter("crew-sheet", "training")
    for queue, value in list(figures.items()):
        sheet.type(queue, CARD, str(value))
        text = sheet.cell(queue, CARD).inner_text()
        if "→" not in text and shows(text, value):
            del figures[queue]


def typed_and_reloaded(browser: Browser, scene: Scene, figures: dict[str, int]) -> None:
    """The page is loaded again before the review: what was typed comes back."""
    typed(browser, scene, figures)
    promise = scene.book.promise(SAVED, PAGE, f"typed {figures} comes back", time.time())
    browser.page.reload()
    came = in_the_grid(browser, figures)
    kept = all(shows(came[queue], value) for queue, value in figures.items())
    scene.book.check(promise, kept=kept, came=str(came), at=time.time())
    if not kept:
        scene.book.lose(f"{browser.person}: typed {figures}, after the page was loaded again it shows {came}")


def pasted(browser: Browser, scene: Scene, figures: dict[str, int]) -> None:
    """A block with names of rows and columns, as it comes from a spreadsheet."""
    sheet = Sheet(browser.page)
    sheet.filter("crew-sheet", "training")
    sheet.cell(next(iter(figures)), CARD).click()
    rows = "".join(f"{queue}\t{value}\n" for queue, value in figures.items())
    browser.page.evaluate(PASTE, f"name\t{CARD}\n{rows}")


def loaded(browser: Browser, scene: Scene, figures: dict[str, int]) -> None:
    """A CSV file with these columns alone."""
    Sheet(browser.page)
    path = Path(scene.demo.folder) / f"{browser.person.replace(' ', '-')}.csv"
    rows = "".join(f"{queue},training,{value}\n" for queue, value in figures.items())
    path.write_text(f"name,service_type,{CARD}\n{rows}", encoding="utf-8")
    browser.page.locator("#import-csv").set_input_files(path)


def one_edit(
    browser: Browser,
    client: WebClient,
    scene: Scene,
    figures: dict[str, int],
    put: Callable[[Browser, Scene, dict[str, int]], None],
) -> None:
    """Put figures into the grid, review, apply, and compare what was said with what came."""
    page = browser.page
    browser.open(PAGE)
    put(browser, scene, figures)
    edits_made = edited(browser, scene, figures)
    if not edits_made:
        return
    figures = edits_made
    page.get_by_role("button", name="Review").click()
    page.wait_for_url("**/changes/*/")
    number = int(page.url.rstrip("/").rpartition("/")[2])
    where = f"change {number} (browser)"
    edits = {f"queue/{queue}": {"card_quota": {CARD: value}} for queue, value in figures.items()}
    saved = scene.book.promise(SAVED, where, f"draft with {edits}", time.time())
    path = f"/api/v1/quota-changes/{number}/"
    change = needed(client.get(path, page="rest quota-change"), 200)
    scene.book.check(saved, kept=change["edits"] == edits, came=str(change["edits"]), at=time.time())
    button = page.get_by_role("button", name="Apply", exact=True)
    if not button.is_enabled():
        # Another person changed the same figures meanwhile: the page says so, and the draft is given up.
        client.retried(
            "POST",
            f"{path}cancel/",
            page="rest quota-changes cancel",
            json={"reason": "Overtaken."},
            headers={"If-Match": f'"{change["version"]}"'},
            expected=(409, 412),
        )
        return
    scene.book.begin(where, {cell(queue): value for queue, value in figures.items()})
    known = False
    try:
        page.get_by_label("Reason", exact=True).fill(f"{browser.person} sets {len(figures)} figures.")
        button.click()
        state = page.locator("[aria-labelledby=where-title] .card-header .state")
        on_its_way = ("Draft", "Applying", "Approved", "Scheduled")
        until(lambda: state.inner_text().strip() not in on_its_way, seconds=90, every=0.5)
        shown = state.inner_text().strip()
        change = needed(client.get(path, page="rest quota-change"), 200)
        written = {}
        if change["committed_at"]:
            written = written_down(scene, figures, change["tree_version"], where)
        known = bool(written) or change["state"] != "approved"
    finally:
        scene.book.end(where, known=known)
    if shown == "Applied":
        compare_applied(scene, written)
        scene.deeds.did(EDIT, browser.person)
        return
    said = " | ".join(page.locator(".banner, [role=alert], .text-danger").all_inner_texts())
    said = f"{where}: the page says {shown} ({said}); REST says {change['state']} {change['error']}"
    if change["state"] == "draft":
        # Another person changed a figure in the same moment: the page says so, and nothing was written.
        scene.note(said)
    else:
        scene.gave_up(EDIT, browser.person, said)


def work(scene: Scene, person: str, ways: list[Callable[[Browser, Scene, dict[str, int]], None]], pause: float) -> None:
    """Edit after edit until the end."""
    choice = random.Random(person)
    client = scene.client(f"{person} (REST)")
    with browser_of(scene, person) as browser:
        browser.page.on("dialog", lambda dialog: dialog.accept())
        number = 0
        while not scene.over():
            way = ways[number % len(ways)]
            number += 1
            try:
                one_edit(browser, client, scene, wanted(scene, choice, 1 + number % 3), way)
            except (AssertionError, Error) as error:
                scene.gave_up(EDIT, person, f"{way.__name__} at {browser.page.url}: {str(error)[:300]}")
                scene.book.give_up(f"given up: {error}"[:200], time.time())
                browser.page.evaluate("localStorage.clear()")
            scene.rest(pause)
    client.close()
