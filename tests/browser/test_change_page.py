"""The page of a change while it is read: the bar of the decision, and an answer that is asked for anew."""

from __future__ import annotations

import json

import psycopg
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Opener
from tests.browser.test_changing_parts import reviewed
from tests.browser.test_journeys import publish

ANSWER = """
UPDATE jobs_job SET state = 'done', finished_at = now() - interval '2 minutes', result = %s
WHERE kind = 'impact' AND subject = %s AND result IS NULL
"""


def answer(database: str, number: str, *, lose: int) -> None:
    """The answer that the worker would give, which does not run here, two minutes ago."""
    gangs = [{"gang": f"voice/asr-{n}", "queue": "voice-asr-inference", "was": "running"} for n in range(lose)]
    told = {"session": 1, "at": "2026-01-01T00:00:00+00:00", "pods": 9, "pending": [], "gangs_lose": gangs}
    with psycopg.connect(database) as connection:
        # A trial that is under way is asked about each second, and as long nothing else of the page is.
        connection.execute("UPDATE jobs_job SET subject = '' WHERE kind = 'impact_day'")
        connection.execute(ANSWER, (json.dumps(told | {"counts": {"gangs_lose": lose}}), f"change:{number}"))


def test_an_open_page_asks_again_as_sessions_run(
    site: str, site_redis: str, site_database: str, open_browser: Opener
) -> None:
    watched = reviewed(open_browser(site), "7")
    page, card = watched.page, watched.page.locator("[id^=impact-]").first
    number = page.url.rstrip("/").rpartition("/")[2]
    expect(card).to_contain_text("Asked")
    answer(site_database, number, lose=0)
    expect(card).to_contain_text("tried on session 1 with 9 pods")
    seen = page.locator(f"[name=seen_impact][form=apply-{number}]")
    first = seen.get_attribute("value")
    with page.expect_request(lambda request: f"/impact/?job={first}" in request.url and request.method == "POST"):
        publish(site_redis, "sessions", 1)
    expect(card).to_contain_text("The answer of before")
    answer(site_database, number, lose=1)
    expect(card.locator(".impact-line")).to_have_text("1 gang would lose its place")
    expect(seen).not_to_have_value(first or "")
    watched.check()


@pytest.mark.parametrize("width", [1440, 390])
def test_what_decides_stays_in_sight_and_covers_nothing(site: str, open_browser: Opener, width: int) -> None:
    watched = reviewed(open_browser(site, width=width), "6")
    page = watched.page
    apply, bar = page.get_by_role("button", name="Apply", exact=True), page.locator(".act-bar")
    page.evaluate("scrollTo(0, 0)")
    expect(apply).to_be_in_viewport()
    page.locator("[aria-labelledby=fields-title]").scroll_into_view_if_needed()
    expect(apply).to_be_in_viewport()
    page.keyboard.press("End")
    covered = """
    (bar) => [...document.querySelectorAll("#live :is(a, button, input, textarea, summary)")]
      .filter((one) => !bar.contains(one) && one.checkVisibility()).filter((one) => {
        one.focus();
        return one.getBoundingClientRect().bottom > bar.getBoundingClientRect().top + 1;
      }).map((one) => one.outerHTML.slice(0, 99))
    """
    assert bar.evaluate(covered) == []
    # Where the reason is missing, the button leads to it.
    page.evaluate("scrollTo(0, 0)")
    apply.click()
    reason = page.get_by_label("Reason", exact=True)
    expect(reason).to_be_focused()
    assert reason.evaluate("(one) => one.getBoundingClientRect().bottom") < bar.evaluate(
        "(one) => one.getBoundingClientRect().top"
    )
    watched.check()
