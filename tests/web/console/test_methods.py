"""Methods: every address of the console has GET and HEAD, POST alone or all three, and says so to any other one."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from tests.matrix.stage import Route, routes
from tests.web.console.test_pages import client_of

pytestmark = pytest.mark.django_db
OTHERS = ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")
PAGES = [route for route in routes() if not route.pattern.startswith("api/")]
_VALUES = {"int": "1", "slug": "demo", "str": "name", "path": "a/b", "uuid": "0" * 32}


def address(route: Route) -> str:
    return "/" + re.sub(r"<(\w+):\w+>", lambda found: _VALUES[found[1]], route.pattern)


@pytest.mark.parametrize("route", PAGES, ids=lambda route: route.name)
def test_a_method_that_no_page_has_is_refused_with_those_that_it_has(route: Route) -> None:
    client, path = Client(enforce_csrf_checks=True), address(route)
    found = {method: client.generic(method, path) for method in OTHERS}
    assert {method: answer.status_code for method, answer in found.items()} == dict.fromkeys(OTHERS, 405)
    (allowed,) = {answer.headers["Allow"] for answer in found.values()}
    assert set(allowed.split(", ")) <= {"GET", "HEAD", "POST"}
    assert (client.get(path).status_code == 405) == ("GET" not in allowed)


def test_a_reader_who_is_signed_in_gets_no_page_by_such_a_method(world) -> None:
    """All of them answered 200, with the page, to a session with its form's token."""
    client = client_of(world.admin)
    for path in ("/clusters/demo/", "/clusters/demo/queues/", "/profile/", "/clusters/demo/quota/"):
        found = {method: client.generic(method, path).status_code for method in OTHERS}
        assert found == dict.fromkeys(OTHERS, 405), path
        assert client.get(path).status_code == 200
    assert client.generic("PUT", "/no-such-page/").status_code == 404


def test_a_form_that_is_sent_to_a_page_that_takes_none_is_refused(world) -> None:
    """The page was answered, with 200, as to a GET."""
    client = client_of(world.admin)
    for path in ("/", "/clusters/", "/clusters/demo/", "/clusters/demo/queues/", "/clusters/demo/quota/", "/audit/"):
        answer = client.post(path, {"reason": "drill"})
        assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD"), path
    assert client.post("/profile/", {"language": "en"}).status_code == 302
    assert Client(enforce_csrf_checks=True).post("/clusters/demo/").status_code == 405
    assert client.get("/sign-out/").headers["Allow"] == "POST"
