"""A visitor who means no good, with and without an account: what is shown to a stranger, and what falls over.

Calls from an address of its own, as an attacker has: limits by address may meet it, and must not meet others.
"""

from __future__ import annotations

import itertools
import re
import socket
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

import httpx

from tests.crew.deeds import HOARD
from tests.crew.ledger import SERVER_ERROR, STRANGER, UNEXPECTED
from tests.crew.scene import SLUG, Scene, names
from tests.crew.web_client import WebClient, fields_of

ADDRESS = "127.0.0.66"
STRANGER_NAME = names("stranger")
SECRETS = re.compile(r"crew-(?:lane|sheet|remedy|later|tree)-\d")
BODY = 5 * 2**20
# More than one account may have in all web processes together.
STREAMS = 100
# Addresses that need an account with rights; `{}` is a number that belongs to others.
PAGES = (
    f"/clusters/{SLUG}/",
    f"/clusters/{SLUG}/gangs/{{}}/",
    f"/clusters/{SLUG}/changes/{{}}/",
    f"/clusters/{SLUG}/reclaims/{{}}/",
    f"/clusters/{SLUG}/queues/crew-lane-0/",
    f"/clusters/{SLUG}/quota/edit/data/",
    f"/clusters/{SLUG}/tree/",
    "/audit/{}/",
    "/users/{}/",
    "/jobs/{}/",
    "/status/",
    "/api/v1/quota-changes/{}/",
    "/api/v1/quota-changes/{}/plan/",
    "/api/v1/gangs/{}/",
    "/api/v1/queues/{}/",
    "/api/v1/reclaims/{}/",
    "/api/v1/audit/{}/",
    "/api/v1/users/{}/",
    "/api/v1/audit/bundle/",
    "/api/v1/clusters/{}/",
)
LISTS = ("queues", "gangs", "quota-changes", "reclaims", "audit", "users", "tokens", "jobs", "nodes", "tenants")


def look_around(client: WebClient, scene: Scene, number: int) -> None:
    """Addresses of others, by number: none answers with a page."""
    for place in PAGES:
        path = place.format(number)
        with suppress(httpx.TransportError):
            answer = client.ask("GET", path, page="hostile look")
            if answer.status_code == 200:
                scene.ledger.trouble(STRANGER, client.person, path, f"200: {answer.text[:200]}")
    for name in LISTS:
        path = f"/api/v1/{name}/?limit=200"
        with suppress(httpx.TransportError):
            answer = client.ask("GET", path, page="hostile list")
            if answer.status_code == 200 and answer.json()["results"]:
                rows = answer.json()["results"]
                scene.ledger.trouble(STRANGER, client.person, path, f"{len(rows)} rows: {str(rows[0])[:200]}")


def guess(client: WebClient, number: int) -> None:
    """Wrong passwords for accounts that are there and for one that is not."""
    for name in ("admin", "crowd-1", f"guest-{number}"):
        for attempt in range(4):
            with suppress(httpx.TransportError):
                opened = client.ask("GET", "/sign-in/", page="hostile sign-in")
                values = {}
                for one in fields_of(opened.text.partition("</form>")[0]):
                    if "name" in one:
                        default = f"guess-{number}-{attempt}" if one.get("type") == "password" else name
                        values[one["name"]] = one.get("value", "") if one.get("type") == "hidden" else default
                client.ask("POST", "/sign-in/", page="hostile sign-in", data=values)


