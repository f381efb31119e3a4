"""The whole way of a change of quota on the running system, from a gang that waits to the roll back.

The pages, the objects of the simulated cluster and the audit log are the witnesses.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from urllib.error import HTTPError

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Opener, Watched
from tests.browser.demo import Demo
from tests.browser.sheet import Sheet

H200, QUEUE, NAMESPACE, JOB = "NVIDIA-H200", "train-speech-models", "delta-speech-models", "quota-story"
REASON = "Speech needs H200 for its new model."
SECONDS = 240

pytestmark = pytest.mark.slow


def job() -> dict[str, object]:
    """A gang of two that needs one H200 each, in a queue that has no quota for any."""
    amounts = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
    pod = {
        "metadata": {"annotations": {"volcano.sh/card.name": H200}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "worker", "image": "x", "resources": {"requests": amounts, "limits": amounts}}],
        },
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": JOB, "namespace": NAMESPACE, "annotations": {"tidesched.io/run-seconds": "900000"}},
        "spec": {
            "schedulerName": "tidesched",
            "queue": QUEUE,
            "minAvailable": 2,
            "priorityClassName": "pc-high",
            "tasks": [{"name": "worker", "replicas": 2, "template": pod}],
        },
    }


def eventually(found: Callable[[], bool], what: str, *, seconds: float = SECONDS) -> None:
    """Ask until it is so."""
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(1)


def quota_in_cluster(demo: Demo) -> int:
    """What the Queue object of the cluster says."""
    queue = demo.ask("GET", f"/apis/scheduling.volcano.sh/v1beta1/queues/{QUEUE}")
    annotations: dict[str, str] = queue["metadata"]["annotations"]  # type: ignore[index]
    return int(json.loads(annotations["volcano.sh/card.quota"]).get(H200, 0))


def submit(demo: Demo) -> None:
    with suppress(HTTPError):  # a namespace that is there already
        demo.ask(
            "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        )
    demo.ask("POST", f"/apis/batch.volcano.sh/v1alpha1/namespaces/{NAMESPACE}/jobs", job())


def gang_says(watched: Watched, text: str) -> bool:
    answer = watched.page.request.get(f"{watched.address}/clusters/demo/gangs/{NAMESPACE}/{JOB}/")
    return answer.ok and text in answer.text()


def apply(watched: Watched, reason: str) -> None:
    """Say why and apply, then watch the page follow until the cluster has it."""
    page = watched.page
    page.get_by_label("Reason", exact=True).fill(reason)
    page.get_by_role("button", name="Apply", exact=True).click()
    state = page.locator("[aria-labelledby=where-title] .card-header .state")
    expect(state).to_have_text("Applied", timeout=SECONDS * 1000)


def test_from_a_waiting_gang_to_the_roll_back(demo: Demo, open_browser: Opener) -> None:
    watched = open_browser(demo.address)
    whole_way(demo, watched)


def whole_way(demo: Demo, watched: Watched) -> None:
    page = watched.page
    submit(demo)
    eventually(lambda: gang_says(watched, "it can never fit"), "the gang says why it waits")

    # Raise the queue: its tenant has none to give.
    watched.open("/clusters/demo/quota/edit/")
    sheet = Sheet(page)
    sheet.filter("speech", "training")
    sheet.type(QUEUE, H200, "4")
    expect(sheet.message).to_contain_text("Delta Speech hands on 4 H200, but has 0")
    # Raise the tenant: the hardware has none left.
    sheet.type("Delta Speech", H200, "4")
    expect(sheet.faults).to_contain_text("Training H200: 164 are handed on, but the hardware allows 160: 4 too many.")
    expect(sheet.faults).to_contain_text("could give way")
    expect(page.locator("#count-errors")).to_have_text("1 error")
    watched.picture("quota-live-error-light-1440")
    watched.check()
    # Lower the sibling.
    sheet.filter("platform-batch", "training")
    sheet.type("train-platform-batch", H200, "12")
    expect(page.locator("#count-errors")).to_have_text("no errors")
    expect(page.locator("#count-checked")).to_have_text("checked with the server", timeout=30_000)
    page.get_by_role("button", name="Review").click()
    page.wait_for_url("**/changes/*/")

    # What it would do names the gang.
    starts = page.locator("#impact .impact-section").filter(has_text="Would start")
    expect(starts).to_contain_text(f"{NAMESPACE}/{JOB}", timeout=SECONDS * 1000)
    expect(page.locator(".diff").first).to_be_visible()
    watched.picture("quota-live-review-light-1440")
    watched.check()
    assert quota_in_cluster(demo) == 0, "nothing is sent before it is applied"

    apply(watched, REASON)
    assert quota_in_cluster(demo) == 4
    watched.picture("quota-live-applied-light-1440")
    watched.check()
    change = page.url
    eventually(lambda: gang_says(watched, "Running"), "the gang starts")

    watched.open("/audit/")
    expect(page.get_by_text(REASON).first).to_be_visible()

    page.goto(change)
    page.get_by_text("Roll back", exact=True).first.click()
    page.get_by_label("Reason", exact=True).fill("Only for the test.")
    page.get_by_role("button", name="Roll back").click()
    page.wait_for_url(lambda url: url != change and "/changes/" in url)
    expect(page.locator("[aria-labelledby=fields-title]")).to_contain_text(QUEUE)
    apply(watched, "Only for the test.")
    assert quota_in_cluster(demo) == 0
    page.goto(change)
    expect(page.locator("[aria-labelledby=where-title] .card-header .state")).to_have_text("Rolled back")
