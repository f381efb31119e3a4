"""Three hundred open streams on a real web process over few database connections: pages and probes go on answering."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from asgiref.sync import async_to_sync

from tests.browser import servers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

STREAMS_OF_EACH = 20
READERS = 50
TURNS, POOL = 3, 4
LIMIT_OF_ONE = 24


@dataclass
class Site:
    """A running web process."""

    address: str
    database: str
    cluster: str
    people: list[dict[str, Any]]

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
    with servers.database(os.environ["DATABASE_URL"]) as database:
        environment = {
            "DATABASE_URL": database,
            "REDIS_URL": servers.with_redis_number(os.environ["REDIS_URL"], 11),
            "CROWD_FILE": str(folder / "crowd.json"),
            "WEB_REQUESTS_AT_ONCE": str(TURNS),
            "DATABASE_POOL": str(POOL),
            "STREAMS_OF_ONE": str(LIMIT_OF_ONE),
        }
        with servers.web(environment, folder, story="crowd") as address:
            told = json.loads((folder / "crowd.json").read_text())
            yield Site(address, database, told["cluster"], told["people"])


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
        one.head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 120)
        return one

    @property
    def status(self) -> int:
        return int(self.head.split(b" ", 2)[1])

    async def until(self, text: bytes) -> None:
        """Read until this comes."""
        found = b""
        while text not in found:
            piece = await asyncio.wait_for(self.reader.read(4096), 60)
            assert piece, f"ended without {text!r}: {found!r}"
            found += piece

    def close(self) -> None:
        self.writer.close()


async def get(site: Site, path: str, person: dict[str, Any] | None = None, method: str = "GET") -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    cookie = f"Cookie: sessionid={person['session']}\r\n" if person else ""
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{cookie}\r\n".encode())
    text = await asyncio.wait_for(reader.read(), 120)
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
    text = await asyncio.wait_for(reader.read(), 120)
    writer.close()
    return int(text.split(b" ", 2)[1])


def session(person: dict[str, Any]) -> str:
    return f"Cookie: sessionid={person['session']}"


async def opened(site: Site, count: int, person: dict[str, Any]) -> list[Stream]:
    return list(await asyncio.gather(*(Stream.open(site, session(person)) for _ in range(count))))


def test_pages_answer_while_three_hundred_streams_are_open(site: Site) -> None:
    pages = ("", "nodes/", "queues/", "gangs/", "reclaims/")

    async def story() -> None:
        streams = [one for person in site.people for one in await opened(site, STREAMS_OF_EACH, person)]
        assert Counter(one.status for one in streams) == {200: 300}
        assert site.connections() <= POOL + 1

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
        # One more for the probe, which has a connection of its own.
        assert site.connections() <= POOL + 1
        status, body = await get(site, "/readyz")
        assert set(json.loads(body)["missing"]) == {"processes"}, status  # no worker runs here
        await asyncio.gather(*(one.until(b": connected") for one in streams))
        for one in streams:
            one.close()

    async_to_sync(story)()


def test_one_account_has_so_many_streams_and_the_next_is_refused_by_name(site: Site) -> None:
    async def story() -> None:
        person = site.people[1]
        streams = await opened(site, LIMIT_OF_ONE, person)
        assert {one.status for one in streams} == {200}
        await asyncio.gather(*(one.until(b": connected") for one in streams))
        refused = await Stream.open(site, session(person))
        assert refused.status == 429
        assert re.search(rb"retry-after: \d+", refused.head.lower())
        assert (await Stream.open(site, session(site.people[2]))).status == 200
        for one in streams:
            one.close()

    async_to_sync(story)()


def test_a_sign_out_a_lost_role_and_a_revoked_token_end_the_streams(site: Site) -> None:
    def change(sql: str, *values: object) -> None:
        with psycopg.connect(site.database) as connection:
            connection.execute(sql.encode(), values)

    async def story() -> None:
        leaver, demoted, _, revoked, switched_off = site.people[3:8]
        mine = {
            "leaver": await Stream.open(site, session(leaver)),
            "demoted": await Stream.open(site, session(demoted)),
            "revoked": await Stream.open(site, f"Authorization: Bearer {revoked['token']}"),
            "off": await Stream.open(site, session(switched_off)),
            "stays": await Stream.open(site, session(site.people[0])),
        }
        assert {one.status for one in mine.values()} == {200}
        change("DELETE FROM django_session WHERE session_key = %s", leaver["session"])
        change("DELETE FROM accounts_membership WHERE user_id = %s", demoted["user"])
        change("UPDATE accounts_apitoken SET revoked_at = now() WHERE user_id = %s", revoked["user"])
        change("UPDATE accounts_user SET is_active = false WHERE id = %s", switched_off["user"])
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
