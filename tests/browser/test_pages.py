"""Every page, light and dark, wide and narrow, English and Chinese: no errors, and a picture of each."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Opener, Watched
from tests.browser.watching import until

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
# Each theme and each width once; `make proof-pages` looks at the other two.
LOOKS = [
    ("light", 1440),
    ("dark", 390),
    pytest.param("light", 390, marks=pytest.mark.proof),
    pytest.param("dark", 1440, marks=pytest.mark.proof),
]


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


@pytest.mark.proof
@pytest.mark.parametrize(("theme", "width"), [("light", 1440), ("dark", 390)])
def test_every_page_in_chinese(
    site: str, open_browser: Opener, theme: str, width: int, subtests: pytest.Subtests
) -> None:
    watched = open_browser(site, theme=theme, width=width, language="zh-hans")
    for name in ("overview", "queues", "queue", "gangs", "reclaims", "session", "nodes", "help"):
        with subtests.test(name):
            visit(watched, name, PAGES[name], f"zh-{theme}-{width}")
    assert watched.page.locator("html").get_attribute("lang") == "zh-hans"


@pytest.mark.proof
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


# Words of a cell that follow each other, but stand apart in their line or above what they follow.
TORN = """
[...document.querySelectorAll('.table-stack :is(td, th[scope="row"])')].flatMap((cell) => {
  if (cell.querySelector('.toolbar, .usage, .node-cards')) return [];
  const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  const torn = [];
  for (let before = null, text = texts.nextNode(); text; text = texts.nextNode()) {
    const range = document.createRange();
    range.selectNodeContents(text);
    const lines = [...range.getClientRects()];
    if (!text.textContent.trim() || !lines.length || text.parentElement.closest('.visually-hidden')) continue;
    const [first] = lines;
    const beside = before && Math.abs(first.top - before.top) < 6 && Math.abs(first.left - before.right) > 48;
    if (before && (beside || first.top < before.top - 6)) torn.push(cell.innerText);
    before = lines.at(-1);
  }
  return torn;
})
"""
# Names whose parts are boxes beside each other, each of which breaks by itself.
NAMES_IN_BOXES = """
[...document.querySelectorAll('.cut')]
  .filter((name) => getComputedStyle(name).display !== 'inline').map((name) => name.title)
"""
# Filters in the line above the list that have no room to type in.
NARROW_FILTERS = """
[...document.querySelectorAll('.filter-line .filter > :is(input, select)')]
  .filter((field) => field.checkVisibility() && field.getBoundingClientRect().width < 120).map((field) => field.name)
"""
# Words of a figure that reach beyond it, and how high the room of its bars and lines is.
WORDS_CUT = """
[...document.querySelectorAll('.js-plotly-plot svg.main-svg')].flatMap((svg) => {
  const room = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter((text) => {
    const box = text.getBoundingClientRect();
    const over = Math.max(room.left - box.left, box.right - room.right, room.top - box.top, box.bottom - room.bottom);
    return box.width && over > 1.5;
  }).map((text) => text.textContent);
})
"""
HEIGHTS = "[...document.querySelectorAll('.js-plotly-plot')].map((figure) => figure._fullLayout._size.h)"


def test_the_words_of_a_cell_stay_together_in_a_narrow_window(
    site: str, open_browser: Opener, subtests: pytest.Subtests
) -> None:
    watched = open_browser(site, width=390)
    watched.open("/clusters/demo/gangs/?order=waiting")
    links = watched.page.locator(".table-rows tbody th a")
    waiting = [str(links.nth(place).get_attribute("href")) for place in range(min(4, links.count()))]
    assert waiting
    lists = [PAGES[name] for name in ("overview", "queue", "gangs", "reclaims", "session", "nodes")]
    for path in (*lists, "/audit/", "/clusters/demo/card-types/", *waiting):
        with subtests.test(path):
            watched.open(path)
            assert watched.page.evaluate(TORN) == []
            assert watched.page.evaluate(NAMES_IN_BOXES) == []
            assert watched.page.evaluate(NARROW_FILTERS) == []
            over = watched.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert over <= 0, "nothing is wider than the window"


@pytest.mark.parametrize("width", [1440, 390])
def test_the_words_of_the_figures_are_whole_and_leave_room(
    site: str, open_browser: Opener, width: int, subtests: pytest.Subtests
) -> None:
    watched = open_browser(site, width=width)
    for name in ("overview", "queue", "reclaims", "sessions"):
        with subtests.test(name):
            watched.open(PAGES[name])
            for fold in watched.page.locator("details.pictures:not([open]) > summary").all():
                fold.click()
            watched.page.locator(".js-plotly-plot .xtick text").first.wait_for()
            assert watched.page.evaluate(WORDS_CUT) == []
            assert min(watched.page.evaluate(HEIGHTS)) >= 90


ROWS = "[...document.querySelectorAll('.table-rows tbody tr')].map((row) => row.getBoundingClientRect())"
WIDTHS_OF_NAMES = """
[...document.querySelectorAll('.table-rows .cut .head')].map(
  (head) => [head.scrollWidth - head.clientWidth, head.parentNode.title])
