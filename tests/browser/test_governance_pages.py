"""The audit log, tide plans, the tree as a file and adoption in a real browser; the plan editor with hands and keys."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Opener, Watched
from tests.browser.test_pages import LOOKS, visit

PAGES = {
    "audit": "/audit/",
    "audit-filtered": "/audit/?actor=mei&object_type=queue",
    "audit-integrity": "/audit/integrity/",
    "audit-drop": "/audit/segments/1/drop/",
    "tide-plans": "/clusters/demo/tide-plans/",
    "tide-plan": "/clusters/demo/tide-plans/nights/",
    "tide-plan-edit": "/clusters/demo/tide-plans/nights/edit/",
    "tide-plan-new": "/clusters/demo/new/tide-plan/",
    "tree-file": "/clusters/demo/tree/",
    "drift": "/clusters/demo/drift/",
    "all-alerts": "/alerts/",
    "observed": "/clusters/demo/reclaims/?made_by=volcano",
}
EMPTY = ["audit", "audit-integrity", "tide-plans", "tree-file", "drift"]


def compared(watched: Watched) -> None:
    """A file with a mistake and a difference."""
    watched.page.goto(f"{watched.address}/clusters/demo/tree/")
    text = "format: 1\nqueues:\n  search-training:\n    service_type: training\n    wieght: 2\n"
    watched.page.locator("#text").fill(text)
    watched.page.get_by_role("button", name="Compare").click()


@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_every_page(site: str, open_browser: Opener, theme: str, width: int, subtests: pytest.Subtests) -> None:
    mark = f"{theme}-{width}"
    watched = open_browser(site, theme=theme, width=width)
    for name, path in PAGES.items():
        with subtests.test(name):
            visit(watched, name, path, mark)
    with subtests.test("audit-entry"):
        watched.page.goto(f"{site}/audit/?q=search-training")
        watched.page.locator("tbody th a").last.click()
        watched.settle()
        watched.picture(f"audit-entry-{mark}")
        watched.check()
    with subtests.test("adoption"):
        # No server listens where the story's cluster is: the page says so (and the browser reports its status).
        watched.page.goto(f"{site}/clusters/demo/adoption/")
        watched.errors.clear()
        watched.picture(f"adoption-{mark}")
        watched.check()
    with subtests.test("tree-file-wrong"):
        compared(watched)
        assert "Did you mean 'weight'?" in watched.page.locator(".banner").inner_text()
        watched.picture(f"tree-file-wrong-{mark}")
        # The browser reports the status of the answer, sooner or later.
        watched.errors[:] = [error for error in watched.errors if "400 (Bad Request)" not in error]
        watched.check()


@pytest.mark.proof
def test_in_chinese(site: str, open_browser: Opener, subtests: pytest.Subtests) -> None:
    watched = open_browser(site, language="zh-hans")
    for name in ("audit", "audit-integrity", "tide-plan", "tide-plan-edit", "tree-file", "drift"):
        with subtests.test(name):
            visit(watched, name, PAGES[name], "zh-light-1440")


@pytest.mark.proof
@pytest.mark.parametrize(("theme", "width"), [("light", 1440), ("dark", 390)])
def test_empty(bare_site: str, open_browser: Opener, theme: str, width: int, subtests: pytest.Subtests) -> None:
    watched = open_browser(bare_site, theme=theme, width=width)
    for name in EMPTY:
        with subtests.test(name):
            visit(watched, f"empty-{name}", PAGES[name], f"{theme}-{width}")


def test_a_plan_is_made_with_hands_and_keys(site: str, open_browser: Opener) -> None:
    watched = open_browser(site)
    page = watched.page
    page.goto(f"{site}/clusters/demo/new/tide-plan/")
    page.locator("#name").fill("mornings")
    page.locator("#time_zone").fill("UTC")
    start = page.get_by_role("slider", name="From")
    start.focus()
    for _press in range(4):
        page.keyboard.press("ArrowRight")
    assert page.locator("[data-time=start]").input_value() == "23:00"
    end = page.get_by_role("slider", name="To")
    box, ruler = end.bounding_box(), page.locator(".dial svg").bounding_box()
    assert box
    assert ruler
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(ruler["x"] + ruler["width"] / 4, box["y"] + 4, steps=5)
    page.mouse.up()
    assert page.locator("[data-time=end]").input_value() == "06:00"
    line = page.locator("[data-line]").first
    line.locator("select").nth(0).select_option("maps-route-inference")
    line.locator("select").nth(1).select_option("NVIDIA-L40S")
    line.locator("input[type=number]").fill("2")
    page.locator("#week .week-row").first.wait_for()
    page.get_by_role("button", name="Another queue or card type").click()
    assert page.locator("[data-line]").count() == 2
    page.locator("[data-line]").nth(1).get_by_role("button").click()
    page.get_by_role("button", name="Add a layer").click()
    assert page.locator("[data-layer]").count() == 2
    page.get_by_role("button", name="Remove this layer").nth(1).click()
    line.locator("input[type=number]").fill("90")
    page.locator("#week .banner.tone-failed").wait_for()
    assert "but it has 40" in page.locator("#week .banner.tone-failed").inner_text()
    watched.picture("tide-plan-breach-light-1440")
    line.locator("input[type=number]").fill("2")
    page.locator("#week .banner.tone-failed").wait_for(state="detached")
    page.get_by_label("The plan is on").check()
    page.get_by_role("button", name="Review").click()
    page.wait_for_url("**/changes/*/")
    steps = page.get_by_role("region", name="What would happen at each step of the next day?")
    steps.get_by_text("maps-route-inference").first.wait_for()
    watched.settle()
    watched.picture("tide-plan-change-light-1440")
    page.get_by_label("Reason").first.fill("The morning is quiet.")
    page.get_by_role("button", name="Apply").click()
    page.goto(f"{watched.address}/clusters/demo/tide-plans/mornings/")
    assert "23:00–06:00" in page.locator("main").inner_text()
    watched.settle()
    watched.check()
