"""The crowd, in a process of its own: open pages that follow the stream as the page's script does, and readers.

`python -m tests.crew.crowd FOLDER` reads `crowd.json` of the folder and writes `crowd-ledger.json` there every few
seconds. It keeps to the manners of `static/js/live.js`: one stream for each page, its part is fetched again on an event
of its topics, at most every 10 s and no more often than thirty times as long as the last answer took, with the ETag of
what it has; figures come with it, at most every 5 s. Static files are taken once: a browser keeps them.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import sys
import time
from contextlib import suppress
from html import unescape
from pathlib import Path

import aiohttp

from tests.crew.ledger import STRANGER, UNEXPECTED, UNREACHABLE, Ledger

REST, SOON, REST_OF_ANSWER, REST_MOST, POLL, FIGURES_REST = 10.0, 2.5, 30.0, 60.0, 10.0, 5.0
PATHS = {
    "overview": "",
    "queues": "queues/",
    "gangs": "gangs/",
    "waiting gangs": "gangs/?needs=yes",
    "reclaims": "reclaims/",
    "sessions": "sessions/",
    "quota tree": "quota/",
    "changes": "changes/",
    "nodes": "nodes/",
    "alerts": "alerts/",
    "tide plans": "tide-plans/",
    "drift": "drift/",
}
THINKS = (6.0, 18.0)
_LIVE = re.compile(r'<div id="live"[^>]*data-live="([^"]*)"')
_FIGURE = re.compile(r'data-figure="([^"]+)"\s+data-query="([^"]*)"')
_AFTER = re.compile(r'data-after="([^"]*)"')
LINKS = re.compile(r'href="(/clusters/[^"/]+/(?:queues|gangs|reclaims|sessions)/[^"?/]+/)"')
GONE = (404, 410)


class Visitor:
    """One account in one browser: its cookies, and the connections of its open pages.

    ``hidden``: what it may not see, as a regular expression; empty where it sees everything.
    """

    def __init__(self, base: str, name: str, cookies: dict[str, str], hidden: str, ledger: Ledger) -> None:
        self.base, self.name, self.ledger = base, name, ledger
        self.hidden = re.compile(hidden) if hidden else None
        self.http = aiohttp.ClientSession(
            cookies=cookies,
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=2.0),
            timeout=aiohttp.ClientTimeout(total=90),
            cookie_jar=aiohttp.CookieJar(unsafe=True),
        )

    async def get(self, path: str, page: str, headers: dict[str, str] | None = None) -> tuple[int, str, str]:
        """Status, text and ETag; 0 where no answer came."""
        status, text, given = await self.ask(path, page, headers)
        return status, text, given.get("etag", "")

    async def ask(self, path: str, page: str, headers: dict[str, str] | None = None) -> tuple[int, str, dict[str, str]]:
        """Status, text and headers; 0 where no answer came."""
        began, clock = time.time(), time.perf_counter()
        try:
            async with self.http.get(f"{self.base}{path}", headers=headers, allow_redirects=False) as answer:
                body = await answer.read()
                given = {name.lower(): value for name, value in answer.headers.items()}
        except (aiohttp.ClientError, TimeoutError) as error:
            self.ledger.trouble(UNREACHABLE, self.name, f"GET {path}", repr(error)[:200], at=began)
            return 0, "", {}
        text = body.decode("utf-8", "replace")
        self.ledger.answered(
            person=self.name,
            page=page,
            where=path,
            method="GET",
            status=answer.status,
            began=began,
            seconds=time.perf_counter() - clock,
            size=int(given.get("content-length", len(body))),
            headers=given,
            text=text if answer.status >= 429 else "",
        )
        # What a link led to may have left the cluster meanwhile; a page of one's own may not.
        if answer.status not in (200, 304, 429) and answer.status < 500 and not page.endswith(" linked"):
            self.ledger.trouble(UNEXPECTED, self.name, f"GET {path}", f"→ {answer.status} {text[:200]}", at=began)
        if self.hidden and (seen := self.hidden.search(text)):
            self.ledger.trouble(
                STRANGER, self.name, f"GET {path}", f"a member of another tenant sees {seen[0]}", at=began
            )
        return answer.status, text, given


class OpenPage:
    """A tab: a page, its stream, and what its script fetches."""

    def __init__(self, visitor: Visitor, name: str, path: str) -> None:
        self.visitor, self.name, self.path = visitor, name, path
        self.topics: set[str] = set()
        self.figures: dict[str, str] = {}
        self.after, self.etag, self.rest = "", "", REST
        self.dirty = self.connected = False
        self.due = 0.0
        self.last = self.figures_at = time.monotonic()

    async def run(self) -> None:
        """Open it, and follow until the crowd goes home."""
        opened = await self._opened()
        while not opened:  # a person presses reload
            await asyncio.sleep(5 + 5 * random.random())
            opened = await self._opened()
        await asyncio.gather(self._listen(), self._follow())

    async def _opened(self) -> bool:
        status, text, self.etag = await self.visitor.get(self.path, f"page {self.name}")
        if status != 200:
            return False
        live, after = _LIVE.search(text), _AFTER.search(text)
        self.topics = set(live[1].split()) if live else set()
        self.after = after[1] if after else ""
        self.figures = {f"{address}?{unescape(query)}&theme=light": "" for address, query in _FIGURE.findall(text)}
        self.last = time.monotonic()
        await self._draw()
        return True

    async def _draw(self) -> None:
        self.figures_at = time.monotonic()
        for address, etag in list(self.figures.items()):
            headers = {"If-None-Match": etag} if etag else {}
            status, _text, new = await self.visitor.get(address, "figure", headers)
            if status == 200:
                self.figures[address] = new

    async def _listen(self) -> None:
        while True:
            wait = 2.0
            address = f"{self.visitor.base}/api/v1/stream?after={self.after}"
            began = time.time()
            with suppress(aiohttp.ClientError, TimeoutError):
                timeout = aiohttp.ClientTimeout(total=None, sock_connect=30)
                async with self.visitor.http.get(address, timeout=timeout) as answer:
                    given = {name.lower(): value for name, value in answer.headers.items()}
                    self.visitor.ledger.answered(
                        person=self.visitor.name,
                        page="stream",
                        where="/api/v1/stream",
                        method="GET",
                        status=answer.status,
                        began=began,
                        seconds=time.time() - began,
                        size=0,
                        headers=given,
                    )
                    if answer.status == 200:
                        self.connected = True
                        await self._hear(answer)
                    else:
                        wait = float(given.get("retry-after", "30"))
            self.connected = False
            await asyncio.sleep(wait * (1 + random.random() / 2))

    async def _hear(self, answer: aiohttp.ClientResponse) -> None:
        event = place = ""
        async for raw in answer.content:
            name, _colon, text = raw.decode().rstrip("\n").partition(": ")
            if name == "event":
                event = text
            elif name == "id":
                place = text
            elif name == "data" and event == "change":
                self.after = place or self.after
                if json.loads(text)["topic"] in self.topics:
                    self._stir()
                event = ""

    def _stir(self) -> None:
        """Something has changed: look at a moment of its own within the rest."""
        if not self.dirty:
            self.due = time.monotonic() + random.random() * (self.rest - SOON)
        self.dirty = True

    async def _follow(self) -> None:
        await asyncio.sleep(random.random() / 2)
        while True:
            await asyncio.sleep(0.5)
            waited = time.monotonic() - self.last
            if not self.connected and waited > POLL:
                self._stir()
            if not self.dirty or waited <= self.rest or time.monotonic() < self.due:
                continue
            self.dirty, self.last = False, time.monotonic()
            headers = {"HX-Request": "true", "HX-Target": "live", "HX-Current-URL": f"{self.visitor.base}{self.path}"}
            if self.etag:
                headers["If-None-Match"] = self.etag
            status, _text, given = await self.visitor.ask(self.path, f"part {self.name}", headers)
            if status == 200:
                self.etag = given.get("etag", "")
            self.rest = min(REST_MOST, max(REST, REST_OF_ANSWER * (time.monotonic() - self.last)))
            self.last = time.monotonic()
            if self.last - self.figures_at >= FIGURES_REST:
                await self._draw()


async def read(visitor: Visitor, slug: str, seed: int) -> None:
    """A reader: looks at a list, then at one of its rows, and thinks between."""
    choice = random.Random(seed)
    await asyncio.sleep(choice.uniform(0, THINKS[1]))
    while True:
        name = choice.choice(list(PATHS))
        status, text, _etag = await visitor.get(f"/clusters/{slug}/{PATHS[name]}", f"page {name}")
        await asyncio.sleep(choice.uniform(*THINKS))
        links = sorted(set(LINKS.findall(text))) if status == 200 else []
        if links:
            path = choice.choice(links)
            await visitor.get(path, f"page {path.split('/')[3]} linked")
            await asyncio.sleep(choice.uniform(*THINKS))


async def gather(folder: Path) -> None:
    """The crowd until its time is over; its ledger is stored as it goes."""
    given = json.loads((folder / "crowd.json").read_text(encoding="utf-8"))
    ledger = Ledger()
    visitors = [
        Visitor(given["address"], one["name"], one["cookies"], one["hidden"], ledger) for one in given["people"]
    ]
    names = list(PATHS)
    tasks: list[asyncio.Task[None]] = []

    async def store() -> None:
        while True:
            await asyncio.sleep(5)
            ledger.store(folder / "crowd-ledger.part")
            (folder / "crowd-ledger.part").replace(folder / "crowd-ledger.json")

    async def later(seconds: float, page: OpenPage) -> None:
        await asyncio.sleep(seconds)
        await page.run()

    for number in range(given["pages"]):
        name = names[number % len(names)]
        page = OpenPage(visitors[number % len(visitors)], name, f"/clusters/{given['slug']}/{PATHS[name]}")
        # People come one after another, not all in the same second.
        tasks.append(asyncio.create_task(later(given["comes_within"] * number / given["pages"], page)))
    tasks += [
        asyncio.create_task(read(visitors[number % len(visitors)], given["slug"], number))
        for number in range(given["readers"])
    ]
    tasks.append(asyncio.create_task(store()))
    done, _open = await asyncio.wait(tasks, timeout=given["seconds"], return_when=asyncio.FIRST_EXCEPTION)
    failed = [one.exception() for one in done if one.exception()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for visitor in visitors:
        await visitor.http.close()
    ledger.store(folder / "crowd-ledger.json")
    if failed:
        raise failed[0]  # type: ignore[misc]


if __name__ == "__main__":
    os.nice(19 - os.nice(0))
    asyncio.run(gather(Path(sys.argv[1])))
