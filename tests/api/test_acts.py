"""What the API can change: the pause switch and tokens, each with Idempotency-Key."""

import datetime as dt

import pytest
from django.db import OperationalError
from django.utils import timezone

from tests.api.cast import ApiClient, live_tokens
from tidesched_web.accounts.models import ApiToken
from tidesched_web.api import services as kept_answers
from tidesched_web.api.models import StoredAnswer
from tidesched_web.audit.models import AuditEntry
from tidesched_web.clusters.models import Cluster
from tidesched_web.scheduling.models import Alert


def test_pause_and_resume_need_a_reason_and_are_audited(world):
    admin, pk = world.client("admin"), world.clusters["east"].pk
    assert admin.send(f"clusters/{pk}/pause/", {"reason": "  "}).status_code == 400
    paused = admin.send(f"clusters/{pk}/pause/", {"reason": "fire drill"})
    assert paused.json()["pause"]["reason"] == "fire drill"
    assert admin.send(f"clusters/{pk}/pause/", {"reason": "again"}).json()["code"] == "conflict"
    resumed = admin.send(f"clusters/{pk}/resume/", {"reason": "over"}, X_REQUEST_ID="request-77")
    assert resumed.json()["pause"] is None
    entry = AuditEntry.objects.order_by("-id").first()
    assert (entry.action, entry.actor, entry.reason) == ("cluster.resume", "admin", "over")
    assert (entry.request_id, entry.address) == ("request-77", "127.0.0.1")
    assert entry.before["reason"] == "fire drill"
    assert Cluster.objects.get(pk=pk).version == 3


def test_an_acknowledged_alert_is_handed_back(world):
    alert = Alert.objects.create(
        cluster=world.clusters["east"], key="node_lost:n7", severity="warning", code="node_lost", message="n7 has left",
        raised_at=timezone.now(),
    )  # fmt: skip
    admin, path = world.client("admin"), f"alerts/{alert.pk}"
    assert admin.send(f"{path}/hand-back/", {"reason": "x"}).json()["code"] == "conflict"
    assert admin.send(f"{path}/acknowledge/", {"reason": "mine"}).json()["state"] == "acknowledged"
    assert world.client("auditor").send(f"{path}/hand-back/", {"reason": "x"}).status_code == 403
    assert world.client("stranger").send(f"{path}/hand-back/", {"reason": "x"}).status_code == 404
    given = admin.send(f"{path}/hand-back/", {"reason": "On leave."}).json()
    assert (given["state"], given["acknowledged_by"]) == ("open", "")
    assert AuditEntry.objects.get(action="alert.hand_back").reason == "On leave."


def test_a_token_is_shown_once_and_only_its_hash_is_kept(world):
    owner = world.client("owner")
    made = owner.send("tokens/", {"name": "ci", "scopes": ["quota:read"], "expires": "90d"})
    assert made.status_code == 201
    text, document = made.json()["token"], made.json()
    assert made.headers["Location"] == document["url"]
    assert "token" not in owner.get(document["url"]).json()
    stored = ApiToken.objects.get(pk=document["id"])
    assert text not in str(vars(stored))
    assert dt.timedelta(days=89) < stored.expires_at - timezone.now() < dt.timedelta(days=91)
    assert text not in str(list(AuditEntry.objects.values()))

    caller = ApiClient(token=text)
    assert caller.get("/api/v1/tenants/").status_code == 200
    assert owner.delete(document["url"]).status_code == 204
    assert caller.get("/api/v1/tenants/").status_code == 401
    assert owner.get(document["url"]).json()["revoked_at"]


def test_an_expired_token_and_one_of_a_switched_off_user_are_dead(world):
    text = world.token("owner", "quota:read")
    ApiToken.objects.update(expires_at=timezone.now() - dt.timedelta(seconds=1))
    assert ApiClient(token=text).get("/api/v1/tenants/").status_code == 401
    text = world.token("teammate", "quota:read")
    assert ApiClient(token=text).get("/api/v1/tenants/").status_code == 200
    world.users["teammate"].is_active = False
    world.users["teammate"].save()
    assert ApiClient(token=text).get("/api/v1/tenants/").status_code == 401


def test_time_of_use_is_written_once_a_minute(world, django_assert_num_queries):
    client = ApiClient(token=world.token("owner", "quota:read"))
    client.read("tenants/")
    first = ApiToken.objects.get().last_used_at
    assert first is not None
    client.read("tenants/")
    assert ApiToken.objects.get().last_used_at == first
    ApiToken.objects.update(last_used_at=first - dt.timedelta(minutes=5))
    client.read("tenants/")
    assert ApiToken.objects.get().last_used_at >= first


def test_the_same_key_and_body_get_the_first_answer_again(world):
    owner, body = world.client("owner"), {"scopes": ["quota:read"]}
    first = owner.send("tokens/", body, Idempotency_Key="k-1")
    second = owner.send("tokens/", body, Idempotency_Key="k-1")
    assert first.json() == second.json()
    assert (second.status_code, second.headers["Idempotency-Replayed"]) == (201, "true")
    assert live_tokens(world.users["owner"]) == 1
    assert first.json()["token"].encode() not in bytes(StoredAnswer.objects.get().body)


