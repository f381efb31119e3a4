"""The quota editor by keyboard and mouse: it behaves as a spreadsheet does, and says what does not fit."""

from __future__ import annotations

import json

import psycopg
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Opener
from tests.browser.editor import copied, opened, paste, sent
from tests.web.console.cast import A100, H200, L40S


def test_keys_move_edit_and_undo(site: str, open_browser: Opener) -> None:
    watched, page, sheet = opened(site, open_browser)
    sheet.filter("", "training")
    sheet.cell("research-training", A100).click()
    press = page.keyboard.press
    expect(sheet.where).to_contain_text("research-training")
    expect(sheet.where).to_contain_text("now 48 · in use 16")
    page.keyboard.type("32")
    expect(page.locator(".sheet-input")).to_have_value("32")
    press("Tab")
    press("Tab")
    expect(sheet.where).to_contain_text(" · H200")
    press("F2")
    expect(page.locator(".sheet-input")).to_have_value("40")
    press("Escape")
    expect(page.locator("#count-changed")).to_have_text("1 changed")
    expect(sheet.cell("research-training", A100)).to_contain_text("48 →")
    press("Control+z")
    expect(page.locator("#count-changed")).to_have_text("nothing changed yet")
    press("Control+y")
    expect(page.locator("#count-changed")).to_have_text("1 changed")
    press("Control+Shift+z")
    press("ArrowDown")
    press("Shift+ArrowDown")
    press("Delete")
    press("Control+Home")
    expect(sheet.where).to_contain_text("Training")
    press("5")
    expect(page.locator(".sheet-input")).to_have_count(0)
    expect(sheet.message).to_contain_text("This cell cannot be edited.")
    press("Escape")
    expect(page.locator("#review")).to_be_focused()
    watched.check()


def test_a_block_is_copied_filled_and_pasted_from_a_spreadsheet(site: str, open_browser: Opener) -> None:
    watched, page, sheet = opened(site, open_browser)
    sheet.filter("-training", "training")
    sheet.cell("foundation-training", A100).click()
    paste(page, "21\t22\t23\n24\t25\t26\n")
    expect(page.locator("#count-changed")).to_have_text("6 changed")
    expect(page.locator("#sheet-sum")).to_have_text("6 cells, sum 141")
    assert copied(page) == "21\t22\t23\n24\t25\t26"
    page.keyboard.press("Control+z")
    expect(page.locator("#count-changed")).to_have_text("nothing changed yet")
    # A single value goes into all that is selected; what cannot be edited is left out and said.
    sheet.cell("research-training", H200).click()
    sheet.cell("search-training", H200).click(modifiers=["Shift"])
    paste(page, "16")
    expect(sheet.cell("research-training", H200)).to_contain_text("16")
    expect(sheet.cell("search-training", H200)).to_contain_text("16")
    page.keyboard.press("Control+z")
    sheet.cell("research-training", A100).click()
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Control+r")
    expect(sheet.cell("research-training", H200)).to_contain_text("48")
    page.keyboard.press("Control+z")
    # With names of rows and columns the place does not matter.
    paste(page, f"name\t{H200}\nvision-training\t7\nnobody\t9\n")
    expect(sheet.cell("vision-training", H200)).to_contain_text("7")
    expect(page.locator("#count-changed")).to_have_text("1 changed")
    expect(page.locator("#intake-left")).to_contain_text("Line 3 “nobody”: There is no row of this name here.")
    sheet.cell("vision-training", H200).click()
    paste(page, "many")
    expect(sheet.message).to_contain_text("“many” is not a number: write a point")
    watched.check()


