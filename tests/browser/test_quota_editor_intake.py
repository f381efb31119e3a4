"""What is pasted or loaded into the quota editor: taken over, or listed with the reason."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Opener
from tests.browser.editor import copied, opened, paste, sent
from tests.browser.sheet import Sheet
from tests.web.console.cast import A100, H200


def test_a_file_goes_out_and_comes_back(site: str, open_browser: Opener, tmp_path) -> None:
    _watched, page, sheet = opened(site, open_browser)
    expect(page.locator("#export-with")).to_be_empty()
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
    expect(page.locator("#intake-title")).to_have_text(re.compile(r"^CSV loaded: 1 taken over · [\d,]+ as before$"))
    expect(page.locator("#export-with")).to_have_text("with your unsent edits")
    assert sent(page) == {"queue/research-training": {"card_quota": {A100: 44}}}
    del sheet


SHEET = (
    f"name\tservice_type\t{H200}\tNVIDIA-B999\t{A100}\n"
    "research-training\ttraining\t-3\t1\t40\n"
    "search-training\ttraining\tmany\t\t1,5\n"
    "vision-training\ttraining\t7\t\t8,000\n"
    "search-rank-inference\tinference\t15\t\t\n"
    "nobody\ttraining\t9\t\t2\n"
    "search-training\ttraining\t5\t\t\n"
    "foundation-training\ttraining\t9\t\t3\t7\n"
)


def check_the_panel(page: Page, sheet: Sheet) -> None:
    """The panel after `SHEET` was put in under a filter that hides two of its rows."""
    title, left = page.locator("#intake-title"), page.locator("#intake-left")
    # The A100 of the inference queue is empty as before.
    expect(title).to_have_text(re.compile(r": 3 taken over · 8 not taken over( · [1-9]\d* as before)?$"))
    for line in (
        "research-training · H200 “-3”: At least 0, at most 10,000,000.",
        "search-training · H200 “many”: “many” is not a number: write a point",
        "search-training · A100-SXM4-80GB “1,5”: “1,5” is not a number: write a point",
        "vision-training · A100-SXM4-80GB “8,000”: “8,000” can mean 8 or 8 000: write 8 or 8000.",
        "Line 6 “nobody”: There is no row of this name here. Figures left out: 2.",
        "Line 1, column 4 “NVIDIA-B999”: There is no column of this name. Figures left out: 1.",
        "search-training · H200 “5”: Line 7 says this cell again",
        "Line 8 “foundation-training”: The line has more cells than the first line has names.",
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
    target.write_text(re.sub(r"(\d,\d+)\n", r'"\1"\n', SHEET).replace("\t", ","), "utf-8")
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


def test_a_file_as_a_spreadsheet_saves_it_is_read_by_the_server(site: str, open_browser: Opener, tmp_path) -> None:
    _watched, page, sheet = opened(site, open_browser)
    sheet.filter("research", "training")
    target = tmp_path / "sheet.csv"
    text = f"sep=;\r\n;;;;\r\nName;Service_Type;{H200.lower()};CPU;;\r\nresearch-training;training;7;64.000;;\r\n"
    target.write_bytes(text.encode("utf-16"))
    page.locator("#import-csv").set_input_files(target)
    expect(page.locator("#intake-title")).to_have_text("CSV loaded: 1 taken over · 1 not taken over")
    expect(page.locator("#intake-left")).to_contain_text("“64.000” can mean 64 or 64 000: write 64 or 64000.")
    expect(sheet.cell("research-training", H200)).to_contain_text("7")
    for text in (f"{H200},name\n7,research-training\n", "name,H-200\nresearch-training,15\n", "5,6\n7,8\n", ""):
        target.write_text(text, "utf-8")
        page.locator("#import-csv").set_input_files(target)
        expect(page.locator("#intake-left")).to_contain_text("The first line of a file has to name")
        page.locator("#intake-close").click()
    target.write_bytes("name;h200\nGröße;8\n".encode("latin-1"))
    page.locator("#import-csv").set_input_files(target)
    expect(page.locator("#intake-left")).to_contain_text("Line 2 has bytes that are no UTF-8")
    expect(page.locator("#count-changed")).to_have_text("1 changed")


def test_a_fraction_is_copied_as_what_it_is(site: str, open_browser: Opener) -> None:
    _watched, page, sheet = opened(site, open_browser)
    sheet.filter("-training", "training")
    sheet.type("search-training", "CPU cores", "64125m")
    sheet.type("search-training", "Memory in GiB", "1152Mi")
    sheet.cell("search-training", "CPU cores").click()
    page.keyboard.press("Shift+ArrowRight")
    text = copied(page)
    assert text == "64125m\t1152Mi"
    sheet.cell("vision-training", "CPU cores").click()
    paste(page, text)
    expect(sheet.cell("vision-training", "CPU cores")).to_contain_text("64.125")
    figures = {"cpu_milli": 64125, "memory_bytes": 1152 * 2**20}
    assert sent(page) == {"queue/search-training": figures, "queue/vision-training": figures}
