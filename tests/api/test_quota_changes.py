"""Quota by REST: a change from draft to roll back, and PATCH of quotas with ETag, dry run, approval."""

from __future__ import annotations

import orjson
import pytest

from tests.api.cast import A100, H200, ApiClient
from tidesched_web.audit.models import AuditEntry
from tidesched_web.changes import selectors
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.services import planning, reviewing
from tidesched_web.clusters.models import Cluster

EDITS = {"queue/acme-online": {"card_quota": {H200: 7}}}


def act(client, change, verb, body=None, **headers):
    """An act on the change as it is now."""
    etag = f'"{QuotaChange.objects.get(pk=change["id"]).version}"'
    return client.send(f"quota-changes/{change['id']}/{verb}/", body or {}, **{"If_Match": etag, **headers})


def drafted(client, edits=EDITS, **more):
    answer = client.send("quota-changes/", {"cluster": "east", "edits": edits, "reason": "more users", **more})
    assert answer.status_code == 201, answer.content
    return answer.json()


def test_a_change_from_draft_to_roll_back(world):
    owner, pk = world.client("owner"), world.queues["acme-online"].pk
    body = {"cluster": "east", "edits": EDITS, "reason": "more users"}
    made, again = (owner.send("quota-changes/", body, Idempotency_Key="c") for _ in range(2))
    change = made.json()
    assert (again.json(), QuotaChange.objects.count()) == (change, 1)
    assert (made.headers["Location"], change["state"], change["created_by"]) == (change["url"], "draft", "owner")
    plan = owner.read(f"quota-changes/{change['id']}/plan/", impact="false")
    assert [(found["field"], found["before"], found["after"], found["in_use"]) for found in plan["fields"]] == [
        (f"/card_quota/{H200}", 6, 7, 1.5)
    ]
    assert (plan["errors"], plan["approval"], plan["base_version"]) == (
        [], {"due": False, "why": []}, change["base_version"]
    )  # fmt: skip
    dry = owner.send(f"quota-changes/{change['id']}/apply/?dry_run=true", {})
    assert (dry.status_code, dry.json()["plan"]["fields"]) == (200, plan["fields"])
    applied = act(owner, change, "apply", {"base_version": change["base_version"]}, X_REQUEST_ID="request-78")
    assert (applied.status_code, applied.json()["state"]) == (202, "applied")
    assert [row["state"] for row in applied.json()["objects"]] == ["skipped"]
    assert owner.read(f"queues/{pk}/")["card_quota"] == {H200: 7, A100: 1}
    entries = AuditEntry.objects.filter(request_id="request-78").order_by("seq")
    assert [(entry.action, entry.actor) for entry in entries] == [
        ("queue.update", "owner"), ("quota_change.apply", "owner")
    ]  # fmt: skip
    assert act(owner, change, "apply").status_code == 202  # harmless
    back = act(owner, change, "rollback", {"reason": "too many"})
    assert (back.status_code, back.json()["state"], back.json()["rolls_back"]) == (202, "draft", change["id"])
    done = act(owner, back.json(), "apply")
    assert done.json()["state"] == "applied"
    assert owner.read(f"queues/{pk}/")["card_quota"] == {H200: 6, A100: 1}
    listed = owner.read("quota-changes/", cluster="east", state="rolled_back")["results"]
    assert [row["id"] for row in listed] == [change["id"]]


def test_asked_twice_to_roll_back_there_is_one_draft(world):
    owner = world.client("owner")
    change = drafted(owner)
    act(owner, change, "apply")
    first, again = (act(owner, change, "rollback", {"reason": "too many"}).json() for _ in range(2))
    assert again["id"] == first["id"]
    assert QuotaChange.objects.filter(rolls_back=change["id"]).count() == 1
    # What was edited since, or is another person's, is another draft.
    assert act(world.client("admin"), change, "rollback").json()["id"] != first["id"]
    less = {"queue/acme-online": {"card_quota": {H200: 5}}}
    assert owner.change("PATCH", f"quota-changes/{first['id']}/", {"edits": less}, If_Match="*").status_code == 200
    assert act(owner, change, "rollback").json()["id"] != first["id"]