def test_dragging_selects_and_a_value_is_set_everywhere(site: str, open_browser: Opener) -> None:
    watched, page, sheet = opened(site, open_browser)
    sheet.filter("", "training")
    sheet.cell("research-training", A100).hover()
    page.mouse.down()
    sheet.cell("search-training", H200).hover()
    page.mouse.up()
    page.locator("#set-value").fill("8")
    page.get_by_role("button", name="Set", exact=True).click()
    # Research, Search the tenant and Search the queue, each A100 and H200 and what lies between.
    assert int(page.locator("#count-changed").inner_text().split()[0]) >= 6
    page.keyboard.press("Control+z")
    expect(page.locator("#count-changed")).to_have_text("nothing changed yet")
    sheet.cell("research-training", A100).click()
    sheet.cell("vision-training", L40S).click(modifiers=["Control"])
    page.keyboard.type("3")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#count-changed")).to_have_text("2 changed")
    watched.check()


def test_an_error_stands_at_its_cell_as_one_types_with_what_mends_it(site: str, open_browser: Opener) -> None:
    watched, page, sheet = opened(site, open_browser)
    sheet.filter("search", "inference")
    cell = sheet.cell("search-rank-inference", H200)
    cell.click()
    page.keyboard.type("18")
    expect(page.locator(".sheet-input")).to_have_attribute("aria-invalid", "true")
    expect(sheet.message).to_contain_text("Rank gives out 18 H200, but has 16: 2 too many.")
    page.keyboard.press("Enter")
    expect(cell).to_have_attribute("aria-invalid", "true")
    sheet.type("Rank", H200, "18")
    expect(page.locator("#count-errors")).to_have_text("no errors")
    expect(cell).not_to_have_attribute("aria-invalid", "true")
    # Search has 20: a second project asks for more than is left; the cluster has some.
    sheet.type("search-suggest-inference", H200, "4")
    expect(sheet.faults).to_contain_text("Search gives out 22 H200, but has 20: 2 too many.")
    sheet.faults.get_by_role("button", name="Go to the cell").click()
    expect(sheet.where).to_contain_text("Search · H200")
    expect(page.locator("#count-checked")).to_have_text("checked with the server")
    sheet.type("search-rank-inference", H200, "10")
    expect(sheet.message).to_contain_text("12 are in use: no gang is evicted by that")
    watched.picture("quota-editor-errors-light-1440")
    watched.check()
    sheet.faults.get_by_role("button", name="Raise Search 20 → 22").click()
    assert sent(page) == {
        "project/search/search-rank-inference": {"quota": {"inference": {"card_quota": {H200: 18}}}},
        "queue/search-rank-inference": {"card_quota": {H200: 10}},
        "queue/search-suggest-inference": {"card_quota": {H200: 4}},
        "tenant/search": {"quota": {"inference": {"card_quota": {H200: 22}}}},
    }


def test_a_breach_names_the_edits_that_mend_it_and_holds_the_review(site: str, open_browser: Opener) -> None:
    watched, page, sheet = opened(site, open_browser)
    review, why = page.locator("#review"), page.locator("#review-why")
    sheet.filter("", "inference")
    expect(why).to_be_hidden()
    # One edit: what Search has left is enough.
    sheet.type("search-rank-inference", H200, "18")
    mend = sheet.faults.get_by_role("button", name="Raise Rank 16 → 18")
    expect(mend).to_be_visible()
    expect(review).to_have_attribute("aria-disabled", "true")
    expect(why).to_have_text("Mend what does not fit first.")
    page.keyboard.press("Escape")
    expect(review).to_be_focused()
    page.keyboard.press("Enter")
    expect(sheet.faults).to_be_focused()
    expect(page.locator("#review-edits")).to_have_value("")
    watched.check()
    mend.click()
    expect(page.locator("#count-errors")).to_have_text("no errors")
    expect(review).to_have_attribute("aria-disabled", "false")
    expect(why).to_be_hidden()
    page.keyboard.press("Control+z")
    expect(mend).to_be_visible()
    page.keyboard.press("Control+z")
    # Two edits, one step: the cluster has 16 left for Shop, and 2 are missing.
    sheet.type("shop-ads-inference", H200, "30")
    sheet.faults.get_by_role("button", name="Lower Search 20 → 18 and raise Shop 12 → 30").click()
    expect(page.locator("#count-changed")).to_have_text("3 changed")
    expect(page.locator("#count-checked")).to_have_text("checked with the server")
    expect(page.locator("#count-errors")).to_have_text("no errors")
    page.keyboard.press("Control+z")
    expect(page.locator("#count-changed")).to_have_text("1 changed")
    page.keyboard.press("Control+z")
    # Where nobody has cards to give, what was typed goes back.
    sheet.type("search-suggest-inference", H200, "4")
    sheet.type("search-rank-inference", H200, "18")
    sheet.faults.get_by_role("button", name="Lower search-rank-inference 18 → 16").click()
    expect(page.locator("#count-errors")).to_have_text("no errors")
    expect(page.locator("#count-changed")).to_have_text("1 changed")


