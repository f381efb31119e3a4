"""What pages cost on the wire, as a real browser counts it: the first one, and one that stays open."""

from __future__ import annotations

import pytest
from playwright.sync_api import Request

from tests.browser.conftest import Opener
from tests.browser.watching import until

FIRST_PAGE = 400 * 1024
# A page asks again at most every 10 s.
ASKED_IN_AN_HOUR = 3600 / 10
MOST_IN_AN_HOUR = 3_000_000


def cost(request: Request) -> int:
    """Bytes that came for one request, head and body."""
    sizes = request.sizes()
    return sizes["responseBodySize"] + sizes["responseHeadersSize"]


def test_the_first_page_with_its_figure_and_a_page_left_open(site: str, open_browser: Opener) -> None:
    watched = open_browser(site, user="admin", theme="light", width=1440)
    page = watched.page
    # Signing in has filled the cache with what the overview needs too.
    session = page.context.new_cdp_session(page)
    session.send("Network.clearBrowserCache")
    finished: list[Request] = []
    page.on("requestfinished", lambda one: finished.append(one))  # noqa: PLW0108  # its own method takes no mark
    watched.open("/clusters/demo/")
    assert page.locator("[data-figure]").first.get_attribute("data-state") == "drawn"
    total = sum({one.url: cost(one) for one in finished}.values())  # what a live event brings anew counts once
    assert total < FIRST_PAGE, sorted(((cost(one), one.url) for one in finished), reverse=True)
    page.get_by_role("button", name="Cluster").click()
    assert page.locator(".dropdown-menu.show").is_visible()
    page.keyboard.press("Escape")
    assert page.locator(".dropdown-menu.show").count() == 0
    watched.check()


@pytest.mark.parametrize("path", ["", "nodes/", "quota/", "gangs/"])
def test_a_page_left_open_where_nothing_moves(site: str, open_browser: Opener, path: str) -> None:
    watched = open_browser(site, user="admin", theme="light", width=1440)
    page = watched.page
    watched.open(f"/clusters/demo/{path}")
    ask = "htmx.trigger(document.getElementById('live'), 'refetch')"
    with page.expect_request_finished(lambda one: one.headers.get("hx-request") == "true"):
        page.evaluate(ask)
    until(page, lambda: page.locator(".htmx-request").count() == 0)
    with page.expect_request_finished(lambda one: one.headers.get("hx-request") == "true") as again:
        page.evaluate(ask)
    answer = again.value.response()
    assert answer is not None
    assert answer.status == 304
    assert cost(again.value) * ASKED_IN_AN_HOUR < MOST_IN_AN_HOUR
    watched.check()
