"""What a person does: look, filter, pause, switch theme, use the keys; and pages that follow by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Request, expect

from tests.browser.conftest import Opener, Watched

OVERVIEW = "/clusters/demo/"
# After "g"; the queues last, where the page of a queue began.
KEYS = {"o": "demo/", "g": "gangs/", "r": "reclaims/", "s": "sessions/", "n": "nodes/", "a": "alerts/", "q": "queues/"}


def publish(redis_url: str, topic: str, cluster: int) -> None:
    """What a session does at its end."""
    import redis

    client = redis.Redis.from_url(redis_url)
    client.xadd("tidesched:events", {"t": topic, "i": "1", "v": "1", "c": str(cluster)})
    client.close()


def test_the_keys(site: str, open_browser: Opener) -> None:
    watched = open_browser(site)
    page = watched.page
    watched.open(OVERVIEW)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("sandbox")
    page.keyboard.press("Enter")
    page.wait_for_url("**/queues/sandbox-training/")
    for key, address in KEYS.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(f"**/{address}")
    watched.settle()
    watched.check()


def test_theme_is_kept_and_figures_follow(site: str, open_browser: Opener) -> None:
    watched = open_browser(site)
    page = watched.page
    watched.open(OVERVIEW)
    html = page.locator("html")
    expect(html).to_have_attribute("data-bs-theme", "light")
    page.get_by_role("button", name="Account of admin").click()
    with page.expect_response(re.compile("theme=dark")):
        page.get_by_role("button", name="Dark", exact=True).click()
    expect(html).to_have_attribute("data-bs-theme", "dark")
    page.reload()
    assert page.content().count('data-bs-theme="dark"') == 1
    watched.settle()
    watched.check()


def test_a_figure_has_its_table_and_csv(site: str, open_browser: Opener) -> None:
    watched = open_browser(site)
    page = watched.page
    watched.open(OVERVIEW)
    page.get_by_role("button", name="Table", exact=True).click()
    expect(page.locator("#tide-table table tbody tr").first).to_be_visible()
    with page.expect_response(re.compile("card=NVIDIA-H200")):
        page.get_by_label("Card type").select_option("NVIDIA-H200")
    with page.expect_download() as download:
        page.locator("[data-csv-for=tide]").click()
    assert "card=NVIDIA-H200" in download.value.url
    page.locator("#tide").hover(position={"x": 300, "y": 120})
    expect(page.locator("#tide .hoverlayer .legend")).to_be_visible()
    watched.check()


def test_filters_apply_by_themselves_and_go_away_by_their_chip(site: str, open_browser: Opener) -> None:
    watched = open_browser(site)
    page = watched.page
    watched.open("/clusters/demo/gangs/")
    page.get_by_label("Why it waits").select_option("Fragmented")
    page.wait_for_url("**/gangs/?reason=Fragmented")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Remove the filter Why it waits").click()
    page.wait_for_url(re.compile(r"gangs/\??$"))
    expect(page.locator("tbody tr")).to_have_count(50)
    page.get_by_role("link", name="Next").click()
    expect(page.get_by_role("link", name="Previous")).to_be_visible()
    watched.check()


def test_a_gang_leads_to_its_holder_and_its_queue(site: str, open_browser: Opener) -> None:
    watched = open_browser(site)
    page = watched.page
    watched.open(OVERVIEW)
    page.get_by_role("link", name="search/embed-lap2-012").click()
    expect(page.get_by_role("heading", name="Why does it wait?")).to_be_visible()
    page.get_by_role("link", name="research/llm-pretrain-lap2-004").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("research/llm-pretrain-lap2-004")
    page.get_by_role("link", name="research-training").first.click()
    expect(page.get_by_role("heading", name="Ready-made manifests for this queue")).to_be_visible()
    expect(page.locator("#manifest-job")).to_contain_text("queue: research-training")
    watched.settle()
    watched.check()


def test_pause_asks_why_and_is_seen_everywhere(site: str, open_browser: Opener) -> None:
    watched = open_browser(site)
    page = watched.page
    watched.open(OVERVIEW)
    page.get_by_role("button", name="More").click()
    page.get_by_role("link", name="Pause").click()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Say why")).to_be_visible()
    watched.errors.clear()  # the browser reports the refused form as an error of its own
    page.get_by_label("Reason").fill("maintenance of the racks")
    page.get_by_label("I have read what happens then").check()
    page.get_by_role("button", name="Pause").click()
    page.wait_for_url(f"**{OVERVIEW}")
    expect(page.get_by_text("“maintenance of the racks”")).to_be_visible()
    watched.settle()
    watched.picture("overview-paused-light-1440")
    watched.check()
    page.locator(".toolbar").get_by_role("link", name="Resume").click()
    page.get_by_label("Reason").fill("done")
    page.get_by_label("I have read what happens then").check()
    page.get_by_role("button", name="Resume").click()
    page.wait_for_url(f"**{OVERVIEW}")
    expect(page.get_by_text("demo goes on.")).to_be_visible()


def is_fragment(request: Request) -> bool:
    """Whether the page asks for its changing part again."""
    return request.headers.get("hx-target") == "live"


def fragments(watched: Watched) -> list[str]:
    found: list[str] = []
    watched.page.on(
        "request", lambda request: found.append(request.url) if request.headers.get("hx-target") == "live" else None
    )
    return found


@contextmanager
def other_page_follows(site: str, open_browser: Opener) -> Iterator[None]:
    """What is published here reaches another page in the end, so it has reached all."""
    other = open_browser(site)
    other.open(OVERVIEW)
    with other.page.expect_request(is_fragment, timeout=60_000):
        yield


def test_a_page_follows_events_but_not_under_an_open_menu(site: str, site_redis: str, open_browser: Opener) -> None:
    watched = open_browser(site)
    page = watched.page
    seen = fragments(watched)
    watched.open(OVERVIEW)
    with page.expect_request(is_fragment, timeout=60_000):
        publish(site_redis, "sessions", 1)
    expect(page.locator("#live")).to_be_visible()
    expect(page.locator("#tide .main-svg").first).to_be_visible()
    page.get_by_role("button", name="demo").click()
    expect(page.get_by_role("link", name="All clusters", exact=True)).to_be_visible()
    before = len(seen)
    with other_page_follows(site, open_browser):
        publish(site_redis, "sessions", 1)
    assert len(seen) == before, "a page must not change under an open menu"
    page.keyboard.press("Escape")
    with page.expect_request(is_fragment, timeout=60_000):
        page.locator("h1").click()
    watched.check()


@pytest.mark.proof
def test_following_can_be_stopped(site: str, site_redis: str, open_browser: Opener) -> None:
    watched = open_browser(site)
    page = watched.page
    watched.open("/clusters/demo/queues/")
    page.locator("#live-toggle").click()
    expect(page.locator("#live-text")).to_have_text("updates are paused")
    seen = fragments(watched)
    with other_page_follows(site, open_browser):
        publish(site_redis, "sessions", 1)
    assert seen == []
    page.reload()
    expect(page.locator("#live-text")).to_have_text("updates are paused")
    with page.expect_request(is_fragment, timeout=60_000):
        page.locator("#live-toggle").click()
    watched.check()


@pytest.mark.parametrize("width", [390])
def test_the_menu_opens_on_a_narrow_screen(site: str, open_browser: Opener, width: int) -> None:
    watched = open_browser(site, width=width)
    page = watched.page
    watched.open(OVERVIEW)
    page.get_by_role("button", name="Menu").click()
    page.locator("summary", has_text="Scheduling").click()
    expect(page.get_by_role("link", name="Reclaims", exact=True)).to_be_visible()
    watched.picture("menu-light-390")
    watched.check()
    page.get_by_role("link", name="Reclaims", exact=True).click()
    page.wait_for_url("**/reclaims/")
