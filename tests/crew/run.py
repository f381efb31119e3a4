"""One run: start the installation, let everybody in at the same time, and judge what came."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.browser import demo, servers
from tests.crew import (
    advice,
    auditor,
    editors,
    hostile,
    lender,
    neighbour,
    platform,
    report,
    saboteur,
    tenant_admin,
)
from tests.crew.cluster import CARD
from tests.crew.ledger import STOPPED
from tests.crew.processes import Watch
from tests.crew.scene import LANES, LATER, OWN, REMEDIES, SLUG, Person, Scene, names, set_up
from tests.crew.verdict import Rules, failings

ROOT = servers.ROOT
TENANTS = ("atlas", "borealis", "cobalt", "delta", "ember", "fjord")
COOL_DOWN_SECONDS = 240
SAMPLE_SECONDS = 10
BROWSERS = ("quota admin one", "quota admin two", "tenant admin", "auditor")
NICE = 19


@dataclass(frozen=True)
class Size:
    """How many people come, and for how long."""

    name: str
    minutes: float
    pages: int = 300
    readers: int = 50
    accounts: int = 15
    faults: bool = False
    demo: str = "S"
    rules: Rules = field(default_factory=Rules)


def cast_of(size: Size) -> list[Person]:
    """The accounts of the crowd, then those of the browsers."""
    crowd = [
        Person(f"crowd-{number}", "auditor")
        if number % 3 == 0
        else Person(f"crowd-{number}", "member", TENANTS[number % len(TENANTS)])
        for number in range(size.accounts)
    ]
    roles = {"tenant admin": ("tenant admin", "borealis"), "auditor": ("auditor", "")}
    others = [Person(names(one), *roles.get(one, ("admin", ""))) for one in BROWSERS]
    alone = [Person(names(one), "admin") for one in ("neighbour", "timekeeper")]
    return [*crowd, *others, *alone, Person(names("stranger"))]


def browser_works() -> dict[str, Callable[[Scene], None]]:
    """What the people in browsers do, by who they are."""
    known: dict[str, Callable[[Scene], None]] = {
        "quota admin one": lambda scene: editors.work(
            scene, names("quota admin one"), [editors.typed, editors.typed_and_reloaded], 5
        ),
        "quota admin two": lambda scene: editors.work(
            scene, names("quota admin two"), [editors.pasted, editors.loaded], 5
        ),
        "tenant admin": lambda scene: tenant_admin.work(scene, names("tenant admin")),
        "auditor": lambda scene: auditor.work(scene, names("auditor")),
    }
    return {name: known[name] for name in BROWSERS}


def store_whole(path: Path, text: str) -> None:
    """A file that another process waits for is there whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


@contextmanager
def timekeeper(folder: Path) -> Iterator[None]:
    """Its process, begun before the crew becomes nice; it waits for the accounts of the crowd."""
    with (folder / "timekeeper.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.crew.timekeeper", str(folder)], cwd=servers.ROOT, stdout=log, stderr=log
        )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def hidden_from(person: Person, owners: dict[str, str]) -> str:
    """What a member may see nowhere: the crew's own objects, and the training queues of other tenants.

    Their services' queues are called as their namespaces are, and a reclaim names its other side's gang.
    """
    others = [queue for queue, tenant in owners.items() if tenant != person.tenant and queue.startswith("train-")]
    names = "|".join(re.escape(queue) for queue in sorted(others))
    return rf"{hostile.SECRETS.pattern}|\b(?:{names})(?![-\w])" if others else hostile.SECRETS.pattern


@contextmanager
def crowd(scene: Scene, size: Size) -> Iterator[None]:
    """The crowd's process, until the run is over."""
    folder = scene.demo.folder
    client = scene.client("the crowd's host")
    rows = client.rows(f"/api/v1/queues/?cluster={SLUG}&limit=1000", page="rest queues")
    client.close()
    owners = {row["name"]: row["tenant"]["slug"] for row in rows if row["tenant"]}
    record = {
        "address": scene.address,
        "slug": SLUG,
        "pages": size.pages,
        "readers": size.readers,
        "comes_within": min(180.0, 20 + 60 * size.minutes / 6),
        "seconds": max(1.0, scene.ends_at - time.time()),
        "people": [
            {
                "name": one.name,
                "cookies": one.cookies,
                "hidden": hidden_from(one, owners) if one.role == "member" else "",
            }
            for one in scene.people
            if one.name.startswith("crowd-")
        ],
    }
    (folder / "crowd.json").write_text(json.dumps(record), encoding="utf-8")
    admin = next(one for one in scene.people if one.name == names("timekeeper"))
    timed = {"ends_at": scene.ends_at, "admin": {"name": admin.name, "cookies": admin.cookies, "hidden": ""}}
    store_whole(folder / "timekeeper.json", json.dumps(record | timed))
    with (folder / "crowd.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.crew.crowd", str(folder)], cwd=servers.ROOT, stdout=log, stderr=log
        )
    try:
        yield
    finally:
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.returncode:
            scene.note(f"the crowd ended with {process.returncode}: {(folder / 'crowd.log').read_text()[-2000:]}")
            scene.book.lose("the crowd's record: its process failed")
        for name in ("crowd", "timekeeper"):
            if (folder / f"{name}-ledger.json").exists():
                scene.ledger.add(folder / f"{name}-ledger.json")


