"""Every address of the resolver × every caller: who opens it, whose act does something, and what it leaves behind.

Each cell is a request. A refusal, and any read, must not have written anything; what an answer to those who see nothing
of a tenant holds never names the tenant's objects; an answer of the REST API is as the document says.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import Iterator
from http.cookies import SimpleCookie
from unittest.mock import patch

import pytest
from asgiref.sync import async_to_sync
from django.core.cache import cache
from django.db import transaction
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase

from tests.matrix import documented, expectations
from tests.matrix.bodies import body_of
from tests.matrix.recorder import writes
from tests.matrix.stage import (
    DEAD,
    HIDDEN,
    HIDDEN_OF_PLATFORM,
    OWNED,
    PEOPLE,
    SECRET,
    Route,
    Stage,
    address,
    routes,
)
from tidesched_web.accounts.models import Scope
from tidesched_web.changes import adoption

EXPECTED = expectations.EXPECTED
ROUTES = {route.name: route for route in routes() if route.name not in expectations.ELSEWHERE}
# Who sees no queue of the platform, whatever is asked.
OF_TENANTS = ("anonymous", "no-role", "member", "tenant-admin", "other-admin", "far-admin", "token:rival-only")
BLIND = ("anonymous", "no-role", "other-admin", "far-admin", "token:rival-only")
RIVAL = "token:rival-only"
# Here each kind of a token that is no good any more is sent, elsewhere one of them.
ALL_DEAD = ("api:schema", "api:tenants-list")
CONSOLE = sorted(name for name in ROUTES if not name.startswith("api:"))
API = sorted(name for name in ROUTES if name.startswith("api:"))


def scoped_for(name: str, method: str) -> dict[str, bool]:
    """Tokens of a platform admin, and whether each lets in: one for each scope that does, and one with all others."""
    scopes = expectations.scopes_of(name, method)
    if scopes is None:
        return {f"token:{Scope.AUDIT_READ}": True}
    others = "+".join(scope for scope in Scope if scope not in scopes)
    return {f"token:{scope}": True for scope in sorted(scopes)} | {f"token:{others}": False}


@pytest.fixture(scope="module")
def _stage(django_db_setup, django_db_blocker) -> Iterator[Stage]:
    with django_db_blocker.unblock(), transaction.atomic():
        stage = Stage()
        scoped = {caller for name in API for method in ROUTES[name].methods for caller in scoped_for(name, method)}
        for caller in (*PEOPLE, *sorted(scoped), *OWNED, *DEAD, RIVAL):
            stage.client(caller)
        yield stage
        transaction.set_rollback(True)


@pytest.fixture
def stage(_stage: Stage, db: None, settings: pytest.FixtureRequest) -> Iterator[Stage]:
    settings.API_REQUESTS_PER_MINUTE = settings.API_ANONYMOUS_REQUESTS_PER_MINUTE = 0  # type: ignore[attr-defined]
    with patch.object(adoption, "unmanaged", lambda cluster, known: []):  # the cluster does not answer
        yield _stage


def asked(stage: Stage, route: Route, method: str, caller: str) -> str:
    """The answer in a word; whatever it wrote is taken back."""
    client, url = stage.client(caller), address(stage, route)
    cookies = copy.deepcopy(client.cookies)
    cache.clear()
    with transaction.atomic():
        with writes() as written:
            how = {} if method == "get" else body_of(stage, route.name, method)
            answer = client.generic(method.upper(), url, **how)
            content = async_to_sync(_whole)(answer)
        transaction.set_rollback(True)
    client.cookies = SimpleCookie({name: morsel.value for name, morsel in cookies.items()})
    place = f"{method.upper()} {route.name} as {caller}"
    if (method == "get" and (route.name, method) not in expectations.NOTED) or answer.status_code in (401, 403, 404):
        assert written == [], f"{place} ({answer.status_code}) writes"
    if caller in BLIND and method == "get" and route.name != "api:schema":
        assert [text for text in HIDDEN if text.encode() in content] == [], f"{place} names what is hidden"
    if caller in OF_TENANTS and method == "get" and route.name != "api:schema":
        named = [text for text in HIDDEN_OF_PLATFORM if text.encode() in content]
        assert named == [], f"{place} names what is the platform's"
    assert SECRET.encode() not in content, f"{place} shows the credentials of a cluster"
    if route.name.startswith("api:") and route.name.removeprefix("api:") not in documented.UNDOCUMENTED:
        path = url.partition("?")[0]
        assert documented.fault_of(path, method, answer, content) == "", f"{place} ({answer.status_code})"
    if answer.status_code == 302 and answer.headers["Location"].startswith("/sign-in/?next="):
        return "in"
    return str(answer.status_code)


async def _whole(answer: HttpResponseBase) -> bytes:
    if not isinstance(answer, StreamingHttpResponse):
        return answer.content  # type: ignore[attr-defined, no-any-return]
    if answer.is_async:
        return b"".join([part async for part in answer])
    return b"".join(answer)


def test_every_address_has_its_expectation() -> None:
    there = {(route.name, method) for route in ROUTES.values() for method in route.methods}
    assert there == set(EXPECTED)
    assert {len(answers) for answers in EXPECTED.values()} == {len(PEOPLE)}
    assert {route.name for route in routes()} - set(ROUTES) == set(expectations.ELSEWHERE)


@pytest.mark.parametrize("name", [*CONSOLE, *API])
def test_people(stage: Stage, name: str) -> None:
    route = ROUTES[name]
    for method in route.methods:
        found = {caller: asked(stage, route, method, caller) for caller in PEOPLE}
        assert found == dict(zip(PEOPLE, EXPECTED[name, method], strict=True)), method


@pytest.mark.parametrize(("name", "method"), sorted(expectations.OF_PLATFORM))
def test_people_of_tenants_see_nothing_of_a_queue_of_the_platform(stage: Stage, name: str, method: str) -> None:
    platforms = stage.platforms()
    found = {caller: asked(platforms, ROUTES[name], method, caller) for caller in PEOPLE}
    assert found == dict(zip(PEOPLE, expectations.OF_PLATFORM[name, method], strict=True))
    if name in API:
        assert asked(platforms, ROUTES[name], method, RIVAL) == "404"


@pytest.mark.parametrize("name", API)
def test_tokens(stage: Stage, name: str) -> None:
    """With the right scope a token does what its user does; one for a tenant does what that tenant's admin does."""
    route = ROUTES[name]
    for method in route.methods:
        people = dict(zip(PEOPLE, EXPECTED[name, method], strict=True))
        scopes = expectations.scopes_of(name, method)
        if name.removeprefix("api:") not in documented.UNDOCUMENTED:
            path = address(stage, route).partition("?")[0]
            said = documented.scopes(path, method)
            assert said | {"admin"} == scopes if scopes else said == set(), f"{method} {path}"
        wanted = {
            caller: people["platform-admin"] if lets_in else "403"
            for caller, lets_in in scoped_for(name, method).items()
        }
        for caller in OWNED:
            scope, _of, person = caller.removeprefix("token:").partition(" of ")
            # What its user does not see is not there, before anything is said of writing.
            unseen = people[person] == "404" and scope in (expectations.scopes_of(name, "get") or ())
            wanted[caller] = people[person] if scopes is None or scope in scopes or unseen else "403"
        dead = DEAD if name in ALL_DEAD else (DEAD[zlib.crc32(name.encode()) % len(DEAD)],)
        wanted |= dict.fromkeys(dead, people["anonymous"])
        wanted[RIVAL] = people["other-admin"]
        assert {caller: asked(stage, route, method, caller) for caller in wanted} == wanted, method


@pytest.mark.parametrize("name", CONSOLE)
def test_a_token_opens_no_page(stage: Stage, name: str) -> None:
    """A page takes a session alone: with a token it answers as to those who have not signed in."""
    for method in ROUTES[name].methods:
        for caller in ("token:admin", "token:admin of tenant-admin"):
            assert asked(stage, ROUTES[name], method, caller) == EXPECTED[name, method][0], (method, caller)