def test_where_nothing_is_left_above_that_is_said_without_a_figure(site: str, open_browser: Opener) -> None:
    watched, _page, sheet = opened(site, open_browser)
    sheet.filter("search", "inference")
    sheet.type("search-suggest-inference", H200, "4")
    sheet.type("search-rank-inference", H200, "18")
    expect(sheet.faults).to_contain_text("Rank would need 18, but Search has none left.")
    watched.check()


def test_what_is_wrong_is_said_beside_the_cell_and_counted_while_it_is_typed(site: str, open_browser: Opener) -> None:
    watched, page, sheet = opened(site, open_browser)
    sheet.filter("Rank", "inference")
    sheet.cell("search-rank-inference", H200).click()
    page.keyboard.type("abc")
    page.keyboard.press("Enter")
    tip, field = page.locator(".sheet-tip[aria-hidden]"), page.locator(".sheet-input")
    expect(tip).to_contain_text("“abc” is not a number: write a point")
    below, cell = tip.bounding_box(), field.bounding_box()
    assert below is not None
    assert cell is not None
    assert abs(below["y"] - cell["y"] - cell["height"]) < 10
    expect(page.locator("#count-errors")).to_have_text("1 error")
    watched.picture("quota-editor-tip-light-1440")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    expect(page.locator("#count-errors")).to_have_text("no errors")
    # Rank is the only one that can give more to its queue: what Search has left for it is said.
    sheet.type("search-rank-inference", H200, "18")
    expect(sheet.faults).to_contain_text("Rank gives out 18 H200, but has 16: 2 too many.")
    # The head's clock goes on although nothing of this page is fetched again.
    face = page.locator("#cluster-clock")
    assert face.get_attribute("data-rate")
    watched.check()


def test_units_of_other_columns(site: str, open_browser: Opener) -> None:
    _watched, page, sheet = opened(site, open_browser)
    sheet.filter("search-training", "training")
    sheet.type("search-training", "CPU cores", "1.5")
    sheet.type("search-training", "Memory in GiB", "2 TiB")
    sheet.type("search-training", "Weight", "0")
    expect(sheet.message).to_contain_text("At least 1, at most 65,535.")
    sheet.type("search-training", "Priority", "30 000")
    assert sent(page) == {
        "queue/search-training": {"cpu_milli": 1500, "memory_bytes": 2 * 2**40, "priority": 30000},
    }


@pytest.mark.parametrize("width", [390])
def test_a_finger_sets_a_value(site: str, open_browser: Opener, width: int) -> None:
    watched, page, sheet = opened(site, open_browser, width=width)
    sheet.filter("maps-route", "inference")
    sheet.cell("maps-route-inference", L40S).scroll_into_view_if_needed()
    sheet.cell("maps-route-inference", L40S).click()
    page.locator("#set-value").fill("12")
    page.get_by_role("button", name="Set", exact=True).click()
    expect(page.locator("#count-changed")).to_have_text("1 changed")
    watched.check()


