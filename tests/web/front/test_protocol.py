"""Connections that come to nothing end by themselves: no byte keeps one open, and no client that does not read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvicorn

from tests.waiting import PATIENCE, until_async
from tidesched_web.embedded.web import SERVER
from tidesched_web.front.protocol import BoundedProtocol

LARGE = 4 * 2**20
GET = b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n"


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answers at once, whatever else comes: shortly, with much in one piece, or piece by piece."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/pieces":
        for _ in range(LARGE // 65536):
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
    await send({"type": "http.response.body", "body": b"x" * (LARGE if scope["path"] == "/large" else 5)})


Story = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[Any]]


def told(story: Story, loop: str, *, until_closed: bool = False) -> Any:
    """What comes of a story with one connection, which the server ends at last by itself where that is waited for."""

    async def run() -> Any:
        config = uvicorn.Config(application, port=0, log_level="critical", **SERVER | {"lifespan": "off"})
        server = uvicorn.Server(config)
        config.load()
        server.lifespan = config.lifespan_class(config)
        await server.startup()
        try:
            port = server.servers[0].sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4096)
            try:
                answer = await story(reader, writer)
                if until_closed:
                    await until_async(lambda: not server.server_state.connections)
                return answer
            finally:
                writer.close()
        finally:
            await server.shutdown()

    factory: Any = __import__("uvloop").new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(run())


@pytest.fixture(autouse=True)
def soon(settings: Any) -> None:
    settings.WEB_HEAD_SECONDS = settings.WEB_SLOW_READER_SECONDS = 0.3


async def ended(reader: asyncio.StreamReader) -> bool:
    """Whether the server hangs up within a while."""
    try:
        async with asyncio.timeout(PATIENCE):
            while await reader.read(65536):
                pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize(
    ("first", "then"),
    [
        (GET % b"", b"\r\n"),
        (GET % b"", b"GET / HT"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n", b"x"),
    ],
    ids=["an empty line", "part of a head", "more of a body"],
)
def test_what_begins_no_request_keeps_no_connection(first: bytes, then: bytes, loop: str) -> None:
    async def story(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(first)
        await reader.readuntil(b"xxxxx")
        writer.write(then)
        return await ended(reader)

    assert told(story, loop)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_the_next_request_of_a_connection_is_answered_after_an_empty_line(loop: str, settings: Any) -> None:
    settings.WEB_HEAD_SECONDS = PATIENCE

    async def story(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        for _ in range(3):
            writer.write(GET % b"")
            await reader.readuntil(b"xxxxx")
            writer.write(b"\r\n")
        writer.write(GET % b"")
        return await reader.readuntil(b"xxxxx")

    assert b"HTTP/1.1 200" in told(story, loop)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("path", [b"large", b"pieces"])
def test_who_reads_nothing_of_an_answer_keeps_no_connection(path: bytes, loop: str) -> None:
    async def story(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((GET % path) * 3)
        await reader.readexactly(1)  # it is being answered

    told(story, loop, until_closed=True)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("path", [b"large", b"pieces"])
def test_who_reads_slowly_gets_the_whole_answer(path: bytes, loop: str, settings: Any) -> None:
    settings.WEB_SLOW_READER_SECONDS = 2.0  # longer than a busy machine stands still, and less than the answer takes

    async def story(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        writer.write((GET % path).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        size = 0
        while piece := await reader.read(65536):
            size += len(piece)
            await asyncio.sleep(0.04)
        return size

    assert told(story, loop) > LARGE


def of_one() -> dict[str, bool]:
    """Which connections are answered where an address may have three; the first one stays open."""
    found: dict[str, bool] = {}

    async def answered(port: int, address: str) -> tuple[bool, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        writer.write(GET % b"")
        try:
            async with asyncio.timeout(PATIENCE):
                return bool(await reader.read(100)), writer
        except ConnectionError:
            return False, writer

    async def story(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("peername")[1]
        kept = []
        for name in ("second", "third", "fourth", "other"):
            found[name], one = await answered(port, "127.0.0.2" if name == "other" else "127.0.0.1")
            kept.append(one)
        for one in kept[:2]:
            one.close()
            await one.wait_closed()

        async def again() -> bool:
            found["again"], last = await answered(port, "127.0.0.1")
            kept.append(last)
            return found["again"]

        await until_async(again)  # as soon as it has noticed that these have gone
        for one in kept:
            one.close()

    told(story, "asyncio")
    return found


def test_an_address_has_so_many_connections_and_another_one_has_its_own(settings: Any) -> None:
    settings.WEB_CONNECTIONS_OF_ONE, settings.WEB_HEAD_SECONDS = 3, 5
    closed = {"second": True, "third": True, "fourth": False, "other": True, "again": True}
    assert of_one() == closed
    assert not BoundedProtocol.by_address, "what was counted in is counted out"


def test_a_trusted_proxy_is_the_address_of_many(settings: Any) -> None:
    settings.WEB_CONNECTIONS_OF_ONE, settings.WEB_HEAD_SECONDS = 3, 5
    settings.TRUSTED_PROXIES, settings.BEHIND_PROXY = ["127.0.0.0/8"], True
    assert set(of_one().values()) == {True}
    assert not BoundedProtocol.by_address
