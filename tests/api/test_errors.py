"""Every error is a problem document, also where no view was reached."""

import pytest
from django.core.cache import cache

from tests.api.cast import ApiClient
from tidesched_web.api.v1 import quota as queues_view

MEMBERS = {"type", "title", "status", "code", "detail", "instance", "request_id"}


def problem(response, status, code):
    assert response.headers["Content-Type"] == "application/problem+json"
    body = response.json()
    assert set(body) >= MEMBERS
    assert (response.status_code, body["status"], body["code"]) == (status, status, code)
    assert body["request_id"] == response.headers["X-Request-ID"]
    return body


def test_not_signed_in(world):
    response = world.client("anonymous").get("/api/v1/queues/")
    problem(response, 401, "not_authenticated")
    assert response.headers["WWW-Authenticate"] == "Bearer"


def test_an_unknown_token(world):
    problem(ApiClient(token="tide_unknown").get("/api/v1/queues/"), 401, "invalid_token")


def test_a_missing_scope_names_the_needed_one(world):
    body = problem(world.client("token:quota:read").get("/api/v1/reclaims/"), 403, "missing_scope")
    assert body["required_scopes"] == ["reclaim:read"]


@pytest.mark.parametrize("path", ["queues/999999/", f"queues/{10**23}/", "nothing/", "queues", "queues/x/"])
def test_not_found(world, path):
    problem(world.client("admin").get(f"/api/v1/{path}"), 404, "not_found")


def test_method_not_allowed(world):
    for method in ("post", "put", "patch", "delete"):
        problem(getattr(world.client("admin"), method)("/api/v1/nodes/"), 405, "method_not_allowed")
    problem(world.client("admin").delete("/api/v1/usage/"), 405, "method_not_allowed")


@pytest.mark.parametrize("caller", ["admin", "anonymous"])
def test_a_method_that_an_address_lacks_is_refused_as_such_whatever_parameters_come_with_it(world, caller):
    client, tree = world.client(caller), f"/api/v1/clusters/{world.clusters['east'].pk}/tree/?format=json"
    for url in (tree, "/api/v1/usage/?step=1h", "/api/v1/nodes/?limit=1"):
        for method in ("PUT", "DELETE", "TRACE", "QUERY"):
            refused = client.generic(method, url)
            problem(refused, 405, "method_not_allowed")
            assert "GET" in refused.headers["Allow"]


def test_a_session_needs_its_csrf_token_to_write(world):
    from django.test import Client

    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.force_login(world.users["admin"])
    address = f"/api/v1/clusters/{world.clusters['east'].pk}/pause/"
    problem(client.post(address, {"reason": "x"}, content_type="application/json"), 403, "csrf_failed")
    assert client.get("/api/v1/queues/").status_code == 200


