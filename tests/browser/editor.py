"""The quota editor: opened, pasted into, copied from, and what it would send to review."""

from __future__ import annotations

import json

from playwright.sync_api import Page

from tests.browser.conftest import Opener, Watched
from tests.browser.sheet import Sheet

EDIT = "/clusters/demo/quota/edit/"


def opened(site: str, open_browser: Opener, **more: object) -> tuple[Watched, Page, Sheet]:
    watched = open_browser(site, **more)
    watched.open(EDIT)
    return watched, watched.page, Sheet(watched.page)


def paste(page: Page, text: str) -> None:
    """What the browser does with Ctrl+V, whatever the system's clipboard holds."""
    page.evaluate(
        """text => {
          const data = new DataTransfer();
          data.setData("text/plain", text);
          const event = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
          document.activeElement.dispatchEvent(event);
        }""",
        text,
    )


def copied(page: Page) -> str:
    return str(
        page.evaluate(
            """() => {
              const data = new DataTransfer();
              const event = new ClipboardEvent("copy", { clipboardData: data, bubbles: true, cancelable: true });
              document.activeElement.dispatchEvent(event);
              return data.getData("text/plain");
            }"""
        )
    )


def sent(page: Page) -> dict[str, object]:
    """The edits as they would be sent to review."""
    page.evaluate("document.getElementById('review-form').addEventListener('submit', (e) => e.preventDefault())")
    page.locator("#review").click()
    found: dict[str, object] = json.loads(page.locator("#review-edits").input_value())
    return found
