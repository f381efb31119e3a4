"""Tide plans by REST: ETag, merge patch, dry run, errors at their moment; base and effective quota of queues."""

import datetime as dt

import pytest
from jsonschema import Draft202012Validator

from tests.api.addresses import NIGHT
from tests.api.cast import H200
from tests.quota_writes import write_tide_plan
from tidesched_web.api.document.served import document
from tidesched_web.audit.models import AuditEntry
from tidesched_web.clusters.models import Cluster
from tidesched_web.quota import tide_overlaps
from tidesched_web.quota.models import TidePlan, TideStep

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


def test_a_dry_run_keeps_no_key_so_that_the_plan_is_made_under_it(world):
    admin = world.client("admin")
    body = {"cluster": "east", "name": "nights", "layers": [NIGHT], "reason": "less at night"}
    tried = admin.send("tide-plans/?dry_run=true", body, Idempotency_Key="nights-1")
    assert (tried.status_code, tried.json()["dry_run"], TidePlan.objects.count()) == (200, True, 0)
    made = [admin.send("tide-plans/", body, Idempotency_Key="nights-1") for _ in range(2)]
    assert [answer.status_code for answer in made] == [201, 201], made[0].content
    assert (made[1].headers["Idempotency-Replayed"], TidePlan.objects.count()) == ("true", 1)


def test_a_plan_is_deleted_for_the_reason_in_the_address(world, plan):
    gone = world.client("admin").delete(f"/api/v1/tide-plans/{plan.pk}/?reason=over", headers={"If-Match": "*"})
    assert (gone.status_code, AuditEntry.objects.get(action="tide_plan.delete").reason) == (204, "over")


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
    # The base is written to the cluster again, so the queue's object is among what changes.
    assert [row["name"] for row in done.json()["plan"]["objects"]] == ["acme-online"]
    plan.refresh_from_db()
    assert (plan.enabled, plan.version) == (True, 1)


def test_another_plan_of_the_same_figure_and_hours_is_a_warning(world, plan):
    admin = world.client("admin")
    body = {"cluster": "east", "name": "more", "enabled": True, "reason": "x", "layers": [ALWAYS]}
    shared = {"first": "more", "last": "nights", "by": "name", "decides": None, "queue": "acme-online", "card": H200}
    planned = admin.send("tide-plans/?dry_run=true", body).json()["plan"]["warnings"]
    (warning,) = [each for each in planned if each["code"] == "plans_overlap"]
    assert shared.items() <= warning.items()
    assert (warning["code"], warning["object"]) == ("plans_overlap", "tide-plan/more")
    made = admin.send("tide-plans/", body).json()
    (warning,) = made["warnings"]
    assert shared.items() <= warning.items()
    exact = {"layers": [ALWAYS | {"quota": {"acme-online": {H200: {"set": 4}}}}], "position": 3, "reason": "x"}
    changed = admin.change("PATCH", made["url"], exact, If_Match="*").json()
    (warning,) = changed["warnings"]
    assert (warning["first"], warning["decides"], warning["by"]) == ("nights", "more", "position")
    assert [row["warnings"] for row in world.client("owner").read("tide-plans/")["results"]] == [[warning]] * 2
    assert world.client("stranger").read("tide-plans/")["results"] == []
    off = admin.change("PATCH", f"{made['url']}?dry_run=true", {"enabled": False, "reason": "x"}).json()
    assert "plans_overlap" not in [each["code"] for each in off["plan"]["warnings"]]


def test_overlaps_of_a_list_are_worked_out_once_for_all_of_its_plans(world, plan, monkeypatch):
    """Of each plan anew a list of many plans would take the square of their number, for who may only read."""
    made = []

    class Counted(tide_overlaps._Windows):
        def __init__(self, *given):
            made.append(1)
            super().__init__(*given)

    for number in range(9):
        layer = ALWAYS | {"quota": {"acme-online": {f"CARD-{number}": {"add": 1}}}}
        TidePlan.objects.create(cluster=world.clusters["east"], name=f"plan-{number}", enabled=True, layers=[layer])
    monkeypatch.setattr(tide_overlaps, "_Windows", Counted)
    monkeypatch.setattr(tide_overlaps, "_together", lambda *_given: pytest.fail("no two turn the same figure"))
    assert len(world.client("admin").read("tide-plans/")["results"]) == 10
    assert len(made) == 10


def test_the_steps_of_a_plan_are_read_within_sight(world, plan):
    moment = dt.datetime(2026, 3, 4, 22, tzinfo=dt.UTC)
    for name in ("acme-online", "rival-train"):
        TideStep.objects.create(
            cluster=world.clusters["east"], queue=world.queues[name], card=H200, plans=["nights"], since=moment,
            layers=["nights: always"], at=moment, answered_at=moment, before=6, after=5, wanted=5, answer="taken",
            taken_back=[{"plan": "nights", "layer": "always", "by": "mei", "opens_next": "2026-03-05T22:00:00+00:00"}],
        )  # fmt: skip
    path = f"tide-plans/{plan.pk}/steps/"
    both = world.client("auditor").read(path)["results"]
    assert [row["queue"] for row in both] == ["rival-train", "acme-online"], "the newest first"
    assert {"before": 6, "after": 5, "wanted": 5, "answer": "taken", "since": "2026-03-04T22:00:00Z"}.items() <= both[
        0
    ].items()
    assert both[0]["taken_back"] == [
        {"plan": "nights", "layer": "always", "by": "mei", "opens_next": "2026-03-05T22:00:00Z"}
    ]
    assert [row["queue"] for row in world.client("owner").read(path)["results"]] == ["acme-online"]
    assert world.client("stranger").get(f"/api/v1/{path}").status_code == 404
    assert len(world.client("auditor").read(path, limit="1")["results"]) == 1


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