def test_a_comma_that_could_be_a_fraction_is_asked_about(site: str, open_browser: Opener) -> None:
    _watched, page, sheet = opened(site, open_browser)
    sheet.filter("search-training", "training")
    asked = {
        "1,5": "is not a number: write a point for a fraction", "8,000": "can mean 8 or 8 000: write 8 or 8000.",
        "1.500": "can mean 1.5 or 1 500: write 1.5 or 1500.", "2E+03": "A spreadsheet has shortened this number",
    }  # fmt: skip
    for text, words in asked.items():
        sheet.cell("search-training", H200).click()
        page.keyboard.type(text)
        page.keyboard.press("Enter")
        expect(page.locator(".sheet-input")).to_have_attribute("aria-invalid", "true")
        expect(sheet.message).to_contain_text(words)
        page.keyboard.press("Escape")
    expect(page.locator("#count-changed")).to_have_text("nothing changed yet")
    sheet.type("search-training", "CPU cores", "1500")
    expect(sheet.cell("search-training", "CPU cores")).to_contain_text("1,500")
    # What means nothing and is left by a click is listed: it was typed.
    sheet.cell("search-training", H200).click()
    page.keyboard.type("eight")
    sheet.cell("search-training", A100).click()
    expect(page.locator("#intake-left")).to_contain_text("search-training · H200 “eight”: “eight” is not a number")


def test_undo_takes_the_servers_word_back_and_the_limit_says_its_rule(site: str, open_browser: Opener) -> None:
    watched, page, sheet = opened(site, open_browser)
    sheet.filter("search", "inference")
    sheet.type("Search", H200, "60")
    expect(sheet.faults).to_contain_text("but at most 48 may be (hardware 48 × ratio 1.0 = 48)")
    expect(page.locator("#count-checked")).to_have_text("checked with the server")
    expect(page.locator("#count-errors")).not_to_have_text("no errors")
    expect(page.locator("#count-errors")).to_have_attribute("href", "#faults")
    page.keyboard.press("Control+z")
    expect(page.locator("#count-errors")).to_have_text("no errors")
    expect(page.locator("#count-errors")).not_to_have_attribute("href", "#faults")
    expect(page.locator("#count-changed")).to_have_text("nothing changed yet")
    page.keyboard.press("Control+Home")
    sheet.cell("Inference", H200).click()
    expect(sheet.where).to_contain_text("hardware 48 × ratio 1.0 = 48")
    watched.check()


@pytest.mark.proof
def test_use_and_tide_plans_move_while_the_grid_stays_open(site: str, open_browser: Opener, site_database: str) -> None:
    """Nothing is edited and no version of the tree moves: only what is in use, and what a plan turns."""
    _watched, page, sheet = opened(site, open_browser)
    sheet.filter("search-training", "training")
    sheet.cell("search-training", A100).click()
    usage = "UPDATE scheduling_queueusage u SET allocated = %s FROM quota_queue q "
    mine = "WHERE q.id = u.queue_id AND q.name = 'search-training' AND u.card = %s RETURNING u.quota"
    tide = "UPDATE quota_queue SET tide = %s WHERE name = 'search-training'"
    with psycopg.connect(site_database, autocommit=True) as connection:
        before = connection.execute(
            "SELECT u.allocated FROM scheduling_queueusage u JOIN quota_queue q ON q.id = u.queue_id "
            "WHERE q.name = 'search-training' AND u.card = %s",
            [A100],
        ).fetchone()
        assert before is not None
        try:
            connection.execute(usage + mine, [57_000, A100])
            connection.execute(tide, [json.dumps({A100: 61})])
            where = page.locator("#sheet-where")
            expect(where).to_contain_text("in use 57")
            expect(where).to_contain_text("61 now by a tide plan")
            expect(page.locator("#count-changed")).to_have_text("nothing changed yet")
            connection.execute(tide, ["{}"])
            expect(where).not_to_contain_text("by a tide plan")
        finally:
            connection.execute(usage + mine, [before[0], A100])
            connection.execute(tide, ["{}"])