"""


def test_a_name_is_whole_where_its_column_has_the_room(site: str, open_browser: Opener) -> None:
    """The namespace gives way first, and a name of ordinary length is never cut for a fraction of a pixel."""
    for width, longest in ((1440, 24), (1024, 17)):
        watched = open_browser(site, width=width)
        for place in ("gangs", "reclaims", *(("queues",) if width == 1440 else ())):
            watched.open(f"/clusters/demo/{place}/")
            names = watched.page.evaluate(WIDTHS_OF_NAMES)
            assert names
            short = [(over, name) for over, name in names if len(name.rpartition("/")[2]) <= longest]
            assert short
            assert not [(over, name) for over, name in short if over > 0], (width, place)
            wide = watched.page.evaluate("document.querySelector('.table-rows').getBoundingClientRect().right")
            assert wide <= width, (width, place)


CUT_REASONS = """
[...document.querySelectorAll('.row-why .sentence')]
  .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.innerText)
"""


def test_no_reason_of_the_list_of_gangs_is_cut_and_the_namespace_stands_once(site: str, open_browser: Opener) -> None:
    watched = open_browser(site)
    watched.open("/clusters/demo/gangs/")
    assert watched.page.evaluate(CUT_REASONS) == []
    expect(watched.page.get_by_role("columnheader", name="Namespace")).to_be_visible()
    assert watched.page.locator(".table-rows .ns:visible").count() == 0


def in_sight(watched: Watched) -> int:
    """How many rows of this height fit between the first one and the end of the window; each is one line."""
    boxes = watched.page.evaluate(f"{ROWS}.map(({{top, height}}) => [top, height])")
    highest = max(height for _top, height in boxes)
    assert highest <= 34
    return int((900 - boxes[0][0]) // highest)


def test_eighteen_rows_of_a_list_fit_on_a_screen(site: str, open_browser: Opener) -> None:
    for width in (1440, 1024):
        watched = open_browser(site, width=width)
        for place in ("gangs", "queues", "sessions"):
            watched.open(f"/clusters/demo/{place}/")
            assert in_sight(watched) >= 18, (place, width)
            head = watched.page.locator(".topbar").bounding_box()
            assert head["height"] <= 60, f"the head has one line at {width}"
        # Below the pictures and what others evicted.
        watched.open("/clusters/demo/reclaims/")
        assert in_sight(watched) >= (5 if width == 1440 else 4)


# How far the figures of a usage bar reach beyond their room, and the names before them into the bar.
OVER = """
[...document.querySelectorAll('.table-uses .usage')].flatMap((use) => {
  const box = (one) => one.getBoundingClientRect();
  const [label, bar, figures] = ['.label', 'svg', '.figures'].map((one) => box(use.querySelector(one)));
  const room = box(use.closest('td'));
  return [figures.right - room.right, label.right - bar.left, bar.right - figures.left].map(Math.round);
})
"""


def test_no_figure_of_a_use_is_cut_and_none_lies_over_another(site: str, open_browser: Opener) -> None:
    for width in (1440, 1280, 1024, 720):
        watched = open_browser(site, width=width)
        watched.open("/clusters/demo/queues/")
        found = watched.page.evaluate(OVER)
        assert found
        assert max(found) <= 0, width


def test_the_pictures_of_reclaims_stay_folded_away(site: str, open_browser: Opener) -> None:
    watched = open_browser(site)
    page = watched.page
    watched.open("/clusters/demo/reclaims/")
    pairs = page.get_by_role("heading", name="Who took back from whom in these 24 hours?")
    expect(page.locator("#reclaimed .main-svg").first).to_be_visible()
    expect(pairs).to_be_visible()
    page.locator(".pictures > summary").click()
    expect(page.locator("#reclaimed")).to_be_hidden()
    until(page, lambda: "parts_closed=reclaims" in page.evaluate("document.cookie"))
    watched.open("/clusters/demo/reclaims/")
    expect(page.locator("#reclaimed")).to_be_hidden()
    expect(page.locator("[data-filters]")).to_be_visible()
    assert in_sight(watched) >= 12, "below what others evicted"
    page.locator(".pictures > summary").click()
    expect(page.locator("#reclaimed .main-svg").first).to_be_visible()
    width = page.evaluate("document.querySelector('#reclaimed .main-svg').getBoundingClientRect().width")
    assert width <= page.locator("#reclaimed").bounding_box()["width"], "drawn for the room that it has"
    expect(pairs).to_be_visible()
    page.get_by_role("button", name="Table").click()
    expect(page.locator("#reclaimed-table table")).to_be_visible()
    watched.check()


# The drawn width of each bar of use in sight.
BARS = """
[...document.querySelectorAll('svg.usage-bar')]
  .map((bar) => bar.getBoundingClientRect().width)
  .filter((width) => width > 0)
