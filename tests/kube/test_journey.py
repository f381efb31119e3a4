"""The whole way of a change of quota with a real API server as the cluster, in mode schedule.

What `make up` starts is connected to it by address and token in the browser; what the cluster has is read by plain
requests.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

import pytest
from playwright.sync_api import expect

from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from tests.browser import conftest as chromium
from tests.browser import demo as product
from tests.browser.conftest import Opener, Watched, browser, open_browser
from tests.browser.journey import H200, QUEUE, SECONDS, SIBLING, TENANT, Place, heal, raise_the_quota, roll_back
from tests.cluster.objects import CLASSES, node
from tests.kube.real_server import RealServer
from tests.kube.shared import stand_aside, stand_by
from tests.waiting import until
from tidesched_web.clusters.kubernetes.paths import NODE

__all__ = ["browser", "open_browser"]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not os.environ.get("CI") and (chromium.chromium() is None or not chromium.AXE.exists()),
        reason="no Chromium, or no axe-core",
    ),
]

NODES, CARDS = 2, 8
SLUG, WHY = "hall-1", "The first hall."
EDITS: dict[str, object] = {
    "tenant/delta-speech": {"name": TENANT, "quota": {"training": {"card_quota": {H200: 0}}}},
    "business-line/delta-speech/models": {"name": "Speech models"},
    "business-line/-/platform": {"name": "Platform"},
    f"queue/{QUEUE}": {
        "service_type": "training",
        "tenant": "delta-speech",
        "business_line": "models",
        "card_quota": {H200: 0},
    },
    f"queue/{SIBLING}": {
        "service_type": "training",
        "business_line": "platform",
        "card_quota": {H200: NODES * CARDS},
    },
}


class Plain:
    """The cluster by plain HTTP requests: nothing of TideSched's adapter."""

    def __init__(self, server: RealServer) -> None:
        self._url, self._headers = server.url, {"Authorization": f"Bearer {server.token}"}
        context = ssl.create_default_context(cadata=server.ca_certificate)
        self._opener = build_opener(ProxyHandler({}), HTTPSHandler(context=context))

    def __call__(self, method: str, path: str, body: dict[str, object] | None = None) -> dict[str, Any]:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self._url}{path}", data, self._headers | {"Content-Type": kind}, method=method)
        with self._opener.open(request, timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
        return found


@pytest.fixture
def hall(server: RealServer) -> Iterator[Plain]:
    """Nodes and kubelets, and nothing else."""
    stand_aside()
    server.clear()
    stand_by(server, grace=0.3)
    ask = Plain(server)
    for index in range(NODES):
        ask("POST", NODE.path(), node(f"n{index}", CARDS))
    ask("POST", CLASSES, {"metadata": {"name": "pc-high"}, "value": 80000})
    yield ask
    stand_aside()
    server.clear()


@pytest.fixture
def installed(hall: Plain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[product.Demo]:
    with product.running(tmp_path_factory.mktemp("journey"), cluster=False) as running:
        yield running


def connect(watched: Watched, server: RealServer) -> None:
    """By address and token; the test's findings are read before anything is saved."""
    page = watched.page
    watched.open("/new/cluster/?way=token")
    page.get_by_label("Address of the API server").fill(server.url)
    page.get_by_label("Token of a service account").fill(server.token)
    page.get_by_label("Certificate authority").fill(server.ca_certificate)
    page.get_by_label("Mode", exact=True).select_option("schedule")
    page.locator("form[data-edit] button[type=submit]").click()
    page.wait_for_url("**/new/cluster/*/")
    expect(page.locator("[aria-labelledby=test-title]")).to_contain_text("v1.", timeout=SECONDS * 1000)
    page.get_by_label("Name", exact=True).fill("Hall 1")
    page.get_by_label("Reason", exact=True).fill(WHY)
    page.locator("form[data-edit] button[type=submit]").click()
    page.wait_for_url(f"**/clusters/{SLUG}/**")


def send(watched: Watched, method: str, path: str, body: dict[str, object], **headers: str) -> dict[str, Any]:
    """One request to TideSched's REST API in the browser's session."""
    cookies = {cookie["name"]: cookie["value"] for cookie in watched.page.context.cookies()}
    answer = watched.page.request.fetch(
        f"{watched.address}/api/v1/{path}",
        method=method,
        data=body,
        headers={"X-CSRFToken": cookies["csrftoken"], "Referer": watched.address, **headers},
    )
    assert answer.ok, f"{method} {path}: {answer.status} {answer.text()}"
    found: dict[str, Any] = answer.json()
    return found


def set_up(watched: Watched, place: Place) -> None:
    """A policy, and the first queues."""
    (cluster,) = watched.page.request.get(f"{watched.address}/api/v1/clusters/?slug={SLUG}").json()["results"]
    policy = f"clusters/{cluster['id']}/policy/"
    # A new cluster has a policy from the start; this one is put in its place.
    there = watched.page.request.get(f"{watched.address}/api/v1/{policy}")
    send(watched, "PUT", policy, {"text": FOUNDING_POLICY, "reason": WHY}, **{"If-Match": there.headers["etag"]})
    send(watched, "POST", f"{policy}release/", {"reason": WHY})

    def seen() -> bool:
        cards = watched.page.request.get(f"{watched.address}/api/v1/card-types/?cluster={SLUG}").json()["results"]
        return [(one["name"], one["hardware"]) for one in cards] == [(H200, NODES * CARDS)]

    until(seen, SECONDS)
    change = send(watched, "POST", "quota-changes/", {"cluster": SLUG, "edits": EDITS, "reason": WHY})
    tag = {"If-Match": f'"{change["version"]}"'}
    send(watched, "POST", f"quota-changes/{change['id']}/apply/", {}, **tag)
    until(lambda: _pushed(place), SECONDS)


def _pushed(place: Place) -> bool:
    try:
        return place.quota() == 0
    except OSError:
        return False


def test_from_a_waiting_gang_to_the_roll_back_and_a_change_by_hand(
    server: RealServer, hall: Plain, installed: product.Demo, open_browser: Opener
) -> None:
    watched = open_browser(installed.address)
    place = Place(SLUG, hall, promised=NODES * CARDS, sibling=NODES * CARDS - 4)
    connect(watched, server)
    set_up(watched, place)
    roll_back(place, watched, raise_the_quota(place, watched, pictures="kubernetes"))
    heal(place, watched, pictures="kubernetes")
