"""A real Chromium. A page passes only without console errors, policy violations and accessibility violations."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, StorageState, expect, sync_playwright

from tests.browser import servers
from tests.browser.watching import WATCH, chromium, note_errors
from tests.passwords import PASSWORD
from tidesched_web.console import assets

ROOT = servers.ROOT
SCREENS = ROOT / "test-results" / "screens"
FLAKES = ROOT / "test-results" / "flakes.txt"
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"


# Playwright's own patience of five seconds is no statement about the product.
expect.set_options(timeout=60_000)

# What axe looks at, and each violation as one line.
AUDIT = """
axe.run(document, {
  resultTypes: ["violations"],
  runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
}).then(({violations}) => violations.map(({id, help, nodes}) => {
  const places = nodes.slice(0, 3).map((node) => `${node.target.join(" ")} ${node.any[0]?.message || ""}`);
  return `${id}: ${help}: ${places.join(" | ")}`;
}))
"""


# Rules that are left out of the dashboard kit and would apply here after all.
TOO_WIDE = """
[...document.querySelectorAll('body *')]
  .filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > document.documentElement.clientWidth)
  .map((one) => one.outerHTML.slice(0, 120)).slice(-5)
"""
MISSED = """
(selectors) => selectors.filter((selector) => {
  try {
    const found = [...document.querySelectorAll(selector.replace(/::[\\w-]+$/, ""))];
    // A figure brings its own rules for its own classes.
    return found.some((element) => !element.closest(".js-plotly-plot"));
  } catch {
    return false;
  }
})
"""


@cache
def left_out() -> list[str]:
    """The selectors that the dashboard kit's style sheet has and ours has not."""
    css = (ROOT / "node_modules" / assets.STYLE).read_text(encoding="utf-8")
    return sorted(set(assets.lean_style(css, assets.words_of(ROOT))[1]))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say in one line what is missing, and skip; under CI it fails instead."""
    missing = None
    if chromium() is None:
        missing = "no Chromium: set CHROMIUM or install one"
    elif not AXE.exists():
        missing = "axe-core is not installed: run make check once"
    for item in items:
        if Path(item.fspath).is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.timeout(600))
            if missing and not os.environ.get("CI"):
                item.add_marker(pytest.mark.skip(reason=missing))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Only browser tests are run once more where they fail; that is never silent."""
    if report.outcome == "rerun" and "PYTEST_XDIST_WORKER" not in os.environ:
        FLAKES.parent.mkdir(exist_ok=True)
        text = f"{report.nodeid} ran again, since it failed:\n{report.longreprtext}\n"
        print(f"\n{text}", file=sys.stderr)
        with FLAKES.open("a", encoding="utf-8") as file:
            file.write(text)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage", "--font-render-hinting=none"]
        )
        yield found
        found.close()


# The database behind each address that is served.
_databases: dict[str, str] = {}


def _served(tmp_path_factory: pytest.TempPathFactory, story: str, number: int) -> Iterator[str]:
    folder = tmp_path_factory.mktemp(f"web-{story}")
    redis = servers.with_redis_number(os.environ["REDIS_URL"], number)
    with servers.database(os.environ["DATABASE_URL"]) as url:
        environment = {"DATABASE_URL": url, "REDIS_URL": redis}
        with servers.web(environment, folder, story=story) as address:
            _databases[address] = url
            yield address


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A console in full tide."""
    yield from _served(tmp_path_factory, "full", 3)


@pytest.fixture(scope="session")
def site_database(site: str) -> str:
    """Where the process of `site` has its rows."""
    return _databases[site]


@pytest.fixture(scope="session")
def bare_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A console whose cluster no session has looked at."""
    yield from _served(tmp_path_factory, "bare", 4)


@pytest.fixture(scope="session")
def site_redis() -> str:
    """Where the process of `site` listens for events."""
    return servers.with_redis_number(os.environ["REDIS_URL"], 3)


class Watched:
    """A page whose errors count."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.address = page, address
        self.errors: list[str] = []
        note_errors(page, self.errors.append)

    def open(self, path: str) -> None:
        """Go to a page and wait until its figures are drawn."""
        self.page.goto(f"{self.address}{path}", wait_until="load")
        self.settle()

    def settle(self) -> None:
        """Wait until every figure of the page is drawn (or says why not)."""
        self.page.locator("[data-figure]:not([data-state])").first.wait_for(state="detached")

    def check(self) -> None:
        """No error of console, policy or accessibility, no sideways scrolling, nothing that htmx would lose."""
        violations = self.page.evaluate("window.violations")
        assert violations == [], f"content security policy: {violations}"
        assert self.errors == []
        nested = self.page.locator("[hx-preserve] [hx-preserve]")
        assert nested.count() == 0, "htmx loses an element that is preserved inside a preserved one"
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate(AUDIT)
        assert found == [], "\n".join(found)
        missed = self.page.evaluate(MISSED, left_out())
        assert missed == [], f"the style sheet lacks rules of this page: {missed}"
        overflow = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        wide = self.page.evaluate(TOO_WIDE) if overflow > 0 else []
        assert overflow <= 0, f"the page is {overflow} px wider than the window: {wide}"

    def picture(self, name: str) -> None:
        """Write the whole page as a picture."""
        SCREENS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENS / f"{name}.png", full_page=True)


Opener = Callable[..., Watched]
# What a browser keeps of a sign-in: tests that go on from there need not sign in again.
_signed_in: dict[tuple[str | None, ...], StorageState] = {}


@pytest.fixture
def open_browser(browser: Browser) -> Iterator[Opener]:
    """Open a page as an account, in a theme, a width and a language."""
    contexts: list[BrowserContext] = []

    def opener(
        address: str,
        *,
        user: str | None = "admin",
        theme: str = "light",
        width: int = 1440,
        language: str = "en",
        password: str = PASSWORD,
    ) -> Watched:
        who = (address, user, password, language)
        context = browser.new_context(
            storage_state=_signed_in.get(who),
            viewport={"width": width, "height": 900},
            color_scheme="dark" if theme == "dark" else "light",
            locale="zh-CN" if language == "zh-hans" else "en-GB",
            timezone_id="Asia/Shanghai",
            reduced_motion="reduce",
        )
        contexts.append(context)
        context.add_init_script(WATCH)
        context.set_default_timeout(60_000)
        watched = Watched(context.new_page(), address)
        if user is not None and who not in _signed_in:
            watched.page.goto(f"{address}/sign-in/")
            watched.page.get_by_role("textbox").first.fill(user)
            watched.page.locator("input[type=password]").fill(password)
            watched.page.locator("button.btn-primary[type=submit]").click()
            watched.page.wait_for_url(lambda url: "/sign-in/" not in url)
            _signed_in[who] = context.storage_state()
        return watched

    yield opener
    for context in contexts:
        context.close()
