"""Three hundred open streams on a real web process over few database connections: pages and probes go on answering."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest
from asgiref.sync import async_to_sync

from tests.browser import servers

pytestmark = [pytest.mark.proof, pytest.mark.timeout(600)]

STREAMS_OF_EACH = 20
READERS = 50
# Beside the pool the probe has a connection.
PLACES, POOL, OWN = 3, 4, 1
LIMIT_OF_ONE, LIMIT_IN_ALL = 24, 310
# What is waited for comes in a moment; on a busy machine it may take so long.
PATIENCE = 240


@dataclass
class Site:
    """A running web process."""

    address: str
    database: str
    cluster: str
    people: list[dict[str, Any]]
    admin: dict[str, Any]
    # A cluster that accepts connections and never answers, with a draft and who looks at it.
    silent: str
    draft: int
    its_admin: dict[str, Any]
    mute: socket.socket

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def connections(self) -> int:
        """How many connections to its database there are, without the one that counts."""
        with psycopg.connect(self.database) as connection:
            row = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            ).fetchone()
        assert row is not None
        return int(row[0])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("crowd")
    with servers.database(os.environ["DATABASE_URL"]) as database, socket.create_server(("127.0.0.1", 0)) as mute:
        environment = {
            "SILENT_PORT": str(mute.getsockname()[1]),
            "DATABASE_URL": database,
            "REDIS_URL": servers.with_redis_number(os.environ["REDIS_URL"], 11),
            "CROWD_FILE": str(folder / "crowd.json"),
            "WEB_REQUESTS_AT_ONCE": str(PLACES),
            "DATABASE_POOL": str(POOL),
            "STREAMS": str(LIMIT_IN_ALL),
            "STREAMS_OF_ONE": str(LIMIT_OF_ONE),
            "SIGN_IN_LIMIT_FAILURES": "10/h/ip,100/d/ip,5/5m/key",  # thirty tries may take longer than a minute
        }
        with servers.web(environment, folder, story="crowd") as address:
            told = json.loads((folder / "crowd.json").read_text())
            yield Site(address, database, **told, mute=mute)


class Stream:
    """One open stream, on a connection of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.head = b""

    @classmethod
    async def open(cls, site: Site, headers: str) -> Stream:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        one = cls(reader, writer)
        writer.write(f"GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}\r\n\r\n".encode())
        one.head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
        return one

    @property
    def status(self) -> int:
        return int(self.head.split(b" ", 2)[1])

    async def said(self) -> dict[str, Any]:
        """What a refusal says."""
        length = re.search(rb"content-length: (\d+)", self.head.lower())
        assert length is not None
        found: dict[str, Any] = json.loads(await asyncio.wait_for(self.reader.readexactly(int(length[1])), PATIENCE))
        return found

    async def until(self, text: bytes) -> None:
        """Read until this comes."""
        found = b""
        while text not in found:
            piece = await asyncio.wait_for(self.reader.read(4096), PATIENCE)
            assert piece, f"ended without {text!r}: {found!r}"
            found += piece

    def close(self) -> None:
        self.writer.close()


async def get(site: Site, path: str, person: dict[str, Any] | None = None, method: str = "GET") -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    cookie = f"Cookie: sessionid={person['session']}\r\n" if person else ""
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{cookie}\r\n".encode())
    text = await asyncio.wait_for(reader.read(), PATIENCE)
    writer.close()
    head, _blank, body = text.partition(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1]), body


async def sign_in(site: Site, name: str) -> int:
    """The status of a try with a wrong password."""
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    secret = "a" * 32
    form = f"username={name}&password=wrong&csrfmiddlewaretoken={secret}"
    head = f"POST /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nCookie: csrftoken={secret}\r\n"
    kind = f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(form)}\r\n\r\n"
    writer.write(f"{head}{kind}{form}".encode())
    text = await asyncio.wait_for(reader.read(), PATIENCE)
    writer.close()
    return int(text.split(b" ", 2)[1])


