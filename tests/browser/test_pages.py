"""Every page, light and dark, wide and narrow, English and Chinese: no errors, and a picture of each."""

from __future__ import annotations

import os

import pytest

from tests.browser.conftest import Opener, Watched

PAGES = {
    "overview": "/clusters/demo/",
    "queues": "/clusters/demo/queues/",
    "queue": "/clusters/demo/queues/search-training/",
    "gangs": "/clusters/demo/gangs/?order=waiting",
    "gangs-filtered": "/clusters/demo/gangs/?state=running&service_type=inference",
    "reclaims": "/clusters/demo/reclaims/",
    "sessions": "/clusters/demo/sessions/",
    "session": "/clusters/demo/sessions/1479/",
    "nodes": "/clusters/demo/nodes/",
    "alerts": "/clusters/demo/alerts/",
    "clusters": "/clusters/",
    "pause": "/clusters/demo/pause/",
    "search": "/clusters/demo/search/?q=lap2",
    "profile": "/profile/",
    "password": "/password/",
    "help": "/help/",
    "not-found": "/nothing/",
}
EMPTY = ["overview", "queues", "gangs", "reclaims", "sessions", "nodes", "alerts"]
# Each theme and each width once; `make proof-pages` looks at all four.
LOOKS = [("light", 1440), ("dark", 390)]
if os.environ.get("LOOKS") == "all":
    LOOKS += [("light", 390), ("dark", 1440)]


def visit(watched: Watched, name: str, path: str, mark: str) -> None:
    watched.errors.clear()
    watched.open(path)
    if name == "not-found":  # the browser itself reports the status of the page as an error
        watched.errors.clear()
    watched.picture(f"{name}-{mark}")
    watched.check()


@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_every_page(site: str, open_browser: Opener, theme: str, width: int, subtests: pytest.Subtests) -> None:
    mark = f"{theme}-{width}"
    with subtests.test("sign-in"):
        visit(open_browser(site, user=None, theme=theme, width=width), "sign-in", "/sign-in/", mark)
    watched = open_browser(site, theme=theme, width=width)
    for name, path in PAGES.items():
        with subtests.test(name):
            visit(watched, name, path, mark)
    for name, start in (("gang", "/clusters/demo/gangs/demo"), ("reclaim", "/clusters/demo/reclaims/")):
        with subtests.test(name):
            if name == "gang":
                path = "/clusters/demo/gangs/search/embed-lap2-012/"
            else:
                watched.open(start)
                path = str(watched.page.locator("tbody th a").nth(2).get_attribute("href"))
            visit(watched, name, path, mark)


@pytest.mark.parametrize(("theme", "width"), [("light", 1440), ("dark", 390)])
def test_every_page_in_chinese(
    site: str, open_browser: Opener, theme: str, width: int, subtests: pytest.Subtests
) -> None:
    watched = open_browser(site, theme=theme, width=width, language="zh-hans")
    for name in ("overview", "queues", "queue", "gangs", "reclaims", "session", "nodes", "help"):
        with subtests.test(name):
            visit(watched, name, PAGES[name], f"zh-{theme}-{width}")
    assert watched.page.locator("html").get_attribute("lang") == "zh-hans"


@pytest.mark.parametrize(("theme", "width"), [("light", 1440), ("dark", 390)])
def test_empty_pages_say_what_comes_next(
    bare_site: str, open_browser: Opener, theme: str, width: int, subtests: pytest.Subtests
) -> None:
    watched = open_browser(bare_site, theme=theme, width=width)
    for name in EMPTY:
        with subtests.test(name):
            visit(watched, f"empty-{name}", PAGES[name].partition("?")[0], f"{theme}-{width}")
            assert watched.page.locator(".empty-state h2").first.is_visible()


def test_a_member_sees_the_same_pages_with_less(site: str, open_browser: Opener, subtests: pytest.Subtests) -> None:
    watched = open_browser(site, user="mei")
    for name in ("overview", "queues", "gangs", "reclaims", "session", "nodes"):
        with subtests.test(name):
            visit(watched, name, PAGES[name], "member-light-1440")
    with subtests.test("newcomer"):
        visit(open_browser(site, user="newcomer"), "newcomer", "/", "light-1440")


WIDTHS_OF_NAMES = """
[...document.querySelectorAll('.table-rows .cut .head')].map(
  (head) => [head.scrollWidth - head.clientWidth, head.parentNode.title])
"""


def test_a_name_is_whole_where_its_column_has_the_room(site: str, open_browser: Opener) -> None:
    """The namespace gives way first, and a name of ordinary length is never cut for a fraction of a pixel."""
    for width, longest in ((1440, 24), (1024, 15)):
        watched = open_browser(site, width=width)
        for place in ("gangs", "reclaims"):
            watched.open(f"/clusters/demo/{place}/")
            names = watched.page.evaluate(WIDTHS_OF_NAMES)
            assert names
            short = [(over, name) for over, name in names if len(name.rpartition("/")[2]) <= longest]
            assert short
            assert not [name for over, name in short if over > 0], (width, place)
            wide = watched.page.evaluate("document.querySelector('.table-rows').getBoundingClientRect().right")
            assert wide <= width, (width, place)


def test_eighteen_rows_of_gangs_fit_on_a_screen_and_reclaims_are_as_dense(site: str, open_browser: Opener) -> None:
    watched = open_browser(site)
    rows = "[...document.querySelectorAll('.table-rows tbody tr')].map((row) => row.getBoundingClientRect())"
    watched.open("/clusters/demo/gangs/")
    boxes = watched.page.evaluate(f"{rows}.map(({{top, bottom}}) => [top, bottom])")
    assert sum(top >= 0 and bottom <= 900 for top, bottom in boxes) >= 18
    watched.open("/clusters/demo/reclaims/")
    heights = watched.page.evaluate(f"{rows}.map(({{height}}) => height)")
    assert heights
    assert max(heights) <= 34, "so eighteen of them take 612 of the 900 pixels"