def test_a_draft_is_worked_out_once_and_its_impact_is_asked_of_that(world, monkeypatch):
    read, asked = [], []
    monkeypatch.setattr(planning, "reading_of", lambda cluster: read.append(1) or selectors.reading_of(cluster))
    monkeypatch.setattr(reviewing, "ask", lambda _cluster, objects, **_: asked.append(objects))
    made = drafted(world.client("owner"))
    assert len(read) == 1
    assert asked == [QuotaChange.objects.get(pk=made["id"]).plan["objects"]]


def test_a_moved_base_is_409_with_what_changed(world):
    owner = world.client("owner")
    first = drafted(owner)
    second = drafted(owner, {"queue/acme-online": {"card_quota": {H200: 5}}})
    assert act(owner, second, "apply").status_code == 202
    refused = act(owner, first, "apply")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert refused.json()["changed_since"] == [
        {"object": "queue/acme-online", "field": f"/card_quota/{H200}", "before": 6, "after": 5}
    ]
    rebased = owner.change("PATCH", f"quota-changes/{first['id']}/", {"rebase": True}, If_Match='"1"')
    assert (rebased.status_code, rebased.headers["ETag"]) == (200, '"2"')
    assert owner.change("PATCH", f"quota-changes/{first['id']}/", {"reason": "x"}, If_Match='"1"').status_code == 412
    assert act(owner, first, "apply").status_code == 202


def test_a_breach_is_422_with_its_figures(world):
    owner = world.client("owner")
    change = drafted(owner, {"queue/acme-online": {"card_quota": {H200: 9}}})
    refused = act(owner, change, "apply")
    assert (refused.status_code, refused.headers["Content-Type"]) == (422, "application/problem+json")
    error = refused.json()["errors"][0]
    assert error["pointer"] == f"/edits/queue~1acme-online/card_quota/{H200}"
    assert (error["code"], error["requested"], error["limit"], error["in_use"]) == ("exceeds_tenant", 9, 8, 1.5)


def test_what_the_cluster_has_left_is_a_sentence_of_its_own(world):
    body = {"cluster": "east", "edits": {"queue/acme-online": {"card_quota": {H200: 9000}}}, "reason": "x"}
    answer = world.client("admin").send("quota-changes/?dry_run=true", body)
    said = [error["detail"] for error in answer.json()["plan"]["errors"]]
    assert any("too many. The cluster has " in one for one in said), said


@pytest.mark.parametrize(
    ("edits", "pointer"),
    [
        ([], "/edits"),
        ({"nonsense": {}}, "/edits/nonsense"),
        ({"queue/acme-online": 5}, "/edits/queue~1acme-online"),
    ],
)
def test_malformed_edits_are_400_with_their_place(world, edits, pointer):
    answer = world.client("owner").send("quota-changes/", {"cluster": "east", "edits": edits})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, pointer)