async def post(site: Site, path: str, person: dict[str, Any], **fields: str) -> None:
    """Send the form of a page, with the version that the page shows."""
    secret = "a" * 32
    version = re.search(rb'name="version" value="([^"]+)"', (await get(site, path, person))[1])
    seen = {"version": version[1].decode()} if version else {}
    form = urlencode(seen | fields | {"csrfmiddlewaretoken": secret})
    cookies = f"Cookie: sessionid={person['session']}; csrftoken={secret}\r\n"
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{cookies}"
    kind = f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(form)}\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(f"{head}{kind}{form}".encode())
    text = await asyncio.wait_for(reader.read(), PATIENCE)
    writer.close()
    assert text.split(b" ", 2)[1] == b"302", text[:2000]


def session(person: dict[str, Any]) -> str:
    return f"Cookie: sessionid={person['session']}"


async def opened(site: Site, count: int, person: dict[str, Any]) -> list[Stream]:
    """So many open streams, as soon as the server has noticed that those of earlier tests have gone."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = list(await asyncio.gather(*(Stream.open(site, session(person)) for _ in range(count))))
            if {one.status for one in found} == {200}:
                return found
            for one in found:
                one.close()
            await asyncio.sleep(0.2)


def test_pages_answer_while_three_hundred_streams_are_open(site: Site) -> None:
    pages = ("", "nodes/", "queues/", "gangs/", "reclaims/")

    async def story() -> None:
        streams = [one for person in site.people for one in await opened(site, STREAMS_OF_EACH, person)]
        assert len(streams) == 300
        assert site.connections() <= POOL + OWN

        async def read(number: int) -> list[int]:
            person = site.people[number % len(site.people)]
            found = []
            for page in pages:
                path = f"/clusters/{site.cluster}/{page}"
                found.append((await get(site, path, person))[0])
                found.append((await get(site, "/healthz"))[0])
            return found

        answers = await asyncio.gather(*(read(number) for number in range(READERS)))
        assert Counter(status for some in answers for status in some) == {200: 2 * READERS * len(pages)}
        assert site.connections() <= POOL + OWN
        status, body = await get(site, "/readyz")
        assert set(json.loads(body)["missing"]) == {"processes"}, status  # no worker runs here
        await asyncio.gather(*(one.until(b": connected") for one in streams))
        # Of the other accounts' streams there is room for ten more, and the next one is refused with the limit.
        more = [await Stream.open(site, session(site.people[number])) for number in range(LIMIT_IN_ALL - len(streams))]
        assert {one.status for one in more} == {200}
        await asyncio.gather(*(one.until(b": connected") for one in more))
        refused = await Stream.open(site, session(site.people[14]))
        assert (refused.status, (await refused.said())["limit"]) == (503, LIMIT_IN_ALL)
        assert re.search(rb"retry-after: \d+", refused.head.lower())
        assert (await get(site, f"/clusters/{site.cluster}/", site.people[14]))[0] == 200
        for one in (*streams, *more):
            one.close()

    async_to_sync(story)()


def test_one_account_has_so_many_streams_and_the_next_is_refused_by_name(site: Site) -> None:
    async def story() -> None:
        person = site.people[1]
        streams = await opened(site, LIMIT_OF_ONE, person)
        await asyncio.gather(*(one.until(b": connected") for one in streams))
        refused = await Stream.open(site, session(person))
        assert refused.status == 429
        assert re.search(rb"retry-after: \d+", refused.head.lower())
        said = await refused.said()
        assert (said["limit"], str(LIMIT_OF_ONE) in said["detail"]) == (LIMIT_OF_ONE, True)
        (another,) = await opened(site, 1, site.people[2])
        for one in (*streams, another):
            one.close()

    async_to_sync(story)()


def test_a_sign_out_a_lost_role_and_a_revoked_token_end_the_streams(site: Site) -> None:
    async def story() -> None:
        leaver, demoted, _, revoked, switched_off = site.people[3:8]
        by_session = {"leaver": leaver, "demoted": demoted, "off": switched_off, "stays": site.people[0]}
        mine = {name: (await opened(site, 1, person))[0] for name, person in by_session.items()}
        mine["revoked"] = await Stream.open(site, f"Authorization: Bearer {revoked['token']}")
        assert {one.status for one in mine.values()} == {200}
        await post(site, "/sign-out/", leaver)
        member = f"/tenants/{demoted['tenant']}/members/{demoted['membership']}/remove/"
        await post(site, member, site.admin, reason="Left the team.")
        await post(site, f"/profile/tokens/{revoked['token_id']}/revoke/", revoked)
        await post(site, f"/users/{switched_off['user']}/switch/", site.admin, reason="Left the house.")
        await mine["leaver"].until(b'"signed_out"')
        await mine["demoted"].until(b'"rights_changed"')
        await mine["revoked"].until(b'"signed_out"')
        await mine["off"].until(b'"signed_out"')
        await mine["stays"].until(b": connected")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(mine["stays"].until(b"event: end"), 1)

    async_to_sync(story)()


def test_thirty_wrong_sign_ins_at_once_stop_nobody(site: Site) -> None:
    async def story() -> None:
        guests = [asyncio.create_task(sign_in(site, f"crowd-{number}")) for number in range(30)]
        answers: list[int] = []
        while not all(guest.done() for guest in guests):
            answers.append((await get(site, "/api/v1/clusters/", site.people[0]))[0])
        assert set(answers) == {200}
        assert Counter(await asyncio.gather(*guests)) == {200: 10, 429: 20}

    async_to_sync(story)()


_CHUNKS = b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n"


async def said(site: Site, text: bytes) -> bytes:
    """All that comes back to these bytes until the connection is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(text)
    answer = await asyncio.wait_for(reader.read(), PATIENCE)
    writer.close()
    return answer


