"""What is wrong with a request is said to those alone who may make it: all others hear first that they may not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from django.core.cache import cache
from django.db import transaction

from tests.matrix.bodies import body_of
from tests.matrix.expectations import ELSEWHERE, EXPECTED
from tests.matrix.recorder import writes
from tests.matrix.stage import PEOPLE, Route, Stage, address, routes
from tidesched_web.changes import adoption

OF_RIGHTS = ("401", "403", "404")
API = {
    route.name: route
    for route in routes()
    if route.name.startswith("api:")
    and route.name not in ELSEWHERE
    and "200" not in {EXPECTED[route.name, method][0] for method in route.methods}
}


@pytest.fixture(scope="module")
def _stage(django_db_setup: None, django_db_blocker: Any) -> Iterator[Stage]:
    with django_db_blocker.unblock(), transaction.atomic():
        stage = Stage()
        for caller in PEOPLE:
            stage.client(caller)
        yield stage
        transaction.set_rollback(True)


@pytest.fixture
def stage(_stage: Stage, db: None, settings: Any) -> Iterator[Stage]:
    settings.API_REQUESTS_PER_MINUTE = settings.API_ANONYMOUS_REQUESTS_PER_MINUTE = 0
    with patch.object(adoption, "unmanaged", lambda cluster, known: []):  # the cluster does not answer
        yield _stage


def answered(stage: Stage, route: Route, method: str, caller: str, query: str, **other: Any) -> str:
    """The status of a good request with something wrong in it; nothing of it is done."""
    cache.clear()
    place = address(stage, route)
    sent = ({} if method == "get" else body_of(stage, route.name, method)) | other
    with transaction.atomic():
        with writes() as written:
            answer = stage.client(caller).generic(
                method.upper(), f"{place}{'&' if '?' in place else '?'}{query}" if query else place, **sent
            )
        transaction.set_rollback(True)
    assert answer.status_code >= 400, (method, route.name, caller, written)
    return str(answer.status_code)


def one_of_each(name: str, method: str) -> dict[str, str]:
    """A caller for each answer that the address has."""
    found = dict(zip(EXPECTED[name, method], PEOPLE, strict=True))
    return {caller: answer for answer, caller in found.items()}


@pytest.mark.parametrize("name", sorted(API))
def test_what_is_wrong_with_parameters_and_key_comes_after_rights(stage: Stage, name: str) -> None:
    route = API[name]
    for method in route.methods:
        wanted = {
            caller: answer if answer in OF_RIGHTS else "400" for caller, answer in one_of_each(name, method).items()
        }
        found = {caller: answered(stage, route, method, caller, "no_such=1") for caller in wanted}
        assert found == wanted, method
        if method == "get":
            continue
        headers = {"If-Match": "*", "Idempotency-Key": "not\tprintable"}
        found = {
            caller: answered(stage, route, method, caller, "dry_run=no_such", headers=headers) for caller in wanted
        }
        assert found == wanted, method


@pytest.mark.parametrize("name", sorted(API))
def test_what_is_wrong_with_a_body_comes_after_rights_that_the_address_alone_decides(stage: Stage, name: str) -> None:
    route = API[name]
    for method in set(route.methods) - {"get"}:
        if "400" in EXPECTED[name, method]:
            continue  # whose it is stands in the body
        wanted = {caller: answer for caller, answer in one_of_each(name, method).items() if answer in OF_RIGHTS}
        once = {"Idempotency-Key": "once"}
        for body, key in ((orjson.dumps({"no_such": 1}), {}), (b"{", once), (b"[]", {})):
            sent = {"data": body, "content_type": "application/json", "headers": {"If-Match": "*", **key}}
            found = {caller: answered(stage, route, method, caller, "", **sent) for caller in wanted}
            assert found == wanted, (method, body, key)
