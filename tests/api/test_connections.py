"""Connecting clusters by REST: tested first, secrets go in and never come out."""

import base64
import logging

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.api.cast import ApiClient
from tests.cluster.answering_server import TOKEN, AnsweringServer, pair, pem
from tidesched_web.api.document.served import document
from tidesched_web.api.v1 import connections
from tidesched_web.audit.models import AuditEntry
from tidesched_web.clusters.connection_selectors import card_quota_enforced, newest_test, volcano_runs
from tidesched_web.clusters.credentials import bearer_token
from tidesched_web.clusters.models import Cluster, ConnectionTest
from tidesched_web.engine.demo import FOUNDING_POLICY
from tidesched_web.jobs import running
from tidesched_web.jobs.models import Job
from tidesched_web.quota.models import PushedObject

WHY = "A new hall."


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = AnsweringServer(tmp_path_factory.mktemp("server"))
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch, server):
    """The job is done where it is waited for: there is no worker here."""
    server.denied = set()
    monkeypatch.setattr(connections.waiting, "wait", lambda job_id, _seconds: running.run(job_id))


@pytest.fixture
def admin(world):
    return ApiClient(token=world.token("admin", "admin"))


def body(server, **changes):
    ca = pem(server.authority[0])
    given = {"name": "Hall 3", "mode": "schedule", "api_url": server.url, "token": TOKEN, "ca_certificate": ca}
    return given | {"reason": WHY} | changes


def test_a_cluster_is_tested_and_connected(admin, server, caplog):
    with caplog.at_level(logging.DEBUG):
        tried = admin.send("clusters/?dry_run=true", body(server))
        assert tried.status_code == 200
        assert tried.json()["test"]["verdict"] == "good"
        assert not Cluster.objects.filter(slug="hall-3").exists()
        made = admin.send("clusters/", body(server))
    assert made.status_code == 201, made.content
    cluster = Cluster.objects.get(slug="hall-3")
    assert (cluster.mode, bearer_token(cluster)) == ("schedule", TOKEN)
    codes = [one["code"] for one in made.json()["test"]["findings"]]
    assert "verbs" in codes
    policy = cluster.policies.get()
    assert (policy.number, policy.valid, policy.text, policy.released_at) == (1, True, FOUNDING_POLICY, None)
    about = admin.get(f"/api/v1/clusters/{cluster.pk}/connection/")
    assert about.json()["kind"] == "token"
    assert about.json()["authorities"][0]["subject"] == "CN=an authority"
    assert about.json()["test"]["verdict"] == "good"
    assert about.json()["last_push"] is None
    PushedObject.objects.create(cluster=cluster, kind="Queue", name="train", pushed_at="2026-03-04T20:11:32Z")
    push = admin.get(f"/api/v1/clusters/{cluster.pk}/connection/").json()["last_push"]
    assert push == {
        "kind": "Queue", "name": "train", "at": "2026-03-04T20:11:32Z", "taken": True, "message": "", "refused": 0
    }  # fmt: skip
    tests = admin.get(f"/api/v1/clusters/{cluster.pk}/connection/tests/")
    jobs = [admin.get(f"/api/v1/jobs/{job.pk}/") for job in Job.objects.filter(kind="connection_test")]
    entries = list(AuditEntry.objects.filter(action="cluster.connect").values())
    assert entries[0]["reason"] == WHY
    logged = "".join(line.getMessage() for line in caplog.records if "django.db" not in line.name)
    for told in (tried, made, about, tests, *jobs):
        assert TOKEN not in told.content.decode()
    assert TOKEN not in logged
    assert TOKEN not in str(entries)
    assert TOKEN not in str(list(Job.objects.values()))
    kept = ConnectionTest.objects.filter(cluster=cluster).first()
    assert kept.credentials is None, "the offer keeps no secret once it is taken"
    assert (card_quota_enforced(cluster), volcano_runs(cluster)) == (None, False)


def test_what_is_missing_is_a_conflict_unless_it_is_accepted(admin, server):
    server.denied = {("create", "pods/binding")}
    refused = admin.send("clusters/", body(server))
    assert refused.status_code == 409
    test = refused.json()["test"]
    (missing,) = [one for one in test["findings"] if one["level"] == "failed"]
    assert missing["message"] == "create pods/binding is not allowed: bind."
    assert "pods/binding" in test["grants"]
    assert not Cluster.objects.filter(name="Hall 3").exists()
    assert admin.send("clusters/", body(server, accept=True)).status_code == 201
    entry = AuditEntry.objects.get(action="cluster.connect")
    assert entry.after["accepted"] == ["verb_missing"]


def test_where_no_worker_tests_a_connection_the_answer_says_so_and_when_to_ask_again(admin, server, world, monkeypatch):
    monkeypatch.setattr(connections.waiting, "wait", lambda _job_id, _seconds: None)
    given = {key: value for key, value in body(server).items() if key not in ("name", "mode")}
    made = admin.send("clusters/", body(server))
    replaced = admin.change("PUT", f"clusters/{world.clusters['east'].pk}/connection/", given)
    refusals = document()["components"]["responses"]
    form = refusals["Unavailable"]["content"]["application/problem+json"]["schema"]
    for answer in (made, replaced):
        assert (answer.status_code, answer.json()["test"]["verdict"]) == (503, "running")
        assert int(answer.headers["Retry-After"]) > 0
        Draft202012Validator(form | {"components": document()["components"]}).validate(answer.json())
    assert "no worker" in refusals["Unavailable"]["description"]
    assert not Cluster.objects.filter(slug="hall-3").exists()