@pytest.mark.parametrize(
    ("edits", "pointer"),
    [
        ({"tide-plan/nights": {"time_zone": "A" * 65}}, "/edits/tide-plan~1nights/time_zone"),
        ({"priority-class/batch": {"value": 1, "replace": {}}}, "/edits/priority-class~1batch/replace"),
        ({"priority-class/batch": {"value": 1, "replace": "yes"}}, "/edits/priority-class~1batch/replace"),
    ],
)
def test_a_draft_keeps_no_figure_that_no_document_can_hold(world, edits, pointer):
    admin = world.client("admin")
    change = drafted(admin, {"tide-plan/nights": {"time_zone": "Mars/Base"}, "priority-class/batch": {"value": 1}})
    for answer in (
        admin.send("quota-changes/", {"cluster": "east", "edits": edits}),
        admin.change("PATCH", f"quota-changes/{change['id']}/", {"edits": edits}, If_Match="*"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
        assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


def test_a_draft_of_an_unknown_card_type_says_so_at_once_and_cannot_be_applied(world):
    """It may be declared, or a node may bring it, before the draft is applied; so it is kept."""
    admin = world.client("admin")
    change = drafted(admin, {"queue/acme-online": {"card_quota": {"NVIDIA-H20": 1}}})
    (error,) = change["errors"]
    assert (error["code"], error["pointer"]) == ("unknown_card", "/edits/queue~1acme-online/card_quota/NVIDIA-H20")
    assert error["detail"].startswith("Card type NVIDIA-H20 is known to no node of this cluster, and is not declared")
    assert "Did you mean NVIDIA-H200?" in error["detail"]
    assert admin.read(f"quota-changes/{change['id']}/")["errors"] == [error]
    assert act(admin, change, "apply").status_code == 400
    card = {"cluster": "east", "name": "NVIDIA-H20", "reason": "on its way"}
    assert admin.send("card-types/", card).status_code == 201
    plan = admin.read(f"quota-changes/{change['id']}/plan/", impact="false")
    assert "unknown_card" not in [error["code"] for error in plan["errors"]], "what is left is room"


def test_the_second_person_is_another_account_whatever_the_token(world):
    Cluster.objects.update(approval_required=True)
    owner = world.client("owner")
    change = drafted(ApiClient(token=world.token("owner", "quota:write")))
    asked = act(owner, change, "apply")
    assert (asked.status_code, asked.json()["state"]) == (202, "waiting")
    token = ApiClient(token=world.token("owner", "quota:write", tenant="acme"))
    for caller in (owner, token):
        assert act(caller, change, "approve").status_code == 403
    assert act(world.client("rival"), change, "approve").status_code == 404
    agreed = act(world.client("admin"), change, "approve")
    assert (agreed.status_code, agreed.json()["state"], agreed.json()["approved_by"]) == (202, "applied", "admin")


def patch(client, url, body, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.generic("PATCH", f"/api/v1/{url}", orjson.dumps(body), "application/merge-patch+json", headers=named)


def test_patch_of_a_tenants_quota(world):
    admin, acme = world.client("admin"), world.tenants["acme"]
    url, body = f"tenants/{acme.pk}/", {"quota": {"east": {"inference": {"card_quota": {H200: 7}}}}, "reason": "less"}
    etag = admin.get(f"/api/v1/{url}").headers["ETag"]
    assert patch(admin, url, body).status_code == 428
    assert patch(admin, url, body, If_Match='"99"').status_code == 412
    assert patch(admin, url, {**body, "reason": " "}, If_Match=etag).json()["code"] == "reason_required"
    dry = patch(admin, f"{url}?dry_run=true", body)
    assert (dry.status_code, dry.json()["plan"]["fields"][0]["after"]) == (200, 7)
    low = {**body, "quota": {"east": {"inference": {"card_quota": {H200: 5}}}}}
    refused = patch(admin, url, low, If_Match=etag)
    error = refused.json()["errors"][0]
    assert (refused.status_code, error["code"], error["sibling"]) == (422, "below_children", "acme-online")
    assert error["pointer"] == f"/quota/inference/card_quota/{H200}"
    done = patch(admin, url, body, If_Match=etag)
    assert done.status_code == 200, done.content
    rows = done.json()["quota"]
    assert [row["cards"] for row in rows if row["service_type"] == "inference"] == [{A100: 2, H200: 7}]
    assert done.headers["ETag"] != etag
    row = {"cluster": "east", "service_type": "inference", "cards": None}
    gone = patch(admin, url, {"quota": [row], "reason": "no ceiling"}, If_Match=done.headers["ETag"])
    assert gone.json()["quota"] == []
    assert patch(world.client("owner"), url, body, If_Match="*").status_code == 403
    assert patch(world.client("stranger"), url, body, If_Match="*").status_code == 404


def test_where_approval_is_due_a_patch_is_accepted_with_the_address_of_its_change(world):
    Cluster.objects.update(approval_required=True)
    owner, acme = world.client("owner"), world.tenants["acme"]
    url = f"projects/{acme.projects.get().pk}/"
    body = {"quota": {"east": {"inference": {"card_quota": {H200: 8, A100: 1}}}}, "reason": "a ceiling"}
    answer = patch(owner, url, body, If_Match="*")
    assert (answer.status_code, answer.json()["state"]) == (202, "waiting")
    assert answer.headers["Location"] == answer.json()["url"]
    assert owner.read(url)["quota"] == []


def test_a_misspelt_queue_is_answered_with_the_nearest_one_in_sight(world):
    body = {"cluster": "east", "edits": {"queue/acme-onlinee": {"card_quota": {"NVIDIA-B300": 1}}}}
    found = world.client("admin").send("quota-changes/?dry_run=true", body).json()["plan"]["errors"]
    said = " ".join(error["detail"] for error in found)
    assert "There is no queue acme-onlinee; the nearest is acme-online. To make a queue acme-onlinee, give" in said
    assert "NVIDIA-B300 is known to no node" in said
    assert "Did you mean" not in said, "another model is no misspelling"
