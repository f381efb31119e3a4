"""The page of the API's description in a real browser: it loads under the strict policy, and a request can be tried.

Its inside is Swagger UI's own, so what axe says of it is not asked here.
"""

from __future__ import annotations

from tests.browser.conftest import Opener


def test_the_page_shows_the_operations_and_tries_one(site: str, open_browser: Opener) -> None:
    watched = open_browser(site)
    page = watched.page
    page.goto(f"{site}/api/v1/schema/docs/")
    operation = page.locator("#operations-tenants-tenants_list")
    # The server makes the document and the browser shows all of its operations first: both take long on a busy machine.
    operation.locator("button.opblock-summary-control").click(timeout=90_000)
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    operation.locator(".live-responses-table .response-col_status", has_text="200").wait_for()
    watched.picture("schema-light-1440")
    assert page.evaluate("window.violations") == []
    assert watched.errors == []
