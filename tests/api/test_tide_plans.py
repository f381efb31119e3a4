"""Tide plans by REST: ETag, merge patch, dry run, errors at their moment; base and effective quota of queues."""

import pytest
from jsonschema import Draft202012Validator

from tests.api.addresses import NIGHT
from tests.api.cast import H200
from tidesched_web.api.document.served import document
from tidesched_web.audit.models import AuditEntry
from tidesched_web.clusters.models import Cluster
from tidesched_web.quota.models import TidePlan
from tidesched_web.quota.services.tide_plans import write_tide_plan

ALL = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
ALWAYS = NIGHT | {"name": "always", "days": ALL, "start": "00:00", "end": "24:00"}


@pytest.fixture
def plan(world):
    document = {"enabled": True, "layers": [ALWAYS], "exceptions": {"2026-10-01": "sun", "2026-10-02": "none"}}
    return write_tide_plan(cluster=world.clusters["east"], name="nights", document=document, actor="tests")


def test_a_plan_is_made_read_changed_and_deleted(world):
    admin = world.client("admin")
    body = {"cluster": "east", "name": "nights", "layers": [NIGHT], "reason": "less at night"}
    made = admin.send("tide-plans/", body)
    assert made.status_code == 201, made.content
    document = made.json()
    assert made["Location"] == document["url"]
    assert (document["enabled"], document["position"], document["open_layers"], document["version"]) == (
        False,
        0,
        [],
        1,
    )
    assert admin.send("tide-plans/", body).json()["code"] == "already_exists"
    url, tag = document["url"], {"If_Match": '"1"'}
    assert admin.change("PATCH", url, {"enabled": True, "reason": "x"}).status_code == 428
    changed = admin.change("PATCH", url, {"enabled": True, "reason": "on"}, **tag)
    assert (changed.status_code, changed["ETag"], changed.json()["enabled"]) == (200, '"2"', True)
    assert admin.change("PATCH", url, {"position": 1, "reason": "x"}, **tag).status_code == 412
    assert admin.change("PATCH", url, {"position": 1}, If_Match='"2"').status_code == 400
    gone = admin.change("DELETE", url, {"reason": "over"}, If_Match='"2"')
    assert (gone.status_code, TidePlan.objects.count()) == (204, 0)
    actions = AuditEntry.objects.filter(object_type="tide_plan").order_by("id").values_list("action", flat=True)
    assert list(actions) == ["tide_plan.create", "tide_plan.update", "tide_plan.delete"]


def test_a_merge_patch_keeps_what_it_does_not_name(world, plan):
    admin, url = world.client("admin"), f"tide-plans/{plan.pk}/"
    patch = {"exceptions": {"2026-10-01": None, "2026-10-03": "mon"}, "reason": "calendar"}
    done = admin.change("PATCH", f"/api/v1/{url}", patch, If_Match="*")
    assert done.json()["exceptions"] == {"2026-10-02": "none", "2026-10-03": "mon"}
    assert done.json()["layers"] == plan.layers


def test_a_dry_run_answers_with_the_plan_and_does_nothing(world, plan):
    url = f"/api/v1/tide-plans/{plan.pk}/?dry_run=true"
    done = world.client("admin").change("PATCH", url, {"enabled": False})
    assert done.json()["dry_run"] is True
    assert [row["field"] for row in done.json()["plan"]["fields"]] == ["/enabled"]
    # The cluster is told of the base again, so the queue's object is among what changes.
    assert [row["name"] for row in done.json()["plan"]["objects"]] == ["acme-online"]
    plan.refresh_from_db()
    assert (plan.enabled, plan.version) == (True, 1)


def test_what_is_wrong_is_said_at_its_place(world, plan):
    admin, url = world.client("admin"), f"/api/v1/tide-plans/{plan.pk}/"

    def refused(**body):
        answer = admin.change("PATCH", url, body | {"reason": "x"}, If_Match="*")
        return answer.status_code, answer.json()

    status, problem = refused(layers=[ALWAYS | {"start": "25:00"}])
    assert (status, problem["errors"][0]["pointer"]) == (400, "/layers/0/start")
    status, problem = refused(layers=[ALWAYS | {"quota": {"acme-onlin": {H200: {"add": 1}}}}])
    assert (status, "Did you mean 'acme-online'?" in problem["errors"][0]["detail"]) == (400, True)
    status, problem = refused(layers=[ALWAYS | {"quota": {"acme-online": {H200: {"set": 9}}}}])
    assert status == 422
    (error,) = problem["errors"]
    assert (error["code"], error["requested"], error["limit"]) == ("exceeds_at_moment", 9, 8)
    assert refused(colour="blue")[0] == 400


@pytest.mark.parametrize("quota", [{"acme\0online": {H200: {"add": 1}}}, {"acme-online": {"NVIDIA\0H200": {"add": 1}}}])
def test_a_name_with_a_zero_byte_is_against_the_form_in_the_document_too(world, quota):
    body = {"cluster": "east", "name": "nights", "layers": [NIGHT], "reason": "less at night"}
    components = document()["components"]
    form = Draft202012Validator(components["schemas"]["TidePlanInput"] | {"components": components})
    wrong = body | {"layers": [NIGHT | {"quota": quota}]}
    assert (form.is_valid(body), form.is_valid(wrong)) == (True, False)
    answer = world.client("admin").send("tide-plans/", wrong)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")


def test_queues_show_base_and_effective(world, plan):
    def quota(name):
        (row,) = world.client("owner").read("queues/", name=name)["results"]
        return row["card_quota"].get(H200), row["effective_quota"].get(H200)

    # It uses one and a half cards, so six less one is what holds.
    assert quota("acme-online") == (6, 5)
    assert quota("acme-train") == (8, 8)
    TidePlan.objects.update(enabled=False)
    assert quota("acme-online") == (6, 6)


def test_each_sees_the_layers_about_their_own_queues(world):
    both = ALWAYS | {"quota": {"acme-online": {H200: {"add": -1}}, "rival-train": {H200: {"add": -2}}}}
    write_tide_plan(cluster=world.clusters["east"], name="both", document={"layers": [both]}, actor="tests")
    (mine,) = world.client("owner").read("tide-plans/")["results"]
    assert (list(mine["layers"][0]["quota"]), mine["hidden_queues"]) == (["acme-online"], 1)
    (theirs,) = world.client("rival").read("tide-plans/")["results"]
    assert (list(theirs["layers"][0]["quota"]), theirs["hidden_queues"]) == (["rival-train"], 1)
    assert world.client("stranger").read("tide-plans/")["results"] == []
    (all_of_it,) = world.client("auditor").read("tide-plans/", cluster="east", enabled="false")["results"]
    assert all_of_it["hidden_queues"] == 0


def test_where_approval_is_due_the_change_waits(world, plan):
    Cluster.objects.filter(slug="east").update(approval_required=True)
    url = f"/api/v1/tide-plans/{plan.pk}/"
    waiting = world.client("admin").change("PATCH", url, {"enabled": False, "reason": "off"}, If_Match="*")
    assert (waiting.status_code, waiting.json()["state"]) == (202, "waiting")
    plan.refresh_from_db()
    assert plan.enabled
