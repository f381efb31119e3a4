"""The quota editor by keyboard, mouse and clipboard: it behaves as a spreadsheet does, and says what does not fit."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Opener, Watched
from tests.browser.sheet import Sheet
from tests.web.console.cast import A100, H200, L40S

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


def test_keys_move_edit_and_undo(site: str, open_browser: Opener) -> None:
    watched, page, sheet = opened(site, open_browser)
    sheet.filter("", "training")
    sheet.cell("research-training", A100).click()
    press = page.keyboard.press
    expect(sheet.where).to_contain_text("research-training")
    expect(sheet.where).to_contain_text("now 48, in use 16")
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
    paste(page, "1\t2\t3\n4\t5\t6\n")
    expect(page.locator("#count-changed")).to_have_text("6 changed")
    expect(page.locator("#sheet-sum")).to_have_text("6 cells, sum 21")
    assert copied(page) == "1\t2\t3\n4\t5\t6"
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
    expect(sheet.message).to_contain_text("“many” is no number.")
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


def test_an_error_stands_at_its_cell_as_one_types_with_who_could_give_way(site: str, open_browser: Opener) -> None:
    watched, page, sheet = opened(site, open_browser)
    sheet.filter("search", "inference")
    cell = sheet.cell("search-rank-inference", H200)
    cell.click()
    page.keyboard.type("18")
    expect(page.locator(".sheet-input")).to_have_attribute("aria-invalid", "true")
    expect(sheet.message).to_have_text("Rank gives out 18 H200, but has 16: 2 too many.")
    page.keyboard.press("Enter")
    expect(cell).to_have_attribute("aria-invalid", "true")
    sheet.type("Rank", H200, "18")
    expect(page.locator("#count-errors")).to_have_text("no errors")
    expect(cell).not_to_have_attribute("aria-invalid", "true")
    # Search has 20: a second project asks for more than is left, and the first could give way.
    sheet.type("search-suggest-inference", H200, "4")
    expect(sheet.faults).to_contain_text("Search gives out 22 H200, but has 20: 2 too many.")
    expect(sheet.faults).to_contain_text("Go to the cell")
    expect(page.locator("#count-checked")).to_have_text("checked with the server", timeout=30_000)
    sheet.type("search-rank-inference", H200, "10")
    expect(sheet.message).to_contain_text("12 are in use: no gang is evicted by that")
    watched.picture("quota-editor-errors-light-1440")
    watched.check()
    assert sent(page) == {
        "project/search/search-rank-inference": {"quota": {"inference": {"card_quota": {H200: 18}}}},
        "queue/search-rank-inference": {"card_quota": {H200: 10}},
        "queue/search-suggest-inference": {"card_quota": {H200: 4}},
    }


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


def test_a_draft_survives_and_can_be_discarded(site: str, open_browser: Opener) -> None:
    watched, page, sheet = opened(site, open_browser)
    sheet.filter("search-training", "training")
    sheet.type("search-training", H200, "20")
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.reload()
    assert asked == ["beforeunload"]
    sheet = Sheet(page)
    expect(page.locator("#draft-text")).to_contain_text("is back: 1 cell.")
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


def test_a_file_goes_out_and_comes_back(site: str, open_browser: Opener, tmp_path) -> None:
    _watched, page, sheet = opened(site, open_browser)
    with page.expect_download() as download:
        page.locator("#export-csv").click()
    target = tmp_path / "quotas.csv"
    download.value.save_as(target)
    lines = target.read_text("utf-8-sig").splitlines()
    assert lines[0].startswith("name,service_type,kind,")
    changed = [
        line.replace("research-training,training,queue,48", "research-training,training,queue,44") for line in lines
    ]
    assert changed != lines
    target.write_text("\n".join(changed), "utf-8")
    page.locator("#import-csv").set_input_files(target)
    expect(page.locator("#count-changed")).to_have_text("1 changed")
    assert sent(page) == {"queue/research-training": {"card_quota": {A100: 44}}}
    del sheet


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


SHEET = (
    f"name\tservice_type\t{H200}\tNVIDIA-B999\t{A100}\n"
    "research-training\ttraining\t-3\t1\t40\n"
    "search-training\ttraining\tmany\t\t1,5\n"
    "vision-training\ttraining\t7\t\t\n"
    "search-rank-inference\tinference\t15\t\t\n"
    "nobody\ttraining\t9\t\t2\n"
    "search-training\ttraining\t5\t\t\n"
)


def check_the_panel(page: Page, sheet: Sheet) -> None:
    """The panel after `SHEET` was put in under a filter that hides two of its rows."""
    title, left = page.locator("#intake-title"), page.locator("#intake-left")
    # The A100 of vision-training and of the inference queue are empty as before.
    expect(title).to_contain_text("3 taken over, 6 not")
    for line in (
        "research-training · H200 “-3”: At least 0, at most 10,000,000.",
        "search-training · H200 “many”: “many” is no number.",
        "search-training · A100-SXM4-80GB “1,5”: “1,5” can be read in two ways",
        "Line 6 “nobody”: There is no row of this name here. Figures left out: 2.",
        "Line 1, column 4 “NVIDIA-B999”: There is no column of this name. Figures left out: 1.",
        "search-training · H200 “5”: Line 7 says this cell again",
    ):
        expect(left).to_contain_text(line)
    expect(page.locator("#count-changed")).to_have_text("3 changed")
    # The filter shows research alone; what was put into other rows is in sight all the same.
    expect(sheet.cell("vision-training", H200)).to_contain_text("7")
    expect(sheet.cell("search-rank-inference", H200)).to_contain_text("15")


def test_what_a_paste_did_not_take_over_stays_listed_with_the_reason(site: str, open_browser: Opener) -> None:
    watched, page, sheet = opened(site, open_browser)
    sheet.filter("research", "training")
    sheet.cell("research-training", A100).click()
    paste(page, SHEET)
    check_the_panel(page, sheet)
    expect(page.locator("#intake-taken-title")).to_have_text("What was taken over (3)")
    # It stays while one goes on, and leads to the cell, hidden or not.
    sheet.filter("vision", "training")
    expect(page.locator("#intake")).to_be_visible()
    page.locator("#intake-left li").filter(has_text="many").get_by_role("button").click()
    expect(sheet.where).to_contain_text("search-training · H200")
    watched.picture("quota-editor-paste-light-1440")
    watched.check()
    # What was edited again since is kept by "undo all".
    sheet.filter("vision", "training")
    sheet.type("vision-training", H200, "9")
    page.get_by_role("button", name="Undo all of it").click()
    expect(page.locator("#intake")).to_be_hidden()
    expect(page.locator("#count-changed")).to_have_text("1 changed")
    page.keyboard.press("Control+z")
    expect(page.locator("#count-changed")).to_have_text("3 changed")


def test_a_file_that_is_loaded_says_the_same(site: str, open_browser: Opener, tmp_path) -> None:
    watched, page, sheet = opened(site, open_browser)
    sheet.filter("research", "training")
    target = tmp_path / "sheet.csv"
    target.write_text(SHEET.replace("\t1,5", "\t1;5").replace("\t", ",").replace("1;5", '"1,5"'), "utf-8")
    page.locator("#import-csv").set_input_files(target)
    expect(page.locator("#intake-title")).to_contain_text("CSV loaded:")
    check_the_panel(page, sheet)
    page.get_by_role("button", name="Undo all of it").click()
    expect(page.locator("#count-changed")).to_have_text("nothing changed yet")
    watched.check()


def test_a_block_that_goes_beyond_the_grid_says_what_stayed_outside(site: str, open_browser: Opener) -> None:
    _watched, page, sheet = opened(site, open_browser)
    sheet.filter("-training", "training")
    page.locator("#sheet").focus()
    page.keyboard.press("Control+End")
    page.keyboard.press("Control+ArrowDown")
    page.keyboard.press("Control+ArrowRight")
    paste(page, "5\t6\n7\t8\n")
    left = page.locator("#intake-left li")
    expect(left).to_have_count(3)
    expect(left.filter(has_text="Line 1, column 2 “6”")).to_contain_text("to the right of the last column")
    expect(left.filter(has_text="Line 2, column 1 “7”")).to_contain_text("below the last row")


def test_a_comma_that_could_be_a_fraction_is_asked_about(site: str, open_browser: Opener) -> None:
    _watched, page, sheet = opened(site, open_browser)
    sheet.filter("search-training", "training")
    for text in ("1,5", "1.500"):
        sheet.cell("search-training", H200).click()
        page.keyboard.type(text)
        page.keyboard.press("Enter")
        expect(page.locator(".sheet-input")).to_have_attribute("aria-invalid", "true")
        expect(sheet.message).to_contain_text("can be read in two ways")
        page.keyboard.press("Escape")
    expect(page.locator("#count-changed")).to_have_text("nothing changed yet")
    sheet.type("search-training", "CPU cores", "1,500")
    expect(sheet.cell("search-training", "CPU cores")).to_contain_text("1,500")
    # What means nothing and is left by a click is listed: it was typed.
    sheet.cell("search-training", H200).click()
    page.keyboard.type("eight")
    sheet.cell("search-training", A100).click()
    expect(page.locator("#intake-left")).to_contain_text("search-training · H200 “eight”: “eight” is no number.")


def test_a_draft_that_was_sent_does_not_come_back(site: str, open_browser: Opener) -> None:
    watched, page, sheet = opened(site, open_browser)
    for outcome in ("given up", "applied and rolled back"):
        sheet.filter("maps-route", "inference")
        sheet.type("maps-route-inference", L40S, "11")
        page.get_by_role("button", name="Review").click()
        page.wait_for_url("**/changes/*/")
        if outcome == "given up":
            page.get_by_role("button", name="Cancel this change").click()
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


def test_a_request_that_never_arrived_loses_nothing(site: str, open_browser: Opener) -> None:
    watched, page, sheet = opened(site, open_browser)
    sheet.filter("maps-route", "inference")
    sheet.type("maps-route-inference", L40S, "11")
    page.route("**/quota/edit/review/", lambda route: route.abort())
    page.get_by_role("button", name="Review").click()
    page.wait_for_timeout(500)
    page.unroute("**/quota/edit/review/")
    watched.open(EDIT)
    expect(page.locator("#draft-text")).to_contain_text("is back: 1 cell.")
    expect(page.locator("#count-changed")).to_have_text("1 changed")
    page.get_by_role("button", name="Discard").first.click()
    page.locator("#discard-now").click()


def test_undo_takes_the_servers_word_back_and_the_limit_says_its_rule(site: str, open_browser: Opener) -> None:
    watched, page, sheet = opened(site, open_browser)
    sheet.filter("search", "inference")
    sheet.type("Search", H200, "60")
    expect(sheet.faults).to_contain_text("but at most 48 may be (hardware 48 × ratio 1.0 = 48)")
    expect(page.locator("#count-checked")).to_have_text("checked with the server", timeout=30_000)
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
    expect(page.locator("#moved-title")).to_contain_text("1 of them you edited too", timeout=30_000)
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
    page.get_by_role("button", name="I have seen it").click()
    expect(page.get_by_role("button", name="Apply", exact=True)).to_be_enabled()