def test_a_second_scheduler_is_never_accepted(admin, server):
    deployment = {"metadata": {"namespace": "v", "name": "volcano-scheduler"}, "status": {"readyReplicas": 1}}
    server.objects["/apis/apps/v1/deployments"] = {"items": [deployment]}
    try:
        assert admin.send("clusters/", body(server, accept=True)).status_code == 409
        made = admin.send("clusters/", body(server, accept=True, mode="quota"))
        assert made.status_code == 201
        pk = made.json()["id"]
        assert volcano_runs(Cluster.objects.get(pk=pk)) is True
        assert admin.send(f"clusters/{pk}/connection/test/", {"mode": "schedule"}).status_code == 202
        running.run(Job.objects.order_by("-pk").first().pk)
        patch = {"mode": "schedule", "reason": WHY}
        changed = admin.change("PATCH", f"clusters/{pk}/", patch, If_Match=made.headers["ETag"])
        assert changed.status_code == 409
        assert changed.json()["errors"][0]["pointer"] == "/mode"
    finally:
        del server.objects["/apis/apps/v1/deployments"]


@pytest.mark.parametrize("tested", ["observe", "quota"])
def test_a_volcano_that_a_test_of_another_mode_found_refuses_mode_schedule(admin, server, tested):
    deployment = {"metadata": {"namespace": "v", "name": "volcano-scheduler"}, "status": {"readyReplicas": 1}}
    server.objects["/apis/apps/v1/deployments"] = {"items": [deployment]}
    try:
        made = admin.send("clusters/", body(server, accept=True, mode=tested))
        pk, patch = made.json()["id"], {"mode": "schedule", "reason": WHY}
        changed = admin.change("PATCH", f"clusters/{pk}/", patch, If_Match=made.headers["ETag"])
        assert (changed.status_code, Cluster.objects.get(pk=pk).mode) == (409, tested)
        assert changed.json()["errors"][0]["pointer"] == "/mode"
        # A test that did not come as far as Volcano takes nothing of that back.
        ConnectionTest.objects.create(
            cluster_id=pk, mode="schedule", actor="x", findings=[], finished_at=Cluster.objects.get(pk=pk).created_at
        )
        changed = admin.change("PATCH", f"clusters/{pk}/", patch, If_Match=made.headers["ETag"])
        assert changed.status_code == 409
        del server.objects["/apis/apps/v1/deployments"]
        assert admin.send(f"clusters/{pk}/connection/test/", {"mode": tested}).status_code == 202
        running.run(Job.objects.order_by("-pk").first().pk)
        changed = admin.change("PATCH", f"clusters/{pk}/", patch, If_Match=made.headers["ETag"])
        assert (changed.status_code, Cluster.objects.get(pk=pk).mode) == (200, "schedule")
    finally:
        server.objects.pop("/apis/apps/v1/deployments", None)


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"api_url": "https://169.254.169.254"}, "/api_url"),
        ({"api_url": "https://metadata.google.internal"}, "/api_url"),
        ({"api_url": "http://10.0.0.1"}, "/api_url"),
        ({"api_url": "https://ann:secret@10.0.0.1"}, "/api_url"),
        ({"token": "two words"}, "/token"),
        ({"token": ""}, "/token"),
        ({"ca_certificate": "no certificate"}, "/ca_certificate"),
        ({"tls_server_name": "https://api.example.com:6443/"}, "/tls_server_name"),
        ({"tls_server_name": "api.example.com:6443"}, "/tls_server_name"),
        ({"kubeconfig": "kind: Config"}, "/api_url"),
        ({"api_url": None, "token": None, "ca_certificate": None, "kubeconfig": "{"}, "/kubeconfig"),
        ({"mode": "rule"}, "/mode"),
        ({"reason": " "}, "/reason"),
    ],
)
def test_bad_input_names_its_field(admin, server, changes, pointer):
    wanted = {name: value for name, value in body(server, **changes).items() if value is not None}
    refused = admin.send("clusters/", wanted)
    assert refused.status_code == 400, refused.content
    assert refused.json()["errors"][0]["pointer"] == pointer
    assert "ann:secret" not in refused.content.decode()
    assert TOKEN not in refused.content.decode()


def test_the_wrong_authority_is_said(admin, server):
    refused = admin.send("clusters/", body(server, ca_certificate=pem(pair("other")[0])))
    assert refused.status_code == 409
    assert refused.json()["test"]["findings"][-1]["code"] == "wrong_authority"


