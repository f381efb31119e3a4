"""A person in a real browser: errors of the console and answers of the server go to the ledger."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from playwright.sync_api import Page, Request, Response, sync_playwright

from tests.browser.watching import WATCH, chromium, note_errors
from tests.crew.ledger import CONSOLE
from tests.crew.scene import Scene
from tests.passwords import PASSWORD

ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--font-render-hinting=none"]
PATIENCE_MS = 60_000
# A refusal is an answer: the browser reports it in the console, and the person reads it on the page.
_REFUSAL = re.compile(r"the server responded with a status of (400|409|412|422)\b")


class Browser:
    """One page of one person."""

    def __init__(self, scene: Scene, person: str, page: Page) -> None:
        self.scene, self.person, self.page = scene, person, page
        note_errors(page, self._error)
        page.on("requestfinished", self._finished)

    def _error(self, text: str) -> None:
        if not _REFUSAL.search(text):
            self.scene.ledger.trouble(CONSOLE, self.person, urlsplit(self.page.url).path, text[:500])

    def _finished(self, request: Request) -> None:
        path = urlsplit(request.url).path
        if path.startswith("/static/"):
            return
        answer: Response | None = request.response()
        if answer is None:
            return
        took = request.timing["responseEnd"] - request.timing["requestStart"]
        name = re.sub(r"/\d+/", "/N/", path.removeprefix("/clusters/demo"))
        self.scene.ledger.answered(
            person=self.person,
            page=f"browser {'page' if request.resource_type == 'document' else 'fetch'} {name}",
            where=path,
            method=request.method,
            status=answer.status,
            began=time.time() - max(0.0, took) / 1000,
            seconds=max(0.0, took) / 1000,
            size=0,
            headers=answer.headers,
        )

    def open(self, path: str) -> None:
        """Go to a page; again where it is away for a while and says when to come. The ledger has each answer."""
        until = time.monotonic() + PATIENCE_MS / 1000
        while True:
            answer = self.page.goto(f"{self.scene.address}{path}", wait_until="load", timeout=PATIENCE_MS)
            again = answer.headers.get("retry-after", "") if answer is not None and answer.status == 503 else ""
            if not again or time.monotonic() > until:
                return
            time.sleep(float(again))

    def violations(self) -> None:
        """Write down what broke the page's security policy."""
        for text in self.page.evaluate("window.violations || []"):
            self._error(f"content security policy: {text}")


@contextmanager
def browser_of(scene: Scene, person: str) -> Iterator[Browser]:
    """A browser of a person's own, signed in by the form."""
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        context = found.new_context(viewport={"width": 1440, "height": 900}, locale="en-GB", reduced_motion="reduce")
        context.add_init_script(WATCH)
        context.set_default_timeout(PATIENCE_MS)
        one = Browser(scene, person, context.new_page())
        one.open("/sign-in/")
        one.page.get_by_role("textbox").first.fill(person)
        one.page.locator("input[type=password]").fill(PASSWORD)
        one.page.locator("button[type=submit]").first.click()
        one.page.wait_for_url(lambda url: "/sign-in/" not in url)
        yield one
        one.violations()
        found.close()
