"""How clusters are reached × everybody; connecting one, replacing and cutting its connection in the browser's words."""

from __future__ import annotations

import base64
import datetime as dt
import logging
import re
from pathlib import Path

import pytest
import yaml
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from tests.cluster.answering_server import TOKEN, AnsweringServer, key_pem, pair, pem
from tests.web.console import world as story
from tests.web.console.cast import empty_cluster
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.models import Membership, Tenant, TenantRole, User
from tidesched_web.audit.models import AuditEntry
from tidesched_web.clusters import connection_services
from tidesched_web.clusters.connection_input import by_kubeconfig, by_token
from tidesched_web.clusters.credentials import bearer_token, connection_of
from tidesched_web.clusters.kubernetes.in_cluster import in_cluster_connection
from tidesched_web.clusters.models import Cluster, ConnectionTest
from tidesched_web.jobs import running, tasks
from tidesched_web.jobs.models import Job
from tidesched_web.scheduling.models import ClusterReach, ReachState

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).parents[3]
SECRET = "a-secret-of-the-browser"
REASON = {"reason": "drill"}
GIVEN = {"api_url": "https://10.0.0.9:6443", "token": SECRET, "mode": "observe"}
SETTINGS = {
    "name": "Demo", "mode": "observe", "scheduler_names": "tidesched", "session_period_seconds": "1",
    "volcano_namespace": "volcano-system", "volcano_config_map": "volcano-scheduler-configmap",
    "evict_gangs_per_minute": "60", "evict_cards_per_minute": "600", "evict_share_of_training": "0.5",
}  # fmt: skip


def offer(cluster: Cluster | None = None) -> ConnectionTest:
    given = by_token(api_url=GIVEN["api_url"], token=SECRET)
    return connection_services.offer(offered=given, mode="observe", actor="tests", owner_id=None, cluster=cluster)


@pytest.fixture
def world(world) -> story.World:
    Cluster.objects.update(simulated=False)
    world.lead = User.objects.create(username="lead")
    Membership.objects.create(user=world.lead, tenant=Tenant.objects.get(slug="search"), role=TenantRole.ADMIN)
    world.named = {"offer": offer().pk, "other": offer(world.cluster).pk}
    return world


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = AnsweringServer(tmp_path_factory.mktemp("server"))
    yield made
    made.stop()