def test_what_stands_around_an_authority_is_left_out(admin, server, monkeypatch):
    authority = pem(server.authority[0])
    text = "\ufeff# Főtanúsítvány\r\nBag Attributes\r\n" + authority.replace("\n", "\r\n")
    made = admin.send("clusters/", body(server, ca_certificate=text))
    assert made.status_code == 201, made.content
    cluster = Cluster.objects.get(slug="hall-3")
    assert cluster.ca_certificate == authority
    data = base64.encodebytes(text.encode()).decode()
    of_cluster = {"server": "https://10.0.0.1:1", "certificate-authority-data": data}
    file = yaml.safe_dump(
        {
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": of_cluster}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
        }
    )
    given = {"name": "Hall 4", "mode": "observe", "reason": WHY, "kubeconfig": file}
    monkeypatch.setattr(connections.waiting, "wait", lambda *_: None)
    tried = admin.send("clusters/?dry_run=true", given)
    assert tried.status_code == 200, tried.content
    assert ConnectionTest.objects.latest("pk").ca_certificate == authority


def test_replace_test_and_disconnect(admin, server, world):
    cluster = world.clusters["east"]
    address = f"clusters/{cluster.pk}/connection/"
    given = {key: value for key, value in body(server).items() if key not in ("name", "mode")}
    done = admin.change("PUT", address, given)
    assert done.status_code == 200, done.content
    cluster.refresh_from_db()
    assert bearer_token(cluster) == TOKEN
    server.denied = {("list", "nodes")}
    begun = admin.send(f"{address}test/", {})
    assert begun.status_code == 202
    running.run(Job.objects.order_by("-pk").first().pk)
    assert newest_test(cluster).verdict == "failed"
    gone = admin.change("DELETE", address, {"reason": WHY})
    assert gone.status_code == 200
    assert gone.json()["disconnected_at"]
    cluster.refresh_from_db()
    assert cluster.credentials is None
    assert admin.send(f"{address}test/", {}).status_code == 409
    assert admin.change("PUT", address, given | {"accept": True}).status_code == 200
    cluster.refresh_from_db()
    assert cluster.disconnected_at is None
    actions = list(AuditEntry.objects.filter(object_id=str(cluster.pk)).values_list("action", flat=True))
    assert {"cluster.set_connection", "cluster.disconnect"} <= set(actions)


def test_settings_need_the_version_that_was_looked_at(admin, world):
    cluster = world.clusters["east"]
    address = f"clusters/{cluster.pk}/"
    patch = {"name": "East hall", "evict_share_of_training": 0.25, "reason": WHY}
    assert admin.change("PATCH", address, patch).status_code == 428
    etag = admin.get(f"/api/v1/{address}").headers["ETag"]
    changed = admin.change("PATCH", address, patch, If_Match=etag)
    assert changed.status_code == 200, changed.content
    assert changed.json()["guards"]["evict_share_of_training"] == 0.25
    assert admin.change("PATCH", address, patch, If_Match=etag).status_code == 412
    entry = AuditEntry.objects.get(action="cluster.set_settings")
    assert (entry.before["name"], entry.after["name"]) == (cluster.name, "East hall")


def test_a_cluster_has_a_time_zone_of_its_own(admin, world):
    cluster = world.clusters["east"]
    address = f"clusters/{cluster.pk}/"
    before = admin.get(f"/api/v1/{address}")
    assert (before.json()["time_zone"], before.json()["local_time_zone"]) == ("", "UTC")
    patch = {"time_zone": "America/Bogota", "reason": WHY}
    changed = admin.change("PATCH", address, patch, If_Match=before.headers["ETag"])
    assert (changed.json()["time_zone"], changed.json()["local_time_zone"]) == ("America/Bogota", "America/Bogota")
    etag = changed.headers["ETag"]
    wrong = admin.change("PATCH", address, patch | {"time_zone": "Bogota"}, If_Match=etag)
    assert wrong.status_code in (400, 422)
    assert wrong.json()["errors"][0]["pointer"] == "/time_zone"
    stranger = ApiClient(user=world.users["stranger"])
    assert stranger.change("PATCH", address, patch, If_Match=etag).status_code in (403, 404)
    entry = AuditEntry.objects.get(action="cluster.set_settings")
    assert (entry.before["time_zone"], entry.after["time_zone"]) == ("", "America/Bogota")


def test_nobody_else_connects_or_looks(world, server):
    pk = world.clusters["east"].pk
    for name in ("owner", "auditor"):
        client = ApiClient(user=world.users[name])
        assert client.send("clusters/", body(server)).status_code == 403
        assert client.send(f"clusters/{pk}/connection/test/", {}).status_code == 403
        assert client.change("DELETE", f"clusters/{pk}/connection/", {"reason": WHY}).status_code == 403
    assert ApiClient(user=world.users["auditor"]).get(f"/api/v1/clusters/{pk}/connection/").status_code == 200
    assert ApiClient(user=world.users["owner"]).get(f"/api/v1/clusters/{pk}/connection/").status_code == 403
    assert ApiClient(user=world.users["stranger"]).get(f"/api/v1/clusters/{pk}/connection/").status_code == 404
    small = ApiClient(token=world.token("admin", "cluster:read"))
    assert small.send("clusters/", body(server)).status_code == 403
    assert not ConnectionTest.objects.exists()
