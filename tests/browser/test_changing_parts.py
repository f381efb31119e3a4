"""The changing part of a page is fetched while its forms are used: a late answer finds its page, no field is lost."""

from __future__ import annotations

from playwright.sync_api import Route, expect

from tests.browser.conftest import Opener, Watched
from tests.browser.sheet import Sheet
from tests.browser.watching import until
from tests.web.console.cast import RTX

REFETCH = "window.htmx.trigger(document.getElementById('live'), 'refetch')"
# The changing part is asked for until it has come: a question beside another one is dropped.
REFETCHED = f"""
() => new Promise((done) => {{
  const again = setInterval(() => {REFETCH}, 300);
  document.addEventListener("htmx:afterSettle", () => {{ clearInterval(again); done(); }}, {{ once: true }});
}})
"""


def reviewed(watched: Watched, cards: str) -> Watched:
    """On the page of a new change of one figure."""
    watched.open("/clusters/demo/quota/edit/")
    sheet = Sheet(watched.page)
    sheet.filter("voice-asr", "inference")
    sheet.type("voice-asr-inference", RTX, cards)
    watched.page.get_by_role("button", name="Review").click()
    watched.page.wait_for_url("**/changes/*/")
    return watched


def test_an_answer_that_comes_late_finds_its_page(site: str, open_browser: Opener) -> None:
    watched = reviewed(open_browser(site), "7")
    page = watched.page
    page.get_by_label("Reason", exact=True).fill("Late answers.")
    seen = page.locator("[name=revision][form^=apply]")
    for _again in range(2):
        page.evaluate(REFETCHED)
        # The form is bound to what was reviewed before the page followed the cluster, and keeps what was typed.
        expect(seen).to_have_value("1")
        expect(page.get_by_label("Reason", exact=True)).to_have_value("Late answers.")
    held: list[Route] = []

    def hold(route: Route) -> None:
        if not held and route.request.headers.get("hx-target") == "live":
            held.append(route)
        else:
            route.continue_()

    page.route("**/changes/*/", hold)
    page.get_by_role("button", name="Apply", exact=True).click()
    # Nothing carries it here, so the page goes on asking; its first question is answered last.
    expect(page.locator("[aria-labelledby=where-title]")).to_contain_text("Applying")
    until(page, lambda: held)
    page.evaluate(REFETCH)
    held[0].continue_()
    page.evaluate(REFETCHED)
    expect(page.locator("#live")).to_have_count(1)
    watched.check()


def test_what_a_colleague_edits_meanwhile_neither_takes_what_is_typed_nor_passes_unseen(
    site: str, open_browser: Opener
) -> None:
    watched = reviewed(open_browser(site), "6")
    page = watched.page
    reason = page.get_by_label("Reason", exact=True)
    reason.fill("What I looked at.")
    number = page.url.rstrip("/").rpartition("/")[2]
    colleague = open_browser(site).page.request
    there = colleague.get(f"{site}/api/v1/quota-changes/{number}/")
    cookies = {cookie["name"]: cookie["value"] for cookie in colleague.storage_state()["cookies"]}
    answer = colleague.patch(
        f"{site}/api/v1/quota-changes/{number}/",
        data={"edits": {"queue/voice-asr-inference": {"card_quota": {RTX: 5}}}},
        headers={"If-Match": there.headers["etag"], "X-CSRFToken": cookies["csrftoken"], "Referer": site},
    )
    assert answer.ok, answer.text()
    section = page.locator("[aria-labelledby=act-title]")
    before = section.get_attribute("id")
    page.evaluate("window.htmx.trigger(document.getElementById('live'), 'refetch')")
    expect(page.locator(f"[id='{before}']")).to_have_count(0)
    expect(reason).to_have_value("What I looked at.")
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_role("heading", name="What was edited after you opened it")).to_be_visible()
    expect(reason).to_have_value("What I looked at.")
    assert watched.errors == [
        "Failed to load resource: the server responded with a status of 412 (Precondition Failed)"
    ]