def kubeconfig(server: AnsweringServer) -> str:
    def packed(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    certificate, key = pair("tidesched", issuer=pair("clients"))
    cluster = {"server": "https://10.0.0.9:6443", "certificate-authority-data": packed(pem(server.authority[0]))}
    users = {
        "token": {"token": SECRET},
        "pair": {"client-certificate-data": packed(pem(certificate)), "client-key-data": packed(key_pem(key))},
        "program": {"exec": {"command": "rm"}},
    }
    document = {
        "kind": "Config",
        "clusters": [{"name": "east", "cluster": cluster}],
        "users": [{"name": name, "user": user} for name, user in users.items()],
        "contexts": [{"name": f"by-{name}", "context": {"cluster": "east", "user": name}} for name in users],
        "current-context": "by-token",
    }
    return yaml.safe_dump(document)


def test_a_kubeconfig_is_uploaded_and_another_context_chosen(world, server) -> None:
    client, text = client_of(world.admin), kubeconfig(server)
    refused = client.post("/new/cluster/", {"kubeconfig": text, "context": "by-program", "mode": "observe"})
    assert refused.status_code == 400
    assert "would run a program on this server" in refused.content.decode()
    chinese = {"kubeconfig": text, "context": "by-program", "mode": "observe"}
    refused = client.post("/new/cluster/", chinese, headers={"accept-language": "zh-hans"})
    assert "会在本服务器上运行程序" in refused.content.decode()
    refused = client.post("/new/cluster/", {"kubeconfig": text, "context": "nowhere", "mode": "observe"})
    assert "It has: by-token, by-pair, by-program." in refused.content.decode()
    lost = yaml.safe_load(text) | {"current-context": "gone"}
    lost["contexts"] = lost["contexts"][:1]
    refused = client.post("/new/cluster/", {"kubeconfig": yaml.safe_dump(lost), "mode": "observe"})
    assert refused.status_code == 400
    said = "The file&#x27;s current-context &#x27;gone&#x27; is none of its contexts. It has: by-token."
    assert said in refused.content.decode(), "the only context is not what the file means"
    file = SimpleUploadedFile("config", text.encode())
    taken = client.post("/new/cluster/", {"file": file, "mode": "quota"})
    page = client.get(taken["Location"]).content.decode()
    assert "by-program" in page
    assert SECRET not in page
    other = client.post(taken["Location"], {"act": "context", "context": "by-pair"})
    assert other["Location"] != taken["Location"]
    page = client.get(other["Location"]).content.decode()
    assert "Client certificate" in page
    assert "BEGIN" not in page
    early = client.post(other["Location"], REASON | {"name": "Hall 4"})
    assert early.status_code == 400, "the test is not over, and the form does not accept that"
    made = client.post(other["Location"], REASON | {"name": "Hall 4", "accept": "on"})
    assert made["Location"] == "/clusters/hall-4/connection/"
    cluster = Cluster.objects.get(slug="hall-4")
    assert (cluster.mode, cluster.connection_kind, cluster.credentials_subject) == ("quota", "certificate", "tidesched")
    assert "BEGIN" in connection_of(cluster).client_key
    assert not ConnectionTest.objects.filter(credentials__isnull=False).exclude(pk__in=world.named.values()).exists()
    assert "Hall 4" in client.get("/clusters/demo/").content.decode(), "the switcher lists it"


def test_bytes_of_a_file_are_read_or_refused_with_the_line(world, server) -> None:
    client = client_of(world.admin)

    def sent(raw: bytes):
        return client.post("/new/cluster/", {"file": SimpleUploadedFile("config", raw), "mode": "quota"})

    text = kubeconfig(server) + "# Főtanúsítvány\n"
    for encoding in ("utf-8-sig", "utf-16"):
        taken = sent(text.encode(encoding))
        assert taken.status_code == 302, taken.content.decode()
        offered = ConnectionTest.objects.latest("pk")
        assert offered.ca_certificate == pem(server.authority[0])
    refused = sent(text.encode("iso-8859-2"))
    assert refused.status_code == 400
    line = text.count("\n")
    assert f"the file is no UTF-8 text (line {line}): save it as UTF-8" in refused.content.decode()


def test_the_test_tells_what_is_missing_and_what_grants_it(world, server) -> None:
    client = client_of(world.admin)
    server.denied = {("create", "queues"), ("patch", "queues")}
    given = {"api_url": server.url, "token": TOKEN, "ca_certificate": pem(server.authority[0]), "mode": "quota"}
    where = client.post("/new/cluster/?way=token", given)["Location"]
    job = Job.objects.get(kind="connection_test")
    assert TOKEN not in str(job.params)
    assert running.run(job.pk) == "done"
    page = client.get(where).content.decode()
    assert "create queues.scheduling.volcano.sh is not allowed: push quotas." in page
    assert "deploy/rbac/quota.yaml" in page
    assert "kind: ClusterRole" in page
    assert TOKEN not in page
    unread = client.post(where, REASON | {"name": "Hall 5"}).content.decode()
    assert "mend it, or say that you know" in unread
    assert "changed meanwhile" not in unread
    client.post(where, REASON | {"name": "Hall 5", "accept": "on"})
    overview = client.get("/clusters/hall-5/").content.decode()
    assert "something is missing" in overview
    assert "something is missing" not in client_of(world.member).get("/clusters/demo/").content.decode()
    assert client.get("/clusters/").content.decode().count("state tone-failed") >= 1
    server.denied = set()
    client.post("/clusters/hall-5/connection/test/", {})
    running.run(Job.objects.order_by("-pk").first().pk)
    assert "All 3" not in client.get("/clusters/hall-5/connection/").content.decode()
    assert "something is missing" not in client.get("/clusters/hall-5/").content.decode()
    server.denied = {("create", "pods/binding")}
    client.post("/clusters/hall-5/connection/test/", {"mode": "schedule"})
    running.run(Job.objects.order_by("-pk").first().pk)
    assert "create pods/binding is not allowed" in client.get("/clusters/hall-5/connection/").content.decode()
    other = client.get("/clusters/hall-5/").content.decode()
    assert "something is missing" not in other, "that was a test for another mode than the cluster's"


def test_the_own_pod_is_tested_and_refused_clearly_where_there_is_none(world, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(in_cluster_connection, "__defaults__", (tmp_path,))
    client = client_of(world.admin)
    assert client.get("/new/cluster/?way=own-pod").status_code == 200
    where = client.post("/new/cluster/?way=own-pod", {"mode": "observe"})["Location"]
    assert running.run(Job.objects.get(kind="connection_test").pk) == "done"
    page = client.get(where).content.decode()
    assert "workers run in no pod of a cluster" in page
    assert client.post(where, REASON | {"name": "Hall 6"}).status_code == 400, "the form does not accept that"
    page = client.get(where, headers={"accept-language": "zh-hans"}).content.decode()
    assert "不在任何集群的 Pod 中" in page


@pytest.mark.parametrize("proxy", ["http://ann:sesame@127.0.0.1:1", "http://ann:12#sesame@proxy:3128"])
def test_a_proxy_that_cannot_be_used_is_said_without_its_password(world, monkeypatch, caplog, proxy) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    client = client_of(world.admin)
    with caplog.at_level(logging.DEBUG):
        where = client.post("/new/cluster/?way=token", GIVEN)["Location"]
        assert running.run(Job.objects.get(kind="connection_test").pk) == "done"
        page = client.get(where).content.decode()
    assert "The proxy that HTTPS_PROXY names cannot be used, or lets nothing through." in page
    assert "name the cluster&#x27;s host in NO_PROXY" in page
    assert "sesame" not in page + caplog.text + str(list(ConnectionTest.objects.values("findings")))


@pytest.mark.parametrize("mode", ["observe", "quota", "schedule"])
def test_the_rights_of_each_mode_are_a_file_for_kubectl(world, mode) -> None:
    client = client_of(world.admin)
    where = f"/new/cluster/rights/{mode}.yaml"
    assert where in client.get("/new/cluster/?way=token").content.decode()
    given = client.get(where)
    assert given["Content-Disposition"] == f'attachment; filename="{mode}.yaml"'
    assert given.content.decode() == (ROOT / "deploy" / "rbac" / f"{mode}.yaml").read_text()
    assert client.get("/new/cluster/rights/all.yaml").status_code == 404
    assert client_of(world.member).get(where).status_code == 403


def test_where_volcano_has_its_configuration_is_a_setting(world) -> None:
    client = client_of(world.admin)
    version = {"version": str(Cluster.objects.get(slug="demo").version)}
    wrong = client.post("/clusters/demo/settings/", SETTINGS | REASON | version | {"volcano_config_map": "A b"})
    assert "no name of a Kubernetes object" in wrong.content.decode()
    elsewhere = {"volcano_namespace": "batch-system", "volcano_config_map": "scheduler"}
    assert client.post("/clusters/demo/settings/", SETTINGS | REASON | version | elsewhere).status_code == 302
    cluster = Cluster.objects.get(slug="demo")
    assert (cluster.volcano_namespace, cluster.volcano_config_map) == ("batch-system", "scheduler")


def test_offers_are_forgotten(world) -> None:
    old = offer()
    ConnectionTest.objects.filter(pk=old.pk).update(started_at=timezone.now() - dt.timedelta(hours=2))
    tasks.sweep()
    old.refresh_from_db()
    assert old.credentials is None
    client = client_of(world.admin)
    assert "give it again" in client.get(f"/new/cluster/{old.pk}/").content.decode()
    body = REASON | {"name": "Hall 6", "accept": "on"}
    assert client.post(f"/new/cluster/{old.pk}/", body).status_code == 400
    ConnectionTest.objects.filter(pk=old.pk).update(started_at=timezone.now() - dt.timedelta(days=8))
    connection_services.forget_offers()
    assert client.get(f"/new/cluster/{old.pk}/").status_code == 404


def test_disconnected_and_connected_again(world) -> None:
    client, cluster = client_of(world.admin), world.cluster
    client.post("/clusters/demo/connection/disconnect/", REASON)
    cluster.refresh_from_db()
    assert cluster.disconnected_at is not None
    assert bearer_token(cluster) == ""
    assert "Connect again" in client.get("/clusters/demo/").content.decode()
    where = client.post("/clusters/demo/connection/replace/?way=token", GIVEN)["Location"]
    client.post(where, REASON | {"accept": "on"})
    cluster.refresh_from_db()
    assert cluster.disconnected_at is None
    assert bearer_token(cluster) == SECRET


def test_a_disconnected_cluster_is_removed_with_all_that_is_known_of_it(world) -> None:
    client, pk = client_of(world.admin), world.cluster.pk
    body = REASON | {"name": world.cluster.name}
    assert "first" in client.post("/clusters/demo/connection/remove/", body).content.decode()
    client.post("/clusters/demo/connection/disconnect/", REASON)
    assert "/connection/remove/" in client.get("/clusters/demo/connection/").content.decode()
    assert client.post("/clusters/demo/connection/remove/", REASON | {"name": "other"}).status_code == 400
    removed = client.post("/clusters/demo/connection/remove/", body)
    assert removed.status_code == 302, removed.content
    assert not Cluster.objects.filter(pk=pk).exists()
    entry = AuditEntry.objects.get(action="cluster.remove")
    assert entry.after["went_along"]["queue"] > 5
    assert client.get("/clusters/").status_code == 200
    assert client.get("/audit/").status_code == 200


def test_names_that_are_wrong_are_said_at_their_fields() -> None:
    text = yaml.safe_dump({"kind": "Config", "contexts": [{"name": "a"}, {"name": "b"}]})
    with pytest.raises(Exception, match="name the context to use: a, b"):
        by_kubeconfig(text)


def test_a_cluster_without_a_test_says_when_it_was_reached_last(world) -> None:
    ConnectionTest.objects.filter(cluster=world.cluster).delete()
    empty_cluster("hall")

    def read(path: str) -> str:
        page = client_of(world.admin).get(path).content.decode()
        return " ".join(re.sub(r"<[^>]+>", " ", page).split())

    for path in ("/clusters/demo/connection/", "/clusters/"):
        assert re.search(r"Reached last session \d+ \w+ ago", read(path)), path
    assert "Last reached no session yet" in read("/clusters/hall/connection/")
    assert "Test: none yet" in read("/clusters/")
    lost = {"state": ReachState.UNREACHABLE, "since": timezone.now()}
    ClusterReach.objects.update_or_create(cluster=world.cluster, defaults=lost)
    for path in ("/clusters/demo/connection/", "/clusters/"):
        assert re.search(r"The API server does not answer. last session \d+ \w+ ago", read(path)), path


def finished(test: ConnectionTest, step: str, code: str) -> ConnectionTest:
    found = [
        {
            "step": step,
            "code": code,
            "level": "failed",
            "values": {"url": test.api_url, "version": "1.20", "least": "1.22"},
        }
    ]
    ConnectionTest.objects.filter(pk=test.pk).update(findings=found, percent=100, finished_at=timezone.now())
    return ConnectionTest.objects.get(pk=test.pk)


def correction(client, test: ConnectionTest) -> tuple[str, str]:
    """The address and the word of the button that leads back to the form; empty without one."""
    where = f"/clusters/demo/connection/replace/{test.pk}/" if test.cluster_id else f"/new/cluster/{test.pk}/"
    page = client.get(where).content.decode()
    found = re.search(r'<a class="btn btn-primary" href="([^"]*offer=[^"]*)">(.*?)</a>', page, re.DOTALL)
    if not found:
        return "", ""
    word = " ".join(re.sub(r"<[^>]+>", " ", found[2]).split())
    assert '<button class="btn" type="submit">' in page, "saving does not invite after a failed test"
    return found[1].replace("&amp;", "&"), word


def test_a_failed_test_leads_back_to_the_form_with_what_was_typed(world, server) -> None:
    client, authority = client_of(world.admin), pem(server.authority[0])
    given = GIVEN | {"mode": "quota", "ca_certificate": authority, "tls_server_name": "hall.example"}
    made = int(client.post("/new/cluster/?way=token", given)["Location"].split("/")[-2])
    test = ConnectionTest.objects.get(pk=made)
    assert correction(client, test) == ("", ""), "the test is not over"
    address, word = correction(client, finished(test, "reach", "refused"))
    assert (address, word) == (f"/new/cluster/?way=token&offer={made}", "Correct the address")
    page = client.get(address).content.decode()
    assert f'value="{GIVEN["api_url"]}"' in page
    assert 'value="hall.example"' in page
    assert "BEGIN CERTIFICATE" in page
    assert '<option value="quota" selected>' in page
    assert SECRET not in page, "a secret is never filled in again"
    words = {
        ("reach", "wrong_authority"): "Correct the certificate authority",
        ("identity", "not_let_in"): "Correct the token",
        ("apis", "version_old"): "Correct what was given",
    }
    for (step, code), said in words.items():
        assert correction(client, finished(test, step, code))[1] == said
    for wrong in ("x", "9" * 30, str(world.named["other"])):
        assert client.get(f"/new/cluster/?way=token&offer={wrong}").status_code == 404, wrong


def test_another_connection_of_a_cluster_is_corrected_on_its_own_page(world, server) -> None:
    client = client_of(world.admin)
    address, _word = correction(
        client, finished(ConnectionTest.objects.get(pk=world.named["other"]), "reach", "refused")
    )
    assert address == f"/clusters/demo/connection/replace/?way=token&offer={world.named['other']}"
    assert f'value="{GIVEN["api_url"]}"' in client.get(address).content.decode()
    where = client.post("/new/cluster/", {"kubeconfig": kubeconfig(server), "mode": "quota"})["Location"]
    test = ConnectionTest.objects.get(pk=int(where.split("/")[-2]))
    address, word = correction(client, finished(test, "reach", "refused"))
    assert (address, word) == (f"/new/cluster/?way=kubeconfig&offer={test.pk}", "Give another connection")
    assert SECRET not in client.get(address).content.decode()
