"""What all of the crew share: the installation, the book, the ledger, the accounts, and the time at which they stop."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.browser.demo import Demo
from tests.crew.book import Book
from tests.crew.cluster import CARD, CARDS_OF_NODE, LENT_CARD, NAMESPACE, Cluster
from tests.crew.deeds import Deeds
from tests.crew.faults import FaultLog
from tests.crew.ledger import Ledger
from tests.crew.web_client import WebClient, fields_of, needed
from tests.passwords import PASSWORD

SLUG = "demo"
LOOKS_EVERY = 3.0
_BANNER = re.compile(r'<div[^>]*class="banner[^"]*"[^>]*>.*?<p class="grow">(.*?)</p>', re.DOTALL)
_AWAY = re.compile(r"<h1>(.*?)</h1>", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
LANES = [f"crew-lane-{number}" for number in range(4)]
REMEDIES = [f"crew-remedy-{number}" for number in range(4)]
LATER = ["crew-later-0", "crew-later-1"]
SHEET = [f"crew-sheet-{number}" for number in range(6)]
# The queue of a job that borrows, and the queue of the service whose cards these are.
LENT = ("crew-borrower", "crew-owner")
# A platform applies a tree: the queue of its lane and these, in one change.
TREES = {lane: [f"crew-tree-{number}-{place}" for place in range(3)] for number, lane in enumerate(LANES)}
OWN = [*LANES, *REMEDIES, *LATER, *SHEET, *(queue for tree in TREES.values() for queue in tree)]
NODES = 11
SCOPES = ["quota:read", "quota:write", "cluster:read", "reclaim:read", "audit:read", "metrics:read", "admin"]


def names(kind: str) -> str:
    """The name of an account after what its person is; the demo has people of its own."""
    return f"crew-{kind.replace(' ', '-')}"


@dataclass
class Person:
    """An account: what it may, and the cookies of a browser that is signed in."""

    name: str
    role: str = ""
    tenant: str = ""
    cookies: dict[str, str] = field(default_factory=dict)


@dataclass
class Scene:
    """One run."""

    demo: Demo
    ends_at: float
    faults: FaultLog = field(default_factory=FaultLog)
    ledger: Ledger = field(default_factory=Ledger)
    deeds: Deeds = field(default_factory=Deeds)
    book: Book = field(init=False)
    cluster: Cluster = field(init=False)
    people: list[Person] = field(default_factory=list)
    token: str = ""
    notes: list[str] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    _line: str = ""
    _looked_at: float = -1000.0
    _looking: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self.book, self.cluster = Book(self.faults), Cluster(self.demo)

    @property
    def address(self) -> str:
        return self.demo.address

    def over(self) -> bool:
        """Whether nothing new begins any more."""
        return self.stopped.is_set() or time.time() >= self.ends_at

    def rest(self, seconds: float) -> None:
        """Wait, but not beyond the end."""
        self.stopped.wait(max(0.0, min(seconds, self.ends_at - time.time())))

    def client(self, person: str) -> WebClient:
        """A platform's client with the crew's token."""
        return WebClient(self.address, person, self.ledger, token=self.token)

    def status_line(self) -> str:
        """What the banners of the status page and of the overview say now, to an auditor; empty: all is well."""
        with self._looking:
            if time.monotonic() - self._looked_at > LOOKS_EVERY:
                self._line, self._looked_at = self._banners(), time.monotonic()
            return self._line

    def _banners(self) -> str:
        reader = next((one for one in self.people if one.role == "auditor"), None)
        if reader is None:
            return ""
        found = []
        for path in ("/status/", f"/clusters/{SLUG}/"):
            with suppress(httpx.HTTPError):
                answer = httpx.get(f"{self.address}{path}", cookies=reader.cookies, timeout=10)
                found += (_AWAY if answer.status_code == 503 else _BANNER).findall(answer.text)
        return "; ".join(dict.fromkeys(_TAG.sub("", text).strip() for text in found))

    def gave_up(self, kind: str, person: str, why: str) -> None:
        """A person did not get done what they came for; in the report too."""
        self.deeds.gave_up(kind, person, why, time.time())
        self.note(f"{person} gave up {kind}: {why}")

    def note(self, text: str) -> None:
        """For the report."""
        self.notes.append(f"{time.strftime('%H:%M:%S', time.gmtime())} {text}")


def until(found: Callable[[], Any], *, seconds: float, every: float = 1.0) -> Any:
    """Ask until the answer is true; after ``seconds`` the last answer, whatever it is."""
    deadline = time.monotonic() + seconds
    while True:
        answer = found()
        if answer or time.monotonic() > deadline:
            return answer
        time.sleep(every)


def invite(admin: WebClient, scene: Scene, person: Person) -> None:
    """Make an account by an invitation; its person sets the password and is signed in."""
    role = "admin" if person.role == "tenant admin" else "member"
    memberships = [{"tenant": person.tenant, "role": role}] if person.tenant else []
    platform_role = person.role if person.role in ("admin", "auditor") else ""
    body = {"username": person.name, "email": "", "platform_role": platform_role, "memberships": memberships}
    made = needed(admin.retried("POST", "/api/v1/users/", page="rest users", json=body, headers=admin.csrf()), 201)
    link = str(made["link"]["address"]).removeprefix(scene.address)
    theirs = WebClient(scene.address, person.name, scene.ledger)
    opened = theirs.get(link, page="form invitation")
    names = [one["name"] for one in fields_of(opened.text) if one.get("type") == "password"]
    theirs.submit(link, dict.fromkeys(names, PASSWORD), page="form invitation")
    person.cookies = theirs.cookies()
    if "sessionid" not in person.cookies and not theirs.sign_in(person.name, PASSWORD):
        scene.note(f"{person.name} is not signed in after the invitation")
    person.cookies = theirs.cookies()
    theirs.close()


def set_up(scene: Scene, people: list[Person]) -> None:
    """Accounts, a token, nodes of the crew's own, and the crew's part of the tree."""
    admin = WebClient(scene.address, "admin", scene.ledger)
    assert admin.sign_in("admin", PASSWORD), "the first account signs in"
    body = {"scopes": SCOPES, "name": "crew"}
    made = needed(admin.retried("POST", "/api/v1/tokens/", page="rest tokens", json=body, headers=admin.csrf()), 201)
    scene.token = made["token"]
    for person in people:
        invite(admin, scene, person)
        scene.people.append(person)
    admin.close()
    scene.cluster.add_nodes(NODES)
    scene.cluster.add_nodes(1, LENT_CARD)
    scene.cluster.add_namespace(NAMESPACE)
    client = scene.client("platform")
    until(
        lambda: (
            {CARD, LENT_CARD}
            <= {row["name"] for row in client.rows("/api/v1/card-types/?limit=200", page="rest card-types")}
        ),
        seconds=240,
    )
    edits: dict[str, Any] = {"business-line/-/crew": {"name": "Crew"}}
    for queue in OWN:
        edits[f"queue/{queue}"] = {"service_type": "training", "business_line": "crew", "card_quota": {}}
        edits[f"grant/{NAMESPACE}/{queue}"] = {}
    edits |= {"tenant/crew": {"name": "Crew"}, "project/crew/crew": {"name": "Crew"}}
    owners = ({"business_line": "crew"}, {"tenant": "crew", "project": "crew"})
    for queue, service_type, owner in zip(LENT, ("training", "inference"), owners, strict=True):
        edits[f"queue/{queue}"] = {"service_type": service_type, "card_quota": {LENT_CARD: CARDS_OF_NODE}} | owner
        edits[f"grant/{NAMESPACE}/{queue}"] = {}
    apply(client, edits, "The crew's queues.")
    client.close()


def apply(client: WebClient, edits: dict[str, Any], reason: str) -> dict[str, Any]:
    """Draft, apply and wait until the cluster has it; the change as it is then."""
    body = {"cluster": SLUG, "edits": edits, "reason": reason}
    drafted = client.retried("POST", "/api/v1/quota-changes/", page="rest quota-changes", json=body)
    return carry(client, needed(drafted, 201))


def carry(client: WebClient, change: dict[str, Any], *, seconds: float = 90.0) -> dict[str, Any]:
    """Apply a draft under the version that was read, and follow it until it is over or the time is."""
    path = f"/api/v1/quota-changes/{change['id']}/"
    sent = client.retried(
        "POST",
        f"{path}apply/",
        page="rest quota-changes apply",
        json={},
        headers={"If-Match": f'"{change["version"]}"'},
        expected=(409, 412, 422),
    )
    if sent.status_code not in (200, 202):
        return {**change, "state": "refused", "refusal": sent.text}

    def followed() -> dict[str, Any] | None:
        found = needed(client.get(path, page="rest quota-change"), 200)
        return found if found["state"] not in ("applying", "approved") else None

    return until(followed, seconds=seconds, every=0.5) or needed(client.get(path, page="rest quota-change"), 200)
