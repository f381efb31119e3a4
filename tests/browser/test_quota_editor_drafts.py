"""What becomes of typed edits: kept, sent to review, and laid beside what a colleague applies."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Opener
from tests.browser.editor import EDIT, opened
from tests.browser.sheet import Sheet
from tests.web.console.cast import A100, H200, L40S


def test_a_draft_survives_and_can_be_discarded(site: str, open_browser: Opener) -> None:
    watched, page, sheet = opened(site, open_browser)
    sheet.filter("search-training", "training")
    sheet.type("search-training", H200, "20")
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.reload()
    assert asked == ["beforeunload"]
    sheet = Sheet(page)
    said = re.compile(r"Your draft of \d{4}-\d\d-\d\d \d\d:\d\d UTC\+8 is back: 1 cell\.")
    expect(page.locator("#draft-text")).to_have_text(said)
    expect(page.locator("#count-changed")).to_have_text("1 changed")
    page.locator("#filter-show").select_option("changed")
    expect(sheet.cell("search-training", H200)).to_contain_text("24 →")
    page.get_by_role("button", name="Discard").first.click()
    page.locator("#discard-now").click()
    expect(page.locator("#count-changed")).to_have_text("nothing changed yet")
    page.keyboard.press("Control+z")
    expect(page.locator("#count-changed")).to_have_text("1 changed")
    page.keyboard.press("Control+y")
    watched.check()


def test_the_grid_says_that_a_second_person_has_to_agree(site: str, open_browser: Opener) -> None:
    watched = open_browser(site)
    watched.open("/tenants/shop/approval/")
    watched.page.locator("[name=reason]").fill("Two pairs of eyes.")
    watched.page.locator("form[data-edit] button.btn-primary").click()
    watched.page.wait_for_url("**/tenants/shop/")
    watched.open(EDIT)
    sheet = Sheet(watched.page)
    sheet.filter("shop", "inference")
    sheet.type("shop-ads-inference", A100, "11")
    expect(watched.page.locator("#count-checked")).to_have_text(
        "checked with the server · a second person has to approve this (tenant Shop)"
    )
    watched.check()


def test_a_review_by_hand(site: str, open_browser: Opener) -> None:
    watched, page, sheet = opened(site, open_browser)
    sheet.filter("vision-ocr", "inference")
    sheet.type("vision-ocr-inference", "NVIDIA-GeForce-RTX-4090", "9")
    page.get_by_role("button", name="Review").click()
    page.wait_for_url("**/changes/*/")
    expect(page.locator("[aria-labelledby=fields-title]")).to_contain_text("−1")
    # The object holds what the story's tide plan makes of 9 at its hour.
    expect(page.locator(".diff .now.on")).to_contain_text("NVIDIA-GeForce-RTX-4090: 13")
    page.get_by_role("link", name="Go on editing").click()
    again = Sheet(page)
    again.filter("vision-ocr", "inference")
    expect(again.cell("vision-ocr-inference", "NVIDIA-GeForce-RTX-4090")).to_contain_text("10 →")
    again.type("vision-ocr-inference", "NVIDIA-GeForce-RTX-4090", "8")
    page.get_by_role("button", name="Review").click()
    page.wait_for_url("**/changes/*/")
    expect(page.locator("[aria-labelledby=fields-title]")).to_contain_text("−2")
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_label("Reason", exact=True)).to_be_focused()
    page.get_by_label("Reason", exact=True).fill("One of them is broken.")
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.locator("[aria-labelledby=where-title]")).to_contain_text("One of them is broken.")
    watched.check()


def test_a_draft_that_was_sent_does_not_come_back(site: str, open_browser: Opener) -> None:
    watched, page, sheet = opened(site, open_browser)
    for outcome in ("given up", "applied and rolled back"):
        sheet.filter("maps-route", "inference")
        sheet.type("maps-route-inference", L40S, "11")
        page.get_by_role("button", name="Review").click()
        page.wait_for_url("**/changes/*/")
        if outcome == "given up":
            expect(page.get_by_role("button", name="Cancel it for good")).to_be_hidden()
            page.get_by_text("Cancel this change").click()
            page.get_by_role("button", name="Cancel it for good").click()
            expect(page.get_by_text("is cancelled.")).to_be_visible()
        else:
            for _change in ("it", "its roll back"):
                page.get_by_label("Reason", exact=True).fill("To see whether it comes back.")
                page.get_by_role("button", name="Apply", exact=True).click()
                expect(page.get_by_role("button", name="Roll back").first).to_be_visible()
                if _change == "it":
                    page.get_by_role("button", name="Roll back").first.click()
                    expect(page.get_by_role("button", name="Apply", exact=True)).to_be_visible()
        watched.open(EDIT)
        sheet = Sheet(page)
        expect(page.locator("#count-changed")).to_have_text("nothing changed yet")
        expect(page.locator("#draft-note")).to_be_hidden()


def test_a_draft_that_was_sent_and_edited_again_does_not_come_back(site: str, open_browser: Opener) -> None:
    watched, page, sheet = opened(site, open_browser)
    sheet.filter("search-training", "training")
    sheet.type("search-training", H200, "9")
    page.get_by_role("button", name="Review").click()
    page.wait_for_url("**/changes/*/")
    page.get_by_role("link", name="Go on editing").click()
    sheet = Sheet(page)
    sheet.filter("search-training", "training")
    sheet.type("search-training", H200, "10")
    page.get_by_role("button", name="Review").click()
    page.wait_for_url("**/changes/*/")
    watched.open(EDIT)
    Sheet(page)
    expect(page.locator("#count-changed")).to_have_text("nothing changed yet")
    expect(page.locator("#draft-note")).to_be_hidden()


def test_a_request_that_never_arrived_loses_nothing(site: str, open_browser: Opener) -> None:
    watched, page, sheet = opened(site, open_browser)
    sheet.filter("maps-route", "inference")
    sheet.type("maps-route-inference", L40S, "11")
    page.route("**/quota/edit/review/", lambda route: route.abort())
    with page.expect_event("requestfailed"):
        page.get_by_role("button", name="Review").click()
    page.unroute("**/quota/edit/review/")
    watched.open(EDIT)
    expect(page.locator("#draft-text")).to_contain_text("is back: 1 cell.")
    expect(page.locator("#count-changed")).to_have_text("1 changed")
    page.get_by_role("button", name="Discard").first.click()
    page.locator("#discard-now").click()


def test_two_people_edit_at_once_and_nothing_is_lost(site: str, open_browser: Opener) -> None:
    _one, page, sheet = opened(site, open_browser)
    _two, other, their_sheet = opened(site, open_browser)
    # The first edits two figures of one queue and one of another.
    sheet.filter("foundation", "training")
    sheet.type("foundation-training", H200, "3")
    sheet.type("foundation-training", "Weight", "4")
    # The second applies another value of one of them, and a figure that the first does not touch.
    their_sheet.filter("foundation", "training")
    their_sheet.type("foundation-training", H200, "5")
    their_sheet.type("foundation-training", A100, "2")
    other.get_by_role("button", name="Review").click()
    other.wait_for_url("**/changes/*/")
    other.get_by_label("Reason", exact=True).fill("First come.")
    other.get_by_role("button", name="Apply", exact=True).click()
    expect(other.get_by_role("button", name="Roll back").first).to_be_visible()
    # It comes into the first one's grid by itself: the untouched figure as it is now, the typed ones as typed.
    expect(page.locator("#moved-title")).to_contain_text("1 of them you edited too")
    expect(page.locator("#moved-list")).to_contain_text("Yours is 3, and stays.")
    expect(sheet.cell("foundation-training", A100)).to_contain_text("2")
    expect(sheet.cell("foundation-training", H200)).to_contain_text("5 →")
    expect(page.locator("#count-changed")).to_have_text("2 changed")
    page.get_by_role("button", name="Review").click()
    page.wait_for_url("**/changes/*/")
    page.get_by_label("Reason", exact=True).fill("Second, with open eyes.")
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_role("button", name="Roll back").first).to_be_visible()
    _one.open(EDIT)
    sheet = Sheet(page)
    sheet.filter("foundation", "training")
    for column, figure in ((H200, "3"), (A100, "2"), ("Weight", "4")):
        expect(sheet.cell("foundation-training", column)).to_contain_text(figure)


# The grid asks each ten seconds by itself; without that it asks only as a cell is opened and as one is closed.
WITHOUT_ROUNDS = (
    "{ const own = setInterval; window.setInterval = (act, wait) => (wait === 10000 ? 0 : own(act, wait)); }"
)


@pytest.mark.parametrize("asks", ["in rounds", "as a cell is opened", "as a cell is closed"])
def test_a_colleagues_figure_stands_beside_the_open_cell_and_nothing_typed_is_lost(
    site: str, open_browser: Opener, asks: str
) -> None:
    one, page, sheet = opened(site, open_browser)
    if asks != "in rounds":
        page.add_init_script(WITHOUT_ROUNDS)
        one.open(EDIT)
        sheet = Sheet(page)
    _two, other, their_sheet = opened(site, open_browser)
    figure = {"in rounds": "15", "as a cell is opened": "16", "as a cell is closed": "17"}[asks]
    sheet.filter("search-training", "training")
    cell, field = sheet.cell("search-training", H200), page.locator(".sheet-input")
    news = page.locator(".sheet-tip[role=status]")
    cell.click()
    if asks != "as a cell is opened":
        with page.expect_response("**/quota/edit/data/**"):
            page.keyboard.type("7")
    their_sheet.filter("search-training", "training")
    their_sheet.type("search-training", H200, figure)
    other.get_by_role("button", name="Review").click()
    other.wait_for_url("**/changes/*/")
    other.get_by_label("Reason", exact=True).fill("A colleague's figure.")
    other.get_by_role("button", name="Apply", exact=True).click()
    expect(other.get_by_role("button", name="Roll back").first).to_be_visible()
    if asks == "as a cell is opened":
        page.keyboard.type("7")
    if asks != "as a cell is closed":
        expect(news).to_contain_text(re.compile(rf"set {figure} (?:a moment|\d+ min) ago"))
        assert "Another person" not in news.inner_text(), "a name"
    expect(field).to_be_focused()
    expect(field).to_have_value("7")
    page.keyboard.press("Enter")
    expect(news).to_be_hidden()
    expect(page.locator("#moved-title")).to_contain_text("1 of them you edited too")
    expect(page.locator("#moved-list")).to_contain_text(f"set {figure}")
    expect(page.locator("#moved-list")).to_contain_text("Yours is 7, and stays.")
    expect(cell).to_contain_text(f"{figure} →")
    expect(page.locator("#count-changed")).to_have_text("1 changed")
    if asks == "in rounds":
        # The panel stays, and how long ago it was goes on.
        page.evaluate("() => { const now = Date.now; Date.now = () => now.call(Date) + 180_000; }")
        expect(page.locator("#moved-list")).to_contain_text(re.compile(rf"set {figure} \d+ min ago"))
    one.check()


@pytest.mark.proof
def test_a_figure_that_a_colleague_applied_too_is_still_wanted_when_the_next_one_changes_it(
    site: str, open_browser: Opener
) -> None:
    _one, page, sheet = opened(site, open_browser)
    _two, other, their_sheet = opened(site, open_browser)
    sheet.filter("search-training", "training")
    sheet.type("search-training", H200, "13")
    for figure in ("13", "14"):
        their_sheet.filter("search-training", "training")
        their_sheet.type("search-training", H200, figure)
        other.get_by_role("button", name="Review").click()
        other.wait_for_url("**/changes/*/")
        other.get_by_label("Reason", exact=True).fill("The same figure, then another one.")
        other.get_by_role("button", name="Apply", exact=True).click()
        expect(other.get_by_role("button", name="Roll back").first).to_be_visible()
        if figure == "13":
            expect(page.locator("#count-changed")).to_have_text("nothing changed yet")
            page.once("dialog", lambda dialog: dialog.accept())
            page.reload()  # and the wish is kept by the browser, too
            sheet = Sheet(page)
            sheet.filter("search-training", "training")
            _two.open(EDIT)
            their_sheet = Sheet(other)
    expect(page.locator("#moved-list")).to_contain_text("Yours is 13, and stays.")
    expect(sheet.cell("search-training", H200)).to_contain_text("14 →")
    expect(page.locator("#count-changed")).to_have_text("1 changed")


def test_who_had_not_seen_what_moved_is_shown_it_at_the_review(site: str, open_browser: Opener) -> None:
    _one, page, sheet = opened(site, open_browser)
    _two, other, their_sheet = opened(site, open_browser)
    page.route("**/quota/edit/data/**", lambda route: route.abort())
    page.evaluate("window.stop()")
    for one, figure in ((their_sheet, "21"), (sheet, "22")):
        one.filter("search-training", "training")
        one.type("search-training", H200, figure)
    other.get_by_role("button", name="Review").click()
    other.wait_for_url("**/changes/*/")
    other.get_by_label("Reason", exact=True).fill("First come.")
    other.get_by_role("button", name="Apply", exact=True).click()
    expect(other.get_by_role("button", name="Roll back").first).to_be_visible()
    page.get_by_role("button", name="Review").click()
    page.wait_for_url("**/changes/*/")
    moved = page.locator("[aria-labelledby=stale-title]")
    expect(moved).to_contain_text("21")
    expect(page.get_by_role("button", name="Apply", exact=True)).to_be_disabled()
    page.get_by_role("button", name="Understood: still set to 22").click()
    expect(page.get_by_role("button", name="Apply", exact=True)).to_be_enabled()