@pytest.mark.parametrize(
    ("body", "kind", "status", "code"),
    [
        (b"{", "application/json", 400, "malformed_body"),
        (b"[]", "application/json", 400, "malformed_body"),
        (b"a=b", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
        (b'{"scopes": []}', "application/json", 400, "invalid"),
        (b'{"scopes": ["everything"]}', "application/json", 400, "unknown_scope"),
        (b'{"scopes": ["admin"], "power": 9}', "application/json", 400, "invalid"),
        (b'{"scopes": ["admin"], "expires": "soon"}', "application/json", 400, "invalid"),
        (b'{"scopes": ["admin"], "tenant": "nowhere"}', "application/json", 400, "unknown_tenant"),
        (b'{"scopes": ["admin"], "name": "a\\u0000b"}', "application/json", 400, "invalid"),
        (b'{"scopes": ["admin"], "name": "\\ud800"}', "application/json", 400, "invalid"),
        (b"[" * 100_000, "application/json", 400, "malformed_body"),
        (b"1e999", "application/json", 400, "malformed_body"),
        (b'{"scopes": ["quota:read"], "scopes": ["admin"]}', "application/json", 400, "malformed_body"),
        (b'{"a": {"scopes": 1, "scopes": 1}}', "application/json", 400, "malformed_body"),
    ],
)
def test_a_bad_body(world, body, kind, status, code):
    headers = {"Idempotency-Key": "k"}
    response = world.client("owner").post("/api/v1/tokens/", body, content_type=kind, headers=headers)
    problem(response, status, code)


def test_a_text_that_cannot_be_stored_is_named_wherever_it_stands(world):
    edits = {"queue/acme-online": {"card_quota": {"a\0": 2}, "parent": "b"}}
    body = world.client("owner").send("quota-changes/", {"cluster": "east", "edits": {"a": edits}, "reason": "x"})
    assert problem(body, 400, "invalid")["errors"][0]["pointer"] == "/edits/a/queue~1acme-online/card_quota"
    for weight in (b"1" + b"0" * 30, b"1e999"):
        body = b'{"cluster": "east", "edits": {"queue/acme-online": {"weight": %b}}, "reason": "x"}' % weight
        answer = world.client("owner").post("/api/v1/quota-changes/", body, "application/json")
        assert problem(answer, 400, "invalid")["errors"][0]["pointer"] == "/edits/queue~1acme-online/weight"


def test_a_figure_that_is_none_is_named_to_a_tenants_admin_too(world):
    for patch in ({"weight": 0}, {"weight": "x"}, {"priority": []}, {"reclaimable": 5}, {"service_type": 5}):
        sent = {"cluster": "east", "edits": {"queue/acme-online": patch}, "reason": "x"}
        (field,) = patch
        refused = problem(world.client("owner").send("quota-changes/", sent), 400, "invalid")
        assert f"/edits/queue~1acme-online/{field}" in [error["pointer"] for error in refused["errors"]]


def test_a_first_password_has_to_be_changed_before(world):
    world.users["owner"].must_change_password = True
    world.users["owner"].save()
    problem(world.client("owner").get("/api/v1/tenants/"), 403, "permission_denied")


def test_an_unforeseen_exception_says_nothing_of_itself(world, monkeypatch, caplog):
    def broken(_):
        raise RuntimeError("the password is swordfish")

    monkeypatch.setattr(queues_view, "usage_now", broken)
    response = world.client("owner").get("/api/v1/queues/")
    body = problem(response, 500, "internal_error")
    assert "swordfish" not in response.content.decode()
    assert body["request_id"]
    assert "swordfish" in caplog.text


def test_too_many_requests(world, settings):
    cache.clear()
    settings.API_REQUESTS_PER_MINUTE = 2
    client = world.client("owner")
    answers = [client.get("/api/v1/tenants/") for _ in range(5)]
    throttled = [answer for answer in answers if answer.status_code == 429]
    assert throttled  # a window may turn in between
    problem(throttled[0], 429, "throttled")
    assert 1 <= int(throttled[0].headers["Retry-After"]) <= 60


def test_habits_of_clients_and_proxies(world):
    """A coding is refused by its name, OPTIONS is answered, several ETags and Apache's are read."""
    place = f"/api/v1/queues/{world.queues['acme-train'].pk}/"
    client = world.client("admin")
    version = client.get(place)["ETag"].strip('"')
    allowed = client.options("/api/v1/queues/")
    assert (allowed.status_code, "OPTIONS" in allowed["Allow"]) == (204, True)
    body = {"weight": 3, "reason": "t"}
    for tags, status in (
        (f'"0", "{version}"', 200), (f'"{version}-gzip"', 200), (f'W/"{version}"', 200), (version, 200),
        (f'W/{version}"', 200),
        ('"another"', 412), (f'"{int(version) + 1}"', 412), ("{", 400),
    ):  # fmt: skip
        answer = client.patch(
            f"{place}?dry_run=true", body, content_type="application/json", headers={"If-Match": tags}
        )
        assert answer.status_code == status, (tags, answer.content)
    nothing = client.patch(place, b"", content_type="application/json", headers={"If-Match": version})
    assert (nothing.status_code, nothing.json()["code"]) == (400, "malformed_body")
    assert client.get("/api/v1/audit/?limit=1&from=2026-11-27t10:00:00z").status_code == 200


def test_a_request_id_of_the_caller_is_kept_and_a_strange_one_is_not(world):
    client = world.client("owner")
    kept = client.get("/api/v1/tenants/", headers={"X-Request-ID": "deploy-2026-11-20.7"})
    assert kept.headers["X-Request-ID"] == "deploy-2026-11-20.7"
    replaced = client.get("/api/v1/tenants/", headers={"X-Request-ID": "a b\x7f"})
    assert len(replaced.headers["X-Request-ID"]) == 24


_BOUNDS = (("quota-changes", "until"), ("reclaims", "from"), ("audit", "to"), ("sessions", "from"))


@pytest.mark.parametrize(
    "moment", ["1000-01-01T00:00:00+20:37", "2026-01-01T00:00:00-23:59", "2999-12-31T23:59:59-23:00"]
)
def test_a_moment_of_any_zone_is_taken(world, moment):
    """The database knows no zone that is 16 hours or more away."""
    for path, name in _BOUNDS:
        answer = world.client("admin").get(f"/api/v1/{path}/", {name: moment, "count": "exact"})
        assert answer.status_code == 200, (path, answer.content)


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+23:00", "0999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:00"])
def test_a_moment_beyond_the_calendar_is_refused_with_its_limits_by_every_list_and_series(world, moment):
    for path, name in (*_BOUNDS, ("usage", "from"), ("usage", "to")):
        asked = {name: moment} | ({"cluster": "east"} if path == "usage" else {})
        refused = problem(world.client("admin").get(f"/api/v1/{path}/", asked), 400, "invalid")
        (fault,) = refused["errors"]
        assert fault["pointer"] == f"/{name}", path
        assert fault["detail"] == f"“{moment}” lies in no year from 1000 to 2999.", path


def test_an_hour_beyond_the_calendar_is_refused_where_a_change_is_drafted(world):
    edits = {"queue/acme-online": {"weight": 2}}
    body = {"cluster": "east", "edits": edits, "reason": "later", "apply_at": "9999-12-31T23:00:00Z"}
    refused = problem(world.client("admin").change("POST", "quota-changes/", body), 400, "invalid")
    assert [fault["pointer"] for fault in refused["errors"]] == ["/apply_at"]
    assert "from 1000 to 2999" in refused["errors"][0]["detail"]


@pytest.mark.parametrize("kind", ["queues", "projects"])
def test_the_reason_in_the_address_is_looked_at_beside_that_in_the_body(world, kind):
    client = world.client("admin")
    row = client.read(f"{kind}/")["results"][0]
    answer = client.change("DELETE", f"{kind}/{row['id']}/?reason=%00&dry_run=true", {"reason": "moved"}, If_Match="*")
    assert problem(answer, 400, "invalid")["errors"][0]["pointer"] == "/reason"
