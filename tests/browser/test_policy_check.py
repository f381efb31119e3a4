"""The answer to a check of a policy comes into the open page, and stands above Apply."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psycopg
import pytest

from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from tests.browser.conftest import Opener

FIGURES = {"promised": [5, 4], "waiting": [31, 38], "evicted": [0, 0]}
RESULT = {
    "tenants": [
        {"tenant": 1, "name": "Research", "started": [9, 9], "reclaimed": [6, 0], **FIGURES},
        {"tenant": 2, "name": "Shop", "started": [14, 8], "reclaimed": [0, 0], **FIGURES},
    ],
    "differ": [
        {"gang": "research/llm-pretrain-lap2-004", "queue": "q", "was": "reclaimed", "becomes": "", "sessions": 3},
        {"gang": "shop/ads-bid", "queue": "q", "was": "started", "becomes": "waiting", "sessions": 1},
    ],
    "counts": {"differ": 14},
    "sessions": {"recorded": 118, "missing": 1, "changed": 7, "chosen": 20, "tried": 12},
}
TEXT = "UPDATE clusters_policyrevision SET text = %s WHERE number = 1"
GANG = "gang\n    enableReclaimable: false"
LOOKS = [("light", 1440, "en"), ("dark", 390, "zh-hans")]


@pytest.fixture
def rows(site_database: str) -> Iterator[psycopg.Connection]:
    """The rows of the site, with a policy that can be read."""
    with psycopg.connect(site_database, autocommit=True) as connection:
        (before,) = connection.execute("SELECT text FROM clusters_policyrevision WHERE number = 1").fetchone()
        connection.execute(TEXT, [FOUNDING_POLICY])
        yield connection
        connection.execute(TEXT, [before])


@pytest.mark.parametrize(("theme", "width", "language"), LOOKS)
def test_the_answer_comes_into_the_page_above_apply(
    site: str, rows: psycopg.Connection, open_browser: Opener, theme: str, width: int, language: str
) -> None:
    watched = open_browser(site, theme=theme, width=width, language=language)
    watched.open("/clusters/demo/policy/")
    watched.page.locator("textarea[name=text]").fill(FOUNDING_POLICY.replace(", reclaim", "").replace(GANG, "binpack"))
    watched.page.locator("button[value=check]").click()
    trial = watched.page.locator("[aria-labelledby=trial-title]")
    trial.locator("[hx-get]").wait_for()
    done = "UPDATE jobs_job SET state = 'done', progress = 1, result = %s WHERE subject LIKE 'policy:%%'"
    rows.execute(done, [json.dumps(RESULT)])
    trial.locator("tbody tr").first.wait_for()
    assert "research/llm-pretrain-lap2-004" in trial.inner_text()
    heads = [watched.page.locator(f"#{name}-title").bounding_box() for name in ("check", "trial", "lint", "apply")]
    assert heads == sorted(heads, key=lambda box: box["y"])
    watched.picture(f"policy-{theme}-{width}-{language}")
    watched.check()
