"""What no view answers: problem+json below /api/, a page elsewhere, both with the id of the request."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from django.db import OperationalError
from django.test import Client
from redis import RedisError

from tests.web.console import world as story
from tests.web.console.test_pages import client_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    found = client_of(story.people()[0])
    found.raise_request_exception = False
    found.handler.enforce_csrf_checks = True
    return found


@pytest.mark.parametrize("path", ["/api/v1/nothing/", "/api/nothing", "/api/v1/quota-changes/x/"])
def test_a_post_to_an_address_that_is_not_there(client, path):
    answer = client.post(path, {})
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
    assert answer["Cache-Control"] == "no-store"


def test_a_post_without_its_token(client):
    answer = client.post("/api/v1/queues/", {}, content_type="application/json")
    assert (answer.status_code, answer["Content-Type"]) == (403, "application/problem+json")
    page = client.post("/profile/", {})
    assert (page.status_code, page["Content-Type"]) == (403, "text/html; charset=utf-8")


@pytest.mark.parametrize(("error", "status"), [(ZeroDivisionError(), 500), (OperationalError("gone"), 503)])
@pytest.mark.parametrize("at", ["clusters_of_frame", "middleware"])
def test_an_error_says_its_id_and_a_database_that_is_away_is_a_503(client, error, status, at):
    place = {
        "clusters_of_frame": "tidesched_web.console.page.clusters_of_frame",
        "middleware": "tidesched_web.console.middleware._zone",
    }[at]
    with patch(place, side_effect=error):
        page = client.get("/clusters/", headers={"X-Request-ID": "request-12345"})
    assert page.status_code == status
    assert b"<code>request-12345</code>" in page.content
    assert page["X-Request-ID"] == "request-12345"
    assert ("Retry-After" in page) is (status == 503)


@pytest.mark.parametrize(("error", "named"), [(OperationalError("gone"), "database"), (RedisError("gone"), "Redis")])
def test_a_page_names_what_is_away(client, error, named):
    with patch("tidesched_web.console.page.clusters_of_frame", side_effect=error):
        page = client.get("/clusters/")
    assert page.status_code == 503
    assert f"<h1>TideSched cannot reach its {named} at the moment</h1>" in page.content.decode()


@pytest.mark.parametrize(("error", "status"), [(ZeroDivisionError(), 500), (OperationalError("gone"), 503)])
@pytest.mark.parametrize("at", ["tidesched_web.api.views.access_of", "django.contrib.auth.get_user"])
def test_an_error_of_the_api_is_a_problem(client, error, status, at):
    with patch(at, side_effect=error):
        answer = client.get("/api/v1/queues/", headers={"X-Request-ID": "request-12345"})
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    assert answer.json()["request_id"] == "request-12345"
    assert ("Retry-After" in answer) is (status == 503)


def test_answers_of_the_api_are_kept_nowhere(client):
    assert client.get("/api/v1/queues/")["Cache-Control"] == "no-store"
    assert Client().get("/api/v1/queues/")["Cache-Control"] == "no-store"


def test_hsts_makes_no_promise_for_the_whole_domain(db, settings):
    settings.SECURE_HSTS_SECONDS = 60
    answer = Client().get("/sign-in/", secure=True)
    assert answer["Strict-Transport-Security"] == "max-age=60"


UNREADABLE = {
    "no boundary": ("multipart/form-data", b"abc"),
    "another coding": ("application/x-www-form-urlencoded; charset=zip", b"a=1"),
    "many fields": ("application/x-www-form-urlencoded", b"&".join(b"f%d=1" % number for number in range(5000))),
}


@pytest.mark.parametrize("kind", UNREADABLE)
@pytest.mark.parametrize(
    "path", ["/api/v1/tenants/", "/no/such/page/", "/clusters/demo/quota/edit/check/", "/profile/"]
)
def test_a_form_that_cannot_be_read_is_refused(client, path, kind):
    """The token of a session is looked for in the form."""
    token = client.get("/profile/").context["csrf_token"]
    content_type, body = UNREADABLE[kind]
    answer = client.generic("POST", path, body, content_type, headers={"X-CSRFToken": str(token)})
    expected = 404 if path.startswith("/no/") else 413 if kind == "many fields" else 400
    assert answer.status_code == expected
    if path.startswith("/api/"):
        assert answer.json()["code"] == {400: "malformed_body", 413: "body_too_large"}[expected]


def test_edits_that_come_as_a_form_are_refused():
    client = client_of(story.full().admin)
    client.raise_request_exception, client.handler.enforce_csrf_checks = False, True
    token = str(client.get("/profile/").context["csrf_token"])
    body, kind = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nq\r\n--x--', "multipart/form-data; boundary=x"
    headers = {"X-CSRFToken": token}
    answer = client.generic("POST", "/clusters/demo/quota/edit/check/", body, kind, headers=headers)
    assert (answer.status_code, answer.json()["errors"][0]["detail"]) == (200, "Edits are sent as application/json.")
