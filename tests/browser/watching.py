"""Which browser there is, and what of a page counts as an error."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

from playwright.sync_api import Page, Request

# The first one draws into no window and takes a third less of the processors.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
# Told to the page before its own scripts run.
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  const place = `${event.sourceFile}:${event.lineNumber}`;
  window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${place} ${event.sample}`);
});
"""


def chromium() -> str | None:
    """The browser that `CHROMIUM` names, else the system's."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def until(page: Page, condition: Callable[[], object]) -> None:
    """Let the page go on until it is so, for a minute at most."""
    for _look in range(600):
        if condition():
            return
        page.wait_for_timeout(100)
    raise AssertionError("it never came")


def note_errors(page: Page, note: Callable[[str], object]) -> None:
    """Call ``note`` with each error of the page's console, of its scripts and of its requests."""

    def failed(request: Request) -> None:
        failure = request.failure or ""
        # A page that is left breaks off what it was fetching; that is no error.
        if "ERR_ABORTED" not in failure:
            note(f"{request.url}: {failure}")

    page.on("console", lambda message: note(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: note(str(error)))
    page.on("requestfailed", failed)