def guarded(scene: Scene, name: str, work: Callable[[Scene], None]) -> threading.Thread:
    """A person in a thread. One who fails is noted and comes again, as a person does."""

    def go() -> None:
        fails = 0
        while not scene.over() and fails < 20:
            try:
                work(scene)
            except Exception as error:  # noqa: BLE001 - whatever stops a person of the crew is in the report
                fails += 1
                scene.book.give_up(f"{name} was stopped: {error!r}"[:200], time.time())
                detail = f"{error!r} {traceback.format_exc(limit=-3)[-600:]}"
                scene.ledger.trouble(STOPPED, name, "their work", detail)
                scene.rest(5)

    return threading.Thread(target=go, name=name, daemon=True)


def final_comparison(scene: Scene) -> None:
    """Every figure that was called applied last is in the cluster and in the tree that REST shows."""
    found = {f"{queue} {CARD}": (scene.cluster.quota(queue) or {}).get(CARD, 0) for queue in OWN}
    scene.book.compare_cells(found, "the cluster")
    client = scene.client("the book")
    auditor.receipts_are_whole(scene, client)
    rows = client.rows(f"/api/v1/queues/?cluster={SLUG}&limit=1000", page="rest queues")
    client.close()
    scene.book.compare_cells(
        {f"{row['name']} {CARD}": int(row["card_quota"].get(CARD, 0)) for row in rows}, "the tree in REST"
    )


def commit() -> str:
    """What is tested."""
    asked = ["git", "describe", "--always", "--dirty", "--abbrev=9"]
    return subprocess.run(asked, cwd=servers.ROOT, capture_output=True, text=True, check=False).stdout.strip()


def play(scene: Scene, size: Size, watch: Watch) -> None:
    """Everybody at the same time, until the end; whatever is under way is finished."""
    people = [
        guarded(scene, f"platform {queue}", lambda one, queue=queue: platform.work(one, queue)) for queue in LANES
    ]
    people += [
        guarded(scene, f"follower {queue}", lambda one, queue=queue: advice.remedies(one, queue)) for queue in REMEDIES
    ]
    people += [guarded(scene, f"planner {queue}", lambda one, queue=queue: advice.later(one, queue)) for queue in LATER]
    people += [
        guarded(scene, f"examiner {share}", lambda one, share=share: auditor.examine(one, share))
        for share in range(auditor.EXAMINERS)
    ]
    people.append(guarded(scene, "one who waits", advice.waits))
    people.append(guarded(scene, "lender", lender.work))
    people += [guarded(scene, name, work) for name, work in browser_works().items()]
    people.append(guarded(scene, "hostile visitor", hostile.work))
    account = next(one for one in scene.people if one.name == names("neighbour"))
    people.append(guarded(scene, "neighbour", lambda one: neighbour.work(one, account)))
    if size.faults:
        people.append(guarded(scene, "saboteur", saboteur.work))
    with crowd(scene, size):
        for person in people:
            person.start()
        while not scene.over():
            watch.sample()
            scene.rest(SAMPLE_SECONDS)
    deadline = time.monotonic() + COOL_DOWN_SECONDS
    for person in people:
        person.join(max(0.0, deadline - time.monotonic()))
        if person.is_alive():
            scene.note(f"{person.name} did not come to an end")
    watch.sample()


def run(size: Size, results: Path) -> dict[str, Any]:
    """A whole run in a folder of its own; the report as it was written."""
    folder = Path(tempfile.mkdtemp(prefix="tidesched-crew-")) / "data"
    folder.mkdir()
    # The engine's compiled code, where the other suites keep it: each folder would make its own, for minutes.
    os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".cache" / "kernels"))
    try:
        started = time.monotonic()
        with demo.running(folder, size=size.demo) as site, timekeeper(folder):
            ready = time.monotonic() - started
            os.nice(NICE - os.nice(0))
            scene = Scene(site, ends_at=time.time() + 600)
            set_up(scene, cast_of(size))
            began = time.time()
            scene.ends_at = began + 60 * size.minutes
            watch = Watch(folder)
            play(scene, size, watch)
            final_comparison(scene)
            memories = list(watch.memories.values())
            record = report.figures(
                name=size.name,
                people=f"{size.pages} open pages, {size.readers} readers, {len(BROWSERS)} browsers, "
                f"demo {size.demo}, ready in {ready:.0f} s",
                seconds=time.time() - began,
                commit=commit(),
                book=scene.book,
                ledger=scene.ledger,
                memories=memories,
                cpu=watch.seconds(),
                waited=watch.waited(),
                loads=watch.loads,
                restarts=watch.restarts,
                notes=scene.notes,
                failings=failings(scene.book, scene.ledger, scene.faults, memories, size.rules)
                + scene.deeds.failings(scene.faults, size.rules.least, tuple(names(one) for one in BROWSERS)),
                done=dict(scene.deeds.done),
            )
            report.store(record, results)
            shutil.copy(folder / "logs" / "tidesched.log", results / f"{size.name}.log")
            return record
    finally:
        shutil.rmtree(folder.parent, ignore_errors=True)