"""


HEAD = """() => {
  const field = document.querySelector("#search"), key = field.parentElement.querySelector("kbd");
  const ends = field.getBoundingClientRect().right - parseFloat(getComputedStyle(field).paddingRight);
  return key.offsetParent === null || ends <= key.getBoundingClientRect().left;
}"""


def test_the_words_of_the_search_field_end_before_its_key(site: str, open_browser: Opener) -> None:
    for width in (1440, 1300, 1024):
        watched = open_browser(site, width=width)
        watched.page.goto(f"{site}/clusters/demo/queues/")
        assert watched.page.evaluate(HEAD), width


def test_the_help_marks_the_entry_of_the_page_that_one_came_from(site: str, open_browser: Opener) -> None:
    watched = open_browser(site)
    watched.page.goto(f"{site}/clusters/demo/tide-plans/")
    watched.page.get_by_role("link", name="What this page is for, and its words").click()
    watched.page.wait_for_url("**/help/#about-tide_plans")
    ground = "name => getComputedStyle(document.getElementById(`about-${name}`)).backgroundColor"
    assert watched.page.evaluate(ground, "tide_plans") != watched.page.evaluate(ground, "queues")


@pytest.mark.parametrize("width", [720, 990])
def test_bars_of_use_keep_a_length_that_can_be_read(site: str, open_browser: Opener, width: int) -> None:
    """At 990 px, and at 720 px: what a window of 1440 px has at 200 %."""
    watched = open_browser(site, width=width)
    watched.open("/clusters/demo/")
    bars = watched.page.evaluate(BARS)
    assert bars
    assert min(bars) >= 80
    watched.check()


def test_on_a_phone_the_first_row_comes_on_the_first_screen(site: str, open_browser: Opener) -> None:
    watched = open_browser(site, width=390)
    for place in ("gangs", "queues", "sessions", "nodes"):
        watched.open(f"/clusters/demo/{place}/")
        first = watched.page.locator("main tbody tr").first.bounding_box()
        assert first["y"] < 900, place


def test_a_page_is_printed_light_and_without_what_is_pressed(site: str, open_browser: Opener) -> None:
    watched = open_browser(site, theme="dark")
    watched.open("/clusters/demo/queues/")
    watched.page.emulate_media(media="print")
    white = re.compile(r"rgb\(255, 255, 255\)|rgba\(0, 0, 0, 0\)")
    for part in ("body", ".card >> nth=0"):  # the page hears of paper by an event: awaited, not read at once
        expect(watched.page.locator(part)).to_have_css("background-color", white)
    for pressed in (".sidebar", ".topbar", ".filter-bar"):
        expect(watched.page.locator(pressed).first).to_be_hidden()
    expect(watched.page.locator("tbody tr").first).to_be_visible()


def test_a_printed_entry_says_whether_it_holds_and_shows_no_button(site: str, open_browser: Opener) -> None:
    watched = open_browser(site)
    watched.open("/audit/")
    watched.page.locator("main tbody th a").first.click()
    holds = watched.page.locator(".card-header .toolbar .state").last
    expect(holds).to_be_visible()
    watched.page.emulate_media(media="print")
    expect(holds).to_be_visible()
    expect(watched.page.locator("main .btn:visible")).to_have_count(0)


@pytest.mark.parametrize(("theme", "colour"), [("light", "rgb(10, 106, 166)"), ("dark", "rgb(74, 163, 220)")])
def test_the_focus_of_the_keyboard_is_seen(site: str, open_browser: Opener, theme: str, colour: str) -> None:
    watched = open_browser(site, theme=theme)
    watched.open("/clusters/demo/queues/")
    for thing in (".nav-heading", ".filter-line button[type=submit]", "main tbody th a"):
        watched.page.keyboard.press("Tab")  # from here on the focus is the keyboard's
        watched.page.locator(thing).first.focus()
        ring = watched.page.evaluate(
            "(({outlineStyle, outlineColor}) => [outlineStyle, outlineColor])(getComputedStyle(document.activeElement))"
        )
        assert ring == ["solid", colour], thing
