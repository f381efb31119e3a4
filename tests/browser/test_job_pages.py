"""The pages of jobs, light and dark, wide and narrow, full and empty: no errors, and a picture of each."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Opener
from tests.browser.test_pages import LOOKS


@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_jobs_and_what_came_of_one(site: str, open_browser: Opener, theme: str, width: int) -> None:
    watched = open_browser(site, theme=theme, width=width)
    watched.open("/jobs/")
    watched.picture(f"jobs-{theme}-{width}")
    watched.check()
    # The story's own: the newer ones above are those of other tests.
    done = watched.page.locator("tbody tr", has_text="Impact on the current snapshot").locator("th a").last
    watched.open(str(done.get_attribute("href")))
    watched.picture(f"job-{theme}-{width}")
    watched.check()
    assert watched.page.get_by_text("search/embed-lap2-012").is_visible()
    watched.open("/jobs/")
    runs = watched.page.locator("tbody tr", has_text="Running").locator("th a").last
    watched.open(str(runs.get_attribute("href")))
    watched.picture(f"job-running-{theme}-{width}")
    watched.check()
    assert watched.page.get_by_role("button", name="Stop it").is_visible()


@pytest.mark.proof
@pytest.mark.parametrize(("theme", "width"), [("light", 1440), ("dark", 390)])
def test_nothing_has_taken_long(bare_site: str, open_browser: Opener, theme: str, width: int) -> None:
    watched = open_browser(bare_site, theme=theme, width=width)
    watched.open("/jobs/")
    watched.picture(f"empty-jobs-{theme}-{width}")
    watched.check()
    assert watched.page.locator(".empty-state h2").first.is_visible()