def test_a_repeated_answer_has_the_address_and_the_version_of_the_first(world):
    admin = world.client("admin")
    draft = {"cluster": "east", "reason": "more", "edits": {"queue/acme-online": {"weight": 3}}}
    for path, body in (("tenants/", {"slug": "nova", "name": "Nova"}), ("quota-changes/", draft)):
        first, again = (admin.send(path, body, Idempotency_Key=path) for _ in range(2))
        assert (again.status_code, again.headers["Idempotency-Replayed"]) == (201, "true"), again.content
        for name in ("ETag", "Location"):
            assert again.headers.get(name) == first.headers[name], (path, name)


def test_the_same_key_with_another_body_is_refused(world):
    owner = world.client("owner")
    owner.send("tokens/", {"scopes": ["quota:read"]}, Idempotency_Key="k-1")
    other = owner.send("tokens/", {"scopes": ["audit:read"]}, Idempotency_Key="k-1")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


def test_a_key_belongs_to_one_operation_and_the_order_of_members_is_none(world):
    admin, pk = world.client("admin"), world.clusters["east"].pk
    first = admin.send(f"clusters/{pk}/pause/", {"reason": "drill"}, Idempotency_Key="k-1")
    other = admin.send(f"clusters/{pk}/resume/", {"reason": "drill"}, Idempotency_Key="k-1")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert Cluster.objects.get(pk=pk).paused, "the refused one did nothing"
    again = admin.send(f"clusters/{pk}/pause/", {"reason": "drill"}, Idempotency_Key="k-1")
    assert (again.status_code, again.json()) == (200, first.json()), "without the key it is a conflict"
    assert AuditEntry.objects.filter(action="cluster.pause").count() == 1
    owner, body = world.client("owner"), {"name": "ci", "scopes": ["quota:read"]}
    made = owner.send("tokens/", body, Idempotency_Key="k-2")
    same = owner.send("tokens/", dict(reversed(body.items())), Idempotency_Key="k-2")
    assert (same.headers.get("Idempotency-Replayed"), same.json()) == ("true", made.json())


def test_an_answer_is_kept_for_a_day(world):
    owner, body = world.client("owner"), {"scopes": ["quota:read"]}
    first = owner.send("tokens/", body, Idempotency_Key="k-1").json()
    for hours, kept in ((23, True), (25, False)):
        StoredAnswer.objects.update(started_at=timezone.now() - dt.timedelta(hours=hours))
        assert (owner.send("tokens/", body, Idempotency_Key="k-1").json() == first) == kept, hours
    assert live_tokens(world.users["owner"]) == 2


@pytest.mark.parametrize("key", ["", " k", "k ", "k" * 201, "k\u00fc".encode().decode("latin-1")])
def test_a_key_of_another_form_is_refused_and_nothing_is_done(world, key):
    answer = world.client("owner").send("tokens/", {"scopes": ["quota:read"]}, Idempotency_Key=key)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert live_tokens(world.users["owner"]) == 0
    assert not StoredAnswer.objects.exists()


def test_another_caller_never_gets_this_callers_answer(world):
    body = {"scopes": ["admin"]}
    first = world.client("owner").send("tokens/", body, Idempotency_Key="k-1").json()
    for other in (world.client("teammate"), ApiClient(token=first["token"])):
        assert other.send("tokens/", body, Idempotency_Key="k-1").json()["token"] != first["token"]


def test_a_refused_request_may_be_corrected_under_its_key(world):
    owner = world.client("owner")
    assert owner.send("tokens/", {"scopes": ["nonsense"]}, Idempotency_Key="k-1").status_code == 400
    assert owner.send("tokens/", {"scopes": ["quota:read"]}, Idempotency_Key="k-1").status_code == 201


def test_what_was_done_and_its_answer_are_kept_together_or_not_at_all(world, monkeypatch):
    """A database that goes away before the answer is kept leaves nothing that a repetition would do twice."""
    owner, body, before = world.client("owner"), {"scopes": ["quota:read"]}, ApiToken.objects.count()

    def gone(*_args, **_kept):
        raise OperationalError("gone")

    with monkeypatch.context() as broken:
        broken.setattr(kept_answers, "finish", gone)
        assert owner.send("tokens/", body, Idempotency_Key="k-1").status_code == 503
    assert ApiToken.objects.count() == before
    assert owner.send("tokens/", body, Idempotency_Key="k-1").status_code == 201
    assert owner.send("tokens/", body, Idempotency_Key="k-1").headers["Idempotency-Replayed"] == "true"
    assert ApiToken.objects.count() == before + 1


def test_the_key_of_a_request_that_succeeded_after_all_is_kept(world):
    """Its COMMIT took effect, and only the answer to that was lost."""
    owner, body = world.client("owner"), {"scopes": ["quota:read"]}
    owner.send("tokens/", body, Idempotency_Key="k-1")
    row = StoredAnswer.objects.get()
    kept_answers.abandon(row)
    assert owner.send("tokens/", body, Idempotency_Key="k-1").headers["Idempotency-Replayed"] == "true"
    StoredAnswer.objects.update(status=None)
    kept_answers.abandon(row)
    assert "Idempotency-Replayed" not in owner.send("tokens/", body, Idempotency_Key="k-1").headers


def test_a_request_under_way_is_a_conflict_until_it_must_be_dead(world):
    owner, body = world.client("owner"), {"scopes": ["quota:read"]}
    owner.send("tokens/", body, Idempotency_Key="k-1")
    StoredAnswer.objects.update(status=None)
    assert owner.send("tokens/", body, Idempotency_Key="k-1").json()["code"] == "request_in_flight"
    StoredAnswer.objects.update(started_at=timezone.now() - dt.timedelta(minutes=3))
    assert owner.send("tokens/", body, Idempotency_Key="k-1").status_code == 201
