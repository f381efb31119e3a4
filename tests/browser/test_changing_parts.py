"""The changing part of a page is fetched while its forms are used: a late answer finds its page, no field is lost."""

from __future__ import annotations

from playwright.sync_api import Route, expect

from tests.browser.conftest import Opener
from tests.browser.sheet import Sheet
from tests.web.console.cast import RTX


def test_an_answer_that_comes_late_finds_its_page(site: str, open_browser: Opener) -> None:
    watched = open_browser(site)
    page = watched.page
    watched.open("/clusters/demo/quota/edit/")
    sheet = Sheet(page)
    sheet.filter("vision-ocr", "inference")
    sheet.type("vision-ocr-inference", RTX, "7")
    page.get_by_role("button", name="Review").click()
    page.wait_for_url("**/changes/*/")
    page.get_by_label("Reason", exact=True).fill("Late answers.")
    seen = page.locator("[name=revision][form^=apply]")
    for _again in range(2):
        with page.expect_response(lambda answer: answer.request.headers.get("hx-target") == "live"):
            page.evaluate("window.htmx.trigger(document.getElementById('live'), 'refetch')")
        page.wait_for_timeout(300)
        # The form is bound to what was reviewed before the page followed the cluster, and keeps what was typed.
        expect(seen).to_have_value("1")
        expect(page.get_by_label("Reason", exact=True)).to_have_value("Late answers.")
    held: list[Route] = []

    def hold(route: Route) -> None:
        if not held and route.request.headers.get("hx-target") == "live":
            held.append(route)
        else:
            route.continue_()

    page.route("**/changes/*/", hold)
    page.get_by_role("button", name="Apply", exact=True).click()
    # Nothing carries it here, so the page goes on asking; its first question is answered last.
    expect(page.locator("[aria-labelledby=where-title]")).to_contain_text("Applying")
    for _wait in range(100):
        if held:
            break
        page.wait_for_timeout(100)
    page.evaluate("window.htmx.trigger(document.getElementById('live'), 'refetch')")
    page.wait_for_timeout(1500)
    held[0].continue_()
    page.wait_for_timeout(1500)
    expect(page.locator("#live")).to_have_count(1)
    watched.check()
