"""The grid of a tenant's admin: more than the tenant has is a request, marked as one, and nothing less can be typed."""

from __future__ import annotations

import json

from playwright.sync_api import expect

from tests.browser.conftest import Opener
from tests.browser.sheet import Sheet
from tests.web.console.cast import H200

TENANT, QUEUE = "Search", "search-suggest-inference"


def test_more_than_the_tenant_has_is_asked_for_on_the_grid(site: str, open_browser: Opener) -> None:
    watched = open_browser(site, user="lead")
    watched.open("/clusters/demo/quota/edit/")
    page, sheet = watched.page, Sheet(watched.page)
    # Without the rows of the service types above them, the tenant's two rows say which is which.
    rows = page.locator(".sheet-row.kind-tenant .sheet-about")
    expect(rows).to_have_text(["Inference", "Training"])
    sheet.filter("", "inference")
    sheet.type(QUEUE, H200, "8")
    expect(sheet.faults).to_contain_text("Search gives out 24 H200, but has 20: 4 too many.")
    expect(sheet.faults).to_contain_text(
        "Type 24 for Search too: that asks for it, and a platform admin has to approve it."
    )
    sheet.faults.get_by_role("button", name="Raise Search 20 → 24").click()
    expect(page.locator("#count-changed")).to_have_text("2 changed · 1 for a platform admin to approve")
    page.keyboard.press("Control+z")
    # Less than it has, or no limit, is the platform's to say.
    tenant = sheet.cell(TENANT, H200)
    tenant.click()
    page.keyboard.type("10")
    expect(sheet.message).to_have_text("Only more than 20 can be asked for here.")
    page.keyboard.press("Escape")
    sheet.type(TENANT, H200, "24")
    expect(sheet.message).to_have_text(
        "This asks for 4 more than Search has: a platform admin has to approve the change."
    )
    expect(page.locator(".sheet-row.kind-tenant .sheet-asks")).to_have_text("request")
    expect(page.locator("#count-changed")).to_have_text("2 changed · 1 for a platform admin to approve")
    expect(sheet.faults).to_be_hidden()
    # Where there is no limit there is nothing to ask for.
    page.keyboard.press("End")
    page.keyboard.type("7")
    expect(page.locator(".sheet-input")).to_have_count(0)
    page.evaluate("document.getElementById('review-form').addEventListener('submit', (e) => e.preventDefault())")
    page.locator("#review").click()
    assert json.loads(page.locator("#review-edits").input_value()) == {
        f"queue/{QUEUE}": {"card_quota": {H200: 8}},
        "tenant/search": {"quota": {"inference": {"card_quota": {H200: 24}}}},
    }
    watched.check()