def bodies(client: WebClient) -> None:
    """Bodies that are too large, too deep, too long or no text at all."""
    deep = '{"a":' * 5000 + "1" + "}" * 5000
    for path, body, kind in (
        ("/api/v1/quota-changes/", b"x" * BODY, "application/json"),
        ("/api/v1/quota-changes/", deep.encode(), "application/json"),
        (
            "/api/v1/quota-changes/",
            b'{"cluster":"demo","edits":{"queue/a":{"weight":' + b"9" * 5000 + b"}}}",
            "application/json",
        ),
        ("/api/v1/tokens/", b"\xff\xfe\x00", "application/json"),
        ("/sign-in/", b"username=" + b"a" * (2 * BODY), "application/x-www-form-urlencoded"),
        (f"/clusters/{SLUG}/tree/", b"a: &a [*a,*a]\n" * 1000, "text/yaml"),
    ):
        with suppress(httpx.TransportError):
            client.ask("POST", path, page="hostile body", content=body, headers={"Content-Type": kind})
    for text in ("%00", "%ff%fe", "9" * 400, "'%20OR%201=1--", "../../etc/passwd"):
        with suppress(httpx.TransportError):
            client.ask("GET", f"/clusters/{text}/gangs/?cursor={text}&q={text}", page="hostile text")


def trickle(scene: Scene) -> None:
    """A body that never comes to an end, a byte at a time."""
    parts = urlsplit(scene.address)
    with suppress(OSError):
        wire = socket.create_connection((parts.hostname or "", parts.port or 80), 10, source_address=(ADDRESS, 0))
        wire.sendall(b"POST /api/v1/quota-changes/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
        ends = time.monotonic() + 40
        while time.monotonic() < ends and not scene.over():
            wire.sendall(b"{")
            time.sleep(1)
        wire.close()


def hoard(scene: Scene, cookies: dict[str, str]) -> None:
    """More streams than one account may have, held open and never read."""
    parts = urlsplit(scene.address)
    cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
    wires = []
    asked_at = time.time()
    for _number in range(STREAMS):
        with suppress(OSError):
            wire = socket.create_connection((parts.hostname or "", parts.port or 80), 10, source_address=(ADDRESS, 0))
            wires.append(wire)
            wire.sendall(f"GET /api/v1/stream HTTP/1.1\r\nHost: {parts.netloc}\r\nCookie: {cookie}\r\n\r\n".encode())
    scene.rest(20)
    answers = []
    for wire in wires:
        with suppress(OSError):
            wire.settimeout(5)
            answers.append(wire.recv(12).decode("latin-1")[-3:])
            wire.close()
    if any(one.startswith("5") and one != "503" for one in answers):
        scene.ledger.trouble(SERVER_ERROR, "hostile visitor", "/api/v1/stream", str(answers))
    if len(answers) < STREAMS // 2:  # the web process itself was away
        scene.gave_up(HOARD, "hostile visitor", f"{len(answers)} of {STREAMS} streams were answered")
    elif set(answers) == {"503"} and scene.faults.at(asked_at, before=1.0):
        scene.gave_up(HOARD, "hostile visitor", "none of the streams could be opened in the time of a fault")
    elif "429" not in answers:
        scene.ledger.trouble(UNEXPECTED, "hostile visitor", "/api/v1/stream", f"none of {STREAMS} refused: {answers}")
    else:
        scene.deeds.did(HOARD, "hostile visitor")


def work(scene: Scene) -> None:
    """All of it, round after round, from before the door and from inside with an account that belongs nowhere."""
    account = next(one for one in scene.people if one.name == STRANGER_NAME)
    outside = WebClient(scene.address, "hostile visitor", scene.ledger, address_from=ADDRESS, behaved=False)
    inside = WebClient(
        scene.address, STRANGER_NAME, scene.ledger, address_from=ADDRESS, behaved=False, cookies=account.cookies
    )
    for number in itertools.count(1):
        if scene.over():
            break
        helpers = [
            threading.Thread(target=trickle, args=(scene,), daemon=True),
            threading.Thread(target=hoard, args=(scene, account.cookies), daemon=True),
        ]
        for helper in helpers:
            helper.start()
        look_around(outside, scene, number)
        look_around(inside, scene, number)
        guess(outside, number)
        bodies(outside)
        bodies(inside)
        for helper in helpers:
            helper.join(60)
        scene.rest(10)
    outside.close()
    inside.close()
