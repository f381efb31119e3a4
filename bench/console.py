"""The quota pages at their largest: the tree of 5,000 queues, and the editor's grid at 500 queues × 20 card types."""

from __future__ import annotations

import atexit
import os
import shutil
import statistics
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.clock import clock, is_processor_time
from bench.persist import database

ROOT = Path(__file__).resolve().parents[1]
CARDS, TENANTS, PROJECTS = 20, 50, 4
# Moves, numbers typed over, a fill, undo and redo: what one does in a grid.
KEYS = [
    "ArrowDown", "4", "2", "Enter", "ArrowRight", "7", "Tab", "1", "6", "Enter", "Shift+ArrowDown", "Shift+ArrowDown",
    "Control+d", "PageDown", "9", "Enter", "Control+z", "Control+y", "ArrowUp", "ArrowLeft", "Delete", "Control+z",
]  # fmt: skip
# From the key to what the browser says it was presented (Event Timing, in steps of 8 ms); below 16 ms it says nothing,
# then to the end of the page's own work on the frame: a message posted in a frame comes after its painting.
WATCH = """
window.keys = [];
window.presented = new Map();
addEventListener("keydown", (event) => {
  if (["Shift", "Control"].includes(event.key)) return;
  const at = event.timeStamp;
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => window.keys.push({ at, drawn: performance.now() - at });
    channel.port2.postMessage(0);
  });
}, true);
new PerformanceObserver((list) => {
  for (const entry of list.getEntriesByName("keydown")) presented.set(entry.startTime, entry.duration);
}).observe({ type: "event", durationThreshold: 16 });
window.drawn = (count) => new Promise((done) => {
  const look = () => { if (keys.length >= count) done(); else setTimeout(look, 2); };
  look();
});
window.keyTimes = () => new Promise((done) => setTimeout(() => done(
  keys.map(({ at, drawn }) => Math.max(drawn, presented.get(at) ?? 0))
), 150));
"""


@cache
def _client() -> Any:
    database()
    from django.conf import settings
    from django.test import Client

    from tidesched_web.accounts.models import PlatformRole, User

    settings.ALLOWED_HOSTS = ["*"]
    client = Client()
    client.force_login(User.objects.create(username="bench-console", platform_role=PlatformRole.ADMIN))
    return client


@cache
def _filled(queues: int) -> str:
    """A cluster with so many queues, four card types each and their use; returns its slug."""
    database()
    from django.utils import timezone

    from tidesched_web.accounts.models import Project, Tenant
    from tidesched_web.clusters.models import CardType, Cluster
    from tidesched_web.quota.models import CardQuota, Queue, QuotaTree
    from tidesched_web.scheduling.models import QueueUsage

    now = timezone.now()
    slug = f"tree-{queues}"
    cluster = Cluster.objects.create(name=slug, slug=slug, api_url="https://10.0.0.1")
    QuotaTree.objects.create(cluster=cluster)
    cards = CardType.objects.bulk_create(
        CardType(cluster=cluster, name=f"NVIDIA-C{number:02}", hardware=10**6, last_seen_at=now)
        for number in range(CARDS)
    )
    tenants = Tenant.objects.bulk_create(
        Tenant(slug=f"{slug}-t{number}", name=f"Tenant {number}") for number in range(TENANTS)
    )
    projects = Project.objects.bulk_create(
        Project(tenant=tenant, slug=f"p{number}", name=f"Project {number}")
        for tenant in tenants
        for number in range(PROJECTS)
    )
    made = Queue.objects.bulk_create(
        Queue(
            cluster=cluster,
            name=f"{slug}-q{number:05}",
            service_type="inference",
            tenant_id=projects[number % len(projects)].tenant_id,
            project=projects[number % len(projects)],
        )
        for number in range(queues)
    )
    chosen = [(queue, cards[(number + step) % CARDS]) for number, queue in enumerate(made) for step in (0, 3, 7, 12)]
    CardQuota.objects.bulk_create(
        (
            CardQuota(cluster=cluster, card_type=card, service_type="inference", queue=queue, cards=8)
            for queue, card in chosen
        ),
        batch_size=5000,
    )
    QueueUsage.objects.bulk_create(
        (
            QueueUsage(
                queue=queue, card=card.name, at=now, quota=8000, allocated=number * 37 % 8000, inqueue=0, elastic=0
            )
            for number, (queue, card) in enumerate(chosen)
        ),
        batch_size=5000,
    )
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return slug


def tree_page(queues: int, query: str = "") -> Callable[[], Callable[[], float]]:
    """The tree's page, from the request to the last byte, in the process that serves it."""

    def prepare() -> Callable[[], float]:
        slug, client = _filled(queues), _client()

        def measure() -> float:
            start = clock()
            answer = client.get(f"/clusters/{slug}/quota/{query}")
            taken = clock() - start
            assert answer.status_code == 200
            assert b"aria-level" in answer.content
            return taken

        return measure

    return prepare


def grid(queues: int) -> Callable[[], Callable[[], float]]:
    """95th percentile from a key to its painting in Chromium, of a run through the grid by keyboard.

    As processor time: what the page's main thread spends on a key, its script, style, layout and painting.
    """

    def prepare() -> Callable[[], float]:
        slug, client = _filled(queues), _client()
        base = f"/clusters/{slug}/quota/edit/"
        pages = {base: client.get(base), f"{base}data/": client.get(f"{base}data/")}
        assert all(answer.status_code == 200 for answer in pages.values())
        bodies = {path: (answer.content, answer["Content-Type"]) for path, answer in pages.items()}
        page = _opened(base, bodies)
        devtools = page.context.new_cdp_session(page)
        devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

        def spent() -> float:
            found = devtools.send("Performance.getMetrics")["metrics"]
            return float(next(metric["value"] for metric in found if metric["name"] == "TaskDuration"))

        def measure() -> float:
            page.evaluate("window.keys = []")
            taken, before = [], spent()
            for number, key in enumerate(KEYS, 1):
                page.keyboard.press(key)
                page.evaluate(f"window.drawn({number})")
                taken.append(spent() - before)
                before += taken[-1]
            if not is_processor_time():
                taken = [milliseconds / 1000 for milliseconds in page.evaluate("window.keyTimes()")]
            return float(statistics.quantiles(taken, n=20, method="inclusive")[-1])

        return measure

    return prepare


def _opened(base: str, bodies: dict[str, tuple[bytes, str]]) -> Any:
    """The page in a browser that gets everything from memory: what is measured is the page alone."""
    from playwright.sync_api import sync_playwright

    from tidesched_web.embedded.prepared import static_root

    def answer(route: Any) -> None:
        path = urlsplit(route.request.url).path
        if path in bodies:
            body, kind = bodies[path]
            route.fulfill(body=body, content_type=kind)
        elif path.startswith("/static/"):
            route.fulfill(path=static_root() / path.removeprefix("/static/"))
        elif path == f"{base}check/":
            route.fulfill(json={"errors": [], "warnings": []})
        else:
            route.fulfill(status=204, body="")

    playwright = sync_playwright().start()
    atexit.register(playwright.stop)
    browser = playwright.chromium.launch(
        executable_path=os.environ.get("CHROMIUM")
        or shutil.which("chromium-headless-shell")
        or shutil.which("chromium"),
        args=["--no-sandbox", "--disable-dev-shm-usage"],
    )
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.route("**/*", answer)
    page.add_init_script(WATCH)
    page.goto(f"http://bench{base}")
    page.locator("#sheet[data-state=ready]").wait_for()
    page.locator("#sheet").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    return page
