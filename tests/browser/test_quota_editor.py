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
    expect(sheet.where).to_contain_text(H200)
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
    paste(page, "1,6")
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
    expect(sheet.message).to_have_text("Rank hands on 18 H200, but has 16: 2 too many.")
    page.keyboard.press("Enter")
    expect(cell).to_have_attribute("aria-invalid", "true")
    sheet.type("Rank", H200, "18")
    expect(page.locator("#count-errors")).to_have_text("no errors")
    expect(cell).not_to_have_attribute("aria-invalid", "true")
    # Search has 20: a second project asks for more than is left, and the first could give way.
    sheet.type("search-suggest-inference", H200, "4")
    expect(sheet.faults).to_contain_text("Search hands on 22 H200, but has 20: 2 too many.")
    expect(sheet.faults).to_contain_text("Go to the cell")
    expect(page.locator("#count-checked")).to_have_text("checked with the server", timeout=30_000)
    sheet.type("search-rank-inference", H200, "10")
    expect(sheet.message).to_contain_text("12 are in use: nobody is evicted by that")
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
    expect(page.locator("#draft-text")).to_contain_text("1 cells")
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
