"""The whole way of a change of quota on a running system, from a gang that waits to the roll back.

The same steps for every cluster. The pages, the objects of the cluster and the audit log are the witnesses.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.error import HTTPError

from playwright.sync_api import expect

from tests.browser.conftest import Watched
from tests.browser.sheet import Sheet
from tests.waiting import until

H200, QUEUE, TENANT, SIBLING = "NVIDIA-H200", "train-speech-models", "Delta Speech", "train-platform-batch"
NAMESPACE, JOB = "delta-speech-models", "quota-story"
GIVEN = 4
REASON = "Speech needs H200 for its new model."
SECONDS = 240
QUEUE_PATH = f"/apis/scheduling.volcano.sh/v1beta1/queues/{QUEUE}"


class Asks(Protocol):
    """Asks the cluster itself, past TideSched."""

    def __call__(self, method: str, path: str, body: dict[str, object] | None = None) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Place:
    """A cluster in which ``QUEUE`` and its tenant have no H200, and ``SIBLING`` is one of those that have them.

    Args:
        slug: in the pages' addresses.
        promised: H200 promised to training, as many as its hardware has.
        sibling: how many ``SIBLING`` has once it gave way.
    """

    slug: str
    ask: Asks
    promised: int
    sibling: int

    def page(self, path: str) -> str:
        return f"/clusters/{self.slug}/{path}"

    def quota(self) -> int:
        """What the Queue object of the cluster says."""
        annotations = self.ask("GET", QUEUE_PATH)["metadata"]["annotations"]
        return int(json.loads(annotations["volcano.sh/card.quota"]).get(H200, 0))

    def submit(self) -> None:
        with suppress(HTTPError):  # a namespace that is there already
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
            self.ask("POST", "/api/v1/namespaces", namespace)
        self.ask("POST", f"/apis/batch.volcano.sh/v1alpha1/namespaces/{NAMESPACE}/jobs", job())

    def gang(self) -> str:
        """The PodGroup of the job; Volcano's controllers put the job's uid behind its name."""
        path = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{NAMESPACE}/podgroups"
        names = [one["metadata"]["name"] for one in self.ask("GET", path)["items"]]
        return next((name for name in names if name == JOB or name.startswith(f"{JOB}-")), "")

    def placed(self) -> list[tuple[str, str]]:
        """Node and phase of each of the gang's pods that has a node."""
        pods = self.ask("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
        mine = [one for one in pods if one["metadata"]["name"].startswith(f"{JOB}-")]
        return [(one["spec"]["nodeName"], one["status"]["phase"]) for one in mine if one["spec"].get("nodeName")]

    def gang_says(self, watched: Watched, text: str) -> bool:
        name = self.gang()
        answer = watched.page.request.get(f"{watched.address}{self.page(f'gangs/{NAMESPACE}/{name}/')}")
        return bool(name) and answer.ok and text in answer.text()


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


def apply(watched: Watched, reason: str) -> None:
    """Say why and apply, then watch the page follow until the cluster has it."""
    page = watched.page
    page.get_by_label("Reason", exact=True).fill(reason)
    refused = True
    while refused:  # on a busy cluster others may be named than when the page was read
        with page.expect_navigation():
            page.get_by_role("button", name="Apply", exact=True).click()
        refused = page.get_by_text("Who would start or lose a place has changed").is_visible()
        if refused:
            assert "412" in watched.errors.pop()
    state = page.locator("[aria-labelledby=where-title] .card-header .state")
    expect(state).to_have_text("Applied", timeout=SECONDS * 1000)


def raise_the_quota(place: Place, watched: Watched, *, pictures: str) -> str:
    """From a gang that waits to a gang that runs; the address of the change."""
    page = watched.page
    place.submit()
    until(lambda: place.gang_says(watched, "it can never fit"), SECONDS)

    # Raise the queue: its tenant has none to give.
    watched.open(place.page("quota/edit/"))
    sheet = Sheet(page)
    sheet.filter("speech", "training")
    sheet.type(QUEUE, H200, str(GIVEN))
    expect(sheet.message).to_contain_text(f"{TENANT} gives out {GIVEN} H200, but has 0")
    # Raise the tenant: the hardware has none left.
    sheet.type(TENANT, H200, str(GIVEN))
    expect(sheet.faults).to_contain_text(
        f"Training H200: {place.promised + GIVEN} are given out, but at most {place.promised} may be "
        f"(hardware {place.promised} × ratio 1.0 = {place.promised}): {GIVEN} too many."
    )
    expect(sheet.faults.get_by_role("button", name=re.compile("^Lower "))).to_be_visible()
    expect(page.locator("#count-errors")).to_have_text("1 error")
    watched.picture(f"{pictures}-error-light-1440")
    watched.check()
    # Lower the sibling.
    sheet.filter("platform-batch", "training")
    sheet.type(SIBLING, H200, str(place.sibling))
    expect(page.locator("#count-errors")).to_have_text("no errors")
    expect(page.locator("#count-checked")).to_have_text("checked with the server")
    page.get_by_role("button", name="Review").click()
    page.wait_for_url("**/changes/*/")

    # What it would do names the gang: among those that run at once, or at high tide among those that are let in.
    told = page.locator("[id^=impact-] .impact-section").filter(has_text=f"{NAMESPACE}/{JOB}")
    expect(told.first).to_be_visible(timeout=SECONDS * 1000)
    page.locator(".object-diff summary").first.click()
    expect(page.locator(".diff").first).to_be_visible()
    watched.picture(f"{pictures}-review-light-1440")
    watched.check()
    assert place.quota() == 0, "nothing is sent before it is applied"

    apply(watched, REASON)
    assert place.quota() == GIVEN
    watched.picture(f"{pictures}-applied-light-1440")
    watched.check()
    change = page.url
    until(lambda: place.gang_says(watched, "Running"), SECONDS)
    until(lambda: [phase for _, phase in place.placed()] == ["Running"] * 2, SECONDS)

    watched.open("/audit/")
    expect(page.get_by_text(REASON).first).to_be_visible()
    return change


def roll_back(place: Place, watched: Watched, change: str) -> None:
    """As a change of its own; the gang that runs is not evicted by a quota below its use."""
    page = watched.page
    page.goto(change)
    page.get_by_role("button", name="Roll back").first.click()
    page.wait_for_url(lambda url: url != change and "/changes/" in url)
    expect(page.locator("[aria-labelledby=fields-title]")).to_contain_text(QUEUE)
    apply(watched, "Only for the test.")
    assert place.quota() == 0
    page.goto(change)
    expect(page.locator("[aria-labelledby=where-title] .card-header .state")).to_have_text("Rolled back")


def heal(place: Place, watched: Watched, *, pictures: str) -> None:
    """A person changes the Queue by hand: the page says so by itself, and sends the intent again when asked."""
    page, intent = watched.page, place.quota()
    watched.open(place.page("drift/"))
    expect(page.get_by_role("heading", name="Intent and cluster agree")).to_be_visible()
    wanted = {"metadata": {"annotations": {"volcano.sh/card.quota": json.dumps({H200: intent + 3})}}}
    place.ask("PATCH", f"{QUEUE_PATH}?fieldManager=kubectl-edit", wanted)
    assert place.quota() == intent + 3
    found = page.locator("section[aria-labelledby^=drift-]").filter(has_text=f"Queue {QUEUE}")
    row = found.get_by_role("row").filter(has_text="kubectl-edit")
    expect(row).to_contain_text("H200", timeout=SECONDS * 1000)
    figures = row.locator("td.num").all_inner_texts()
    assert figures == [str(intent), str(intent), str(intent + 3)]
    expect(page.locator("#page-line")).not_to_contain_text("All objects of the cluster are as they were sent.")
    watched.picture(f"{pictures}-drift-light-1440")
    watched.check()
    found.get_by_role("checkbox").check()
    page.get_by_label("Reason", exact=True).fill("It was a mistake.")
    page.get_by_role("button", name="Push again").click()
    until(lambda: place.quota() == intent, SECONDS)
    ended = page.locator("[aria-labelledby=ended-title] tbody tr").filter(has_text=QUEUE)
    expect(ended.first).to_contain_text("It was a mistake.", timeout=SECONDS * 1000)
    expect(page.get_by_role("heading", name="Intent and cluster agree")).to_be_visible()
    watched.check()
