"""`clusters/{id}/tree/`: the whole tree out as JSON and YAML, compared, and made what a file says as one change."""

from __future__ import annotations

import pytest

from tests.api.cast import A100, H200, ApiClient
from tidesched_web.changes import tree_file
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.selectors import read_tree
from tidesched_web.clusters.models import Cluster
from tidesched_web.quota.models import Queue


@pytest.fixture
def place(world):
    return f"clusters/{world.clusters['east'].pk}/tree/"


def with_cards(tree, cards):
    """The same tree with other cards for acme's queue of inference."""
    queues = {**tree["queues"], "acme-online": {**tree["queues"]["acme-online"], "card_quota": cards}}
    return {**tree, "queues": queues}


def test_the_tree_goes_out_as_json_and_as_the_very_file_of_the_command(world, place):
    admin, east = world.client("admin"), world.clusters["east"]
    answer, file = admin.get(f"/api/v1/{place}"), admin.get(f"/api/v1/{place}", {"format": "yaml"})
    assert file.content.decode() == tree_file.dumps(read_tree(east), cluster="east")
    assert file.headers["Content-Type"] == "application/yaml; charset=utf-8"
    assert answer.headers["ETag"] == file.headers["ETag"]
    tree = answer.json()
    assert (tree["format"], tree["cluster"]) == (1, "east")
    assert tree["queues"]["acme-online"]["card_quota"] == {H200: 6, A100: 1}
    assert tree_file.documents_of(tree) == read_tree(east)
    refused = admin.get(f"/api/v1/{place}", {"format": "csv"})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/format")


def test_a_reader_gets_what_is_in_sight_and_a_stranger_nothing(world, place):
    tree = world.client("teammate").read(place)
    assert sorted(tree["queues"]) == ["acme-online", "acme-train"]
    assert sorted(tree["tenants"]) == ["acme"]
    body = {"tree": {"format": 1}, "reason": "gone"}
    for name, statuses in (
        ("stranger", (404, 404)), ("teammate", (200, 403)), ("auditor", (200, 403)), ("anonymous", (401, 401)),
    ):  # fmt: skip
        client = world.client(name)
        found = client.get(f"/api/v1/{place}").status_code, client.send(place, body, If_Match="*").status_code
        assert found == statuses, name
    reads = ApiClient(token=world.token("owner", "quota:read"))
    assert reads.send(place, body, If_Match="*").json()["code"] == "missing_scope"
    nodes = ApiClient(token=world.token("owner", "cluster:read"))
    assert nodes.get(f"/api/v1/{place}").json()["code"] == "missing_scope"
    assert not QuotaChange.objects.exists()


@pytest.mark.parametrize("kind", ["tree", "file"])
def test_a_file_is_compared_and_carried_out_as_one_change(world, place, kind):
    owner = world.client("owner")
    answer = owner.get(f"/api/v1/{place}")
    wanted, etag = with_cards(answer.json(), {H200: 7}), answer.headers["ETag"]
    given = wanted if kind == "tree" else tree_file.dumps(tree_file.documents_of(wanted), cluster="east")
    body = {kind: given, "reason": "more chat"}
    tried = owner.send(f"{place}?dry_run=true", body)
    assert (tried.status_code, tried.json()["dry_run"], QuotaChange.objects.count()) == (200, True, 0)
    lines = [(row["object"], row["field"], row["before"], row["after"]) for row in tried.json()["plan"]["fields"]]
    assert lines == [
        ("queue/acme-online", f"/card_quota/{A100}", 1, None), ("queue/acme-online", f"/card_quota/{H200}", 6, 7),
    ]  # fmt: skip
    assert owner.send(place, body).json()["code"] == "precondition_required"
    done, again = (owner.send(place, body, If_Match=etag, Idempotency_Key="file-7") for _ in range(2))
    assert (done.status_code, again.status_code) == (200, 200), done.content
    assert again.headers["Idempotency-Replayed"] == "true"
    assert done.json() == wanted == owner.read(place)
    change = QuotaChange.objects.get()
    assert (change.state, change.source, change.reason) == ("applied", "import", "more chat")
    stale = owner.send(place, {kind: given, "reason": "once more"}, If_Match=etag)
    assert (stale.status_code, stale.json()["etag"]) == (412, done.headers["ETag"])
    same = owner.send(place, body, If_Match=done.headers["ETag"])
    assert (same.status_code, QuotaChange.objects.count()) == (200, 1)


def test_what_a_file_does_not_name_goes_or_stays(world, place):
    admin = world.client("admin")
    tree = admin.read(place)
    part = {"format": 1, "queues": {"acme-online": {**tree["queues"]["acme-online"], "card_quota": {H200: 5}}}}
    body = {"tree": part, "reason": "less"}
    gone = admin.send(f"{place}?dry_run=true", body).json()["plan"]["fields"]
    assert "queue/rival-online" in {row["object"] for row in gone}
    kept = admin.send(place, {**body, "keep": True}, If_Match="*")
    assert kept.json() == with_cards(tree, {H200: 5})
    assert Queue.objects.filter(name="rival-online").exists()


def test_where_a_second_person_is_needed_the_change_waits(world, place):
    Cluster.objects.update(approval_required=True)
    owner = world.client("owner")
    answer = owner.send(place, {"tree": with_cards(owner.read(place), {H200: 7}), "reason": "more chat"}, If_Match="*")
    assert (answer.status_code, answer.json()["state"]) == (202, "waiting")
    assert answer.headers["Location"] == answer.json()["url"]
    assert owner.read(place)["queues"]["acme-online"]["card_quota"] == {H200: 6, A100: 1}


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"file": "format: 1\nqueus: {}\n"}, "invalid_tree", "/file/queus"),
        ({"file": "format: [1\n"}, "invalid_tree", "/file"),
        ({"tree": {"format": 2}}, "invalid_tree", "/tree/format"),
        ({"tree": {"format": 1, "queues": {"a": {"wieght": 1}}}}, "invalid_tree", "/tree/queues/a/wieght"),
        ({"tree": []}, "invalid", "/tree"),
        ({}, "against_rules", "/tree"),
        ({"file": "format: 1\n", "tree": {"format": 1}}, "against_rules", "/tree"),
    ],
)
def test_what_is_wrong_is_named_at_its_place(world, place, body, code, pointer):
    refused = world.client("admin").send(place, {**body, "reason": "drill"}, If_Match="*")
    found = refused.json()
    assert (refused.status_code, found["code"], found["errors"][0]["pointer"]) == (400, code, pointer)


def test_what_the_rules_do_not_allow_is_refused_whole(world, place):
    owner = world.client("owner")
    tree = owner.read(place)
    body = {"tree": with_cards(tree, {H200: 9}), "reason": "too many"}
    refused = owner.send(place, body, If_Match="*")
    assert (refused.status_code, refused.json()["code"]) == (422, "quota_breach")
    assert refused.json()["errors"][0]["pointer"] == f"/tree/queues/acme-online/card_quota/{H200}"
    tried = owner.send(f"{place}?dry_run=true", body).json()["plan"]["errors"]
    assert tried[0]["pointer"] == f"/tree/queues/acme-online/card_quota/{H200}"
    others = {**tree, "tenants": {"acme": {**tree["tenants"]["acme"], "quota": {}}}}
    assert owner.send(place, {"tree": others, "reason": "no ceiling"}, If_Match="*").status_code == 403
    assert (owner.read(place), QuotaChange.objects.count()) == (tree, 0)