def test_a_head_that_is_too_large_is_refused(site: Site) -> None:
    async def story() -> None:
        begun = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
        assert b" 400 " in (await said(site, begun + b"A: " + b"a" * 40_000)).partition(b"\r\n")[0]
        asked = begun.replace(b"healthz", b"api/v1/clusters/") + b"Connection: close\r\n"
        for line, limit in (
            (b"Cookie: a=" + b"a" * 9_000, 8192),
            (b'Content-Type: text/plain; a="' + b";" * 9_000, 256),
            (b'Accept: text/plain; a="' + b";" * 9_000, 1024),
        ):
            head, _blank, body = (await said(site, asked + line + b"\r\n\r\n")).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 431 "), line[:20]
            assert (json.loads(body)["code"], json.loads(body)["limit"]) == ("head_too_large", limit)
        quoted = b'Cookie: sessionid="' + b'\\"' * 4_000 + b'"; theme=dark\r\n\r\n'
        assert (await said(site, asked + quoted)).startswith(b"HTTP/1.1 401 ")

    async_to_sync(story)()


def test_half_a_request_keeps_no_place(site: Site) -> None:
    """Many connections without a byte, with half a head or half a body: pages are answered meanwhile."""
    head = b"POST /api/v1/queues/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    halves = (b"", head, head + b"Content-Length: 90\r\n\r\n{", head + _CHUNKS)

    async def story() -> None:
        writers = []
        for text in halves * 50:
            _reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
            writer.write(text)
            writers.append(writer)
        paths = ("/healthz", f"/clusters/{site.cluster}/", "/api/v1/clusters/")
        assert [(await get(site, path, site.people[0]))[0] for path in paths] == [200] * 3
        for writer in writers:
            writer.close()

    async_to_sync(story)()


async def accepted(mute: socket.socket) -> socket.socket:
    """One connection to the cluster that never answers."""
    mute.setblocking(False)
    connection, _address = await asyncio.wait_for(asyncio.get_running_loop().sock_accept(mute), PATIENCE)
    return connection


def test_a_cluster_that_does_not_answer_is_waited_for_so_long(site: Site) -> None:
    """A dry run and the queues to adopt wait for it, each on its thread; pages are answered on the others."""
    base = f"/clusters/{site.silent}"

    async def story() -> None:
        paths = [f"{base}/changes/{site.draft}/server/", f"{base}/adoption/"]
        asked = [asyncio.ensure_future(get(site, path, site.its_admin)) for path in paths]
        assert len(paths) < PLACES
        held = [await accepted(site.mute) for _ in paths]
        pages = (f"/clusters/{site.cluster}/", f"/clusters/{site.cluster}/queues/", "/api/v1/clusters/")
        shown = [asyncio.ensure_future(get(site, path, one)) for one in site.people[:2] for path in pages]
        assert [(await one)[0] for one in shown] == [200] * len(shown)
        (dry_run, _queues) = found = await asyncio.gather(*asked)
        assert [status for status, _body in found] == [200, 503], "the queues to adopt are not known"
        assert b"could not be asked" in dry_run[1]
        for connection in held:
            connection.close()

    async_to_sync(story)()
