"""The pages of the quota tree, its editor and its changes: no errors, and a picture of each."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Opener
from tests.browser.test_pages import LOOKS, visit

PAGES = {
    "quota-tree": "/clusters/demo/quota/",
    "quota-tree-filtered": "/clusters/demo/quota/?badge=over",
    "quota-map": "/clusters/demo/quota/?view=map&card=NVIDIA-H200",
    "quota-editor": "/clusters/demo/quota/edit/",
    "changes": "/clusters/demo/changes/",
}


@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_every_page(site: str, open_browser: Opener, theme: str, width: int, subtests: pytest.Subtests) -> None:
    watched = open_browser(site, theme=theme, width=width)
    for name, path in PAGES.items():
        with subtests.test(name):
            visit(watched, name, path, f"{theme}-{width}")
    with subtests.test("quota-editor in Chinese"):
        chinese = open_browser(site, theme=theme, width=width, language="zh-hans")
        visit(chinese, "quota-editor", PAGES["quota-editor"], f"zh-{theme}-{width}")


@pytest.mark.proof
@pytest.mark.parametrize(("theme", "width"), [("light", 1440), ("dark", 390)])
def test_empty_pages_say_what_comes_next(
    bare_site: str, open_browser: Opener, theme: str, width: int, subtests: pytest.Subtests
) -> None:
    watched = open_browser(bare_site, theme=theme, width=width)
    for name in ("quota-tree", "quota-editor", "changes"):
        with subtests.test(name):
            visit(watched, f"empty-{name}", PAGES[name], f"{theme}-{width}")
            expect(watched.page.locator(".empty-state h2:visible").first).to_be_visible()


def test_the_tree_folds_by_keyboard_and_mouse(site: str, open_browser: Opener) -> None:
    watched = open_browser(site)
    page = watched.page
    watched.open(PAGES["quota-tree"])
    rows = page.locator("table.tree tbody tr:visible")
    everything = rows.count()
    page.locator("table.tree tbody tr").first.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("table.tree tbody tr").first).to_have_attribute("aria-expanded", "false")
    assert rows.count() < everything
    page.reload()
    expect(page.locator("table.tree tbody tr").first).to_have_attribute("aria-expanded", "false")
    page.locator("table.tree tbody tr").first.focus()
    page.keyboard.press("ArrowRight")
    assert rows.count() == everything
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("table.tree tbody tr").first).to_be_focused()
    page.get_by_role("button", name="Fold all").click()
    page.get_by_role("button", name="Open all").click()
    assert rows.count() == everything
    page.locator("table.tree tbody tr").nth(1).locator(".tree-twist").click()
    assert rows.count() < everything
    watched.check()
