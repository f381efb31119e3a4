"""The whole path on the real thing: one command, and two minutes later a tide whose records agree with each other.

The pages, the session's decisions and the simulated cluster's own log of writes are three witnesses of each reclaim.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import expect

from tests.browser import servers
from tests.browser.conftest import Opener, Watched
from tests.web.console.cast import PASSWORD

READY_SECONDS = 300
TIDE_SECONDS = 120
PAGES = ["", "queues/", "gangs/", "gangs/?order=waiting", "reclaims/", "sessions/", "nodes/", "alerts/"]

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Demo:
    """What runs."""

    address: str
    folder: Path

    def writes(self) -> list[dict[str, object]]:
        """All that the cluster was told, from its own log."""
        runtime = json.loads((self.folder / "runtime.json").read_text())
        token = Path(runtime["simcluster_token_file"]).read_text().strip()
        found: list[dict[str, object]] = []
        while True:
            after = found[-1]["seq"] if found else 0
            address = f"{runtime['simcluster_url']}/tidesched/writes?after={after}&limit=1000"
            with urlopen(Request(address, headers={"Authorization": f"Bearer {token}"}), timeout=10) as answer:
                part = json.load(answer)["writes"]
            if not part:
                return found
            found += part


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """`make up` without make, in a folder of its own on a port of its own."""
    folder = tmp_path_factory.mktemp("demo")
    folder.chmod(0o711)
    for parent in (folder.parent, folder.parent.parent):
        parent.chmod(parent.stat().st_mode | 0o011)  # PostgreSQL may run as another user
    own = {"DATABASE_URL", "REDIS_URL", "TIDESCHED_EMBEDDED", "DEMO", "DATA_DIR", "DJANGO_SETTINGS_MODULE"}
    environment = {name: value for name, value in os.environ.items() if name not in own}
    port = servers.free_port()
    environment |= {"DATA_DIR": str(folder), "PORT": str(port), "ADMIN_PASSWORD": PASSWORD}
    address = f"http://127.0.0.1:{port}"
    with (folder / "up.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tidesched_web.embedded", "up"],
            cwd=servers.ROOT,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + READY_SECONDS
        while True:
            with contextlib.suppress(URLError, OSError), urlopen(f"{address}/readyz", timeout=5) as answer:
                if answer.status == 200:
                    break
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the demo did not get ready: {(folder / 'up.log').read_text()[-4000:]}")
            time.sleep(0.5)
        yield Demo(address, folder)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)


def number(watched: Watched, label: str) -> float:
    """The sum of one column of the overview's first table."""
    cells = watched.page.locator(f".overview-cards td[data-label='{label}']").all_inner_texts()
    return sum(float(cell.replace(",", "")) for cell in cells)


def test_two_minutes_after_the_start_the_tide_is_there(demo: Demo, open_browser: Opener) -> None:
    watched = open_browser(demo.address)
    page = watched.page
    watched.open("/clusters/demo/")
    # The page follows by itself; nobody reloads it.
    expect(page.locator("[aria-labelledby=reclaims-title] li").first).to_be_visible(timeout=TIDE_SECONDS * 1000)
    expect(page.locator("[aria-labelledby=waiting-title] li").first).to_be_visible(timeout=TIDE_SECONDS * 1000)
    watched.settle()
    assert number(watched, "Inference") > 50
    assert number(watched, "Training") > 50
    assert number(watched, "Total") > 300
    for text in page.locator("[aria-labelledby=waiting-title] li p").all_inner_texts():
        assert len(text) > 20, "each gang that waits says why"
    watched.picture("live-overview-light-1440")
    watched.check()
    for path in PAGES:
        watched.open(f"/clusters/demo/{path}")
        watched.check()


def test_reclaims_agree_with_their_sessions_and_with_the_cluster(demo: Demo, open_browser: Opener) -> None:
    watched = open_browser(demo.address)
    page = watched.page
    watched.open("/clusters/demo/reclaims/?state=done")
    expect(page.locator("tbody tr").first).to_be_visible(timeout=TIDE_SECONDS * 1000)
    addresses = [str(link.get_attribute("href")) for link in page.locator("tbody th a").all()[:5]]
    receipts = []
    for address in addresses:
        watched.open(address)
        watched.check()
        pods = page.locator("[aria-labelledby=evictions-title] tbody th .key").all_inner_texts()
        states = page.locator("[aria-labelledby=evictions-title] tbody .state").all_inner_texts()
        assert pods
        assert set(states) == {"Done"}
        session = str(page.locator("[aria-labelledby=facts-title] a[href*='/sessions/']").get_attribute("href"))
        needed, freed = (
            float(text) for text in page.locator("[aria-labelledby=balance-title] .figures").all_inner_texts()[:2]
        )
        assert 0 < needed <= freed
        receipts.append((address, session, pods))
    log = demo.writes()
    # A job that starts again makes its pods under their old names, so a name alone is not one eviction.
    evicted = {
        (entry["key"], entry["session"])
        for entry in log
        if entry["verb"] == "evict" and not entry["dry_run"] and entry["code"] == 201
    }
    bound = [entry["uid"] for entry in log if entry["verb"] == "bind" and entry["code"] == 201]
    assert len(bound) == len(set(bound)), "no pod is bound twice"
    for address, session, pods in receipts:
        watched.open(session)
        decided = page.locator("[aria-labelledby=dec-title] tbody tr").filter(has_text="Evict")
        targets = decided.locator("td[data-label=Target]").all_inner_texts()
        for pod in pods:
            assert pod in targets, f"{address}: {pod} is not among the decisions of {session}"
            told = (pod, session.rstrip("/").rpartition("/")[2]) in evicted
            assert told, f"{address}: the cluster was never told of {pod}"
