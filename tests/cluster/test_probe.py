"""The connection test: each thing that may be wrong is found, said, and comes with what helps."""

import base64
import datetime as dt
import http.server
import json
import threading
from pathlib import Path

import pytest
import yaml

from tests.cluster.answering_server import CONF_PATH, LEASE_PATH, TOKEN, AnsweringServer, key_pem, pair, pem
from tidesched_web.clusters import finding_words
from tidesched_web.clusters.kubernetes.client import KubernetesClient
from tidesched_web.clusters.kubernetes.connection import Connection
from tidesched_web.clusters.kubernetes.credential_facts import authorities
from tidesched_web.clusters.kubernetes.in_cluster import TokenFile
from tidesched_web.clusters.kubernetes.probe import Probe
from tidesched_web.clusters.kubernetes.verbs import MODES, NEEDS, verbs_of

NOW = dt.datetime.now(dt.UTC)
CARDS = "actions: 'enqueue, allocate'\ntiers:\n- plugins:\n  - name: gang\n  - name: capacity-card\n"


@pytest.fixture
def server(tmp_path: Path):
    made = AnsweringServer(tmp_path)
    made.objects[CONF_PATH] = {"data": {"volcano-scheduler.conf": CARDS}}
    yield made
    made.stop()


def probe(connection: Connection, mode: str = "schedule", **more) -> dict[str, list]:
    """code → findings."""
    client = KubernetesClient(connection)
    try:
        runs = list(Probe(client, mode=mode, installation="here", now=NOW, **more).run())
    finally:
        client.close()
    percents = [percent for percent, _found in runs]
    assert percents == sorted(percents)
    assert percents[-1] == 100
    found: dict[str, list] = {}
    for finding in runs[-1][1]:
        said = finding_words.sentence(finding.to_json())
        assert said
        assert "%(" not in said
        assert TOKEN not in json.dumps(finding.to_json())
        if finding.level == "failed" and finding.code != "verb_missing":
            assert finding_words.helps(finding.to_json(), mode), finding.code
        found.setdefault(finding.code, []).append(finding)
    return found


def levels(found: dict[str, list]) -> set[str]:
    return {finding.level for findings in found.values() for finding in findings}


@pytest.mark.parametrize("mode", MODES)
def test_a_cluster_that_has_everything(server, mode):
    if mode == "quota":
        pod = {
            "metadata": {"namespace": "volcano-system", "name": "volcano-scheduler-0"},
            "status": {"phase": "Running"},
        }
        server.objects["/api/v1/pods"] = {"items": [pod]}
    found = probe(server.connection(), mode)
    assert levels(found) <= {"good", "note"}
    asked = [{key: value for key, value in one.items() if value or key == "group"} for one in server.asked]
    optional = {"podgroups"}  # with a status of its own only where the kind has one
    wanted = [
        v.attributes for v in verbs_of(mode) if not (v.need.optional and v.need.resource.split("/")[0] in optional)
    ]
    assert sorted(map(str, asked)) == sorted(map(str, wanted))


@pytest.mark.parametrize("mode", MODES)
def test_each_missing_verb_is_named_with_what_grants_it(server, mode):
    server.denied = {(verb.verb, verb.need.resource) for verb in verbs_of(mode)}
    missing = probe(server.connection(), mode)["verb_missing"]
    named = {(one.values["verb"], one.values["resource"].partition(".")[0]) for one in missing}
    plain = {(verb, resource.partition(".")[0]) for verb, resource in server.denied}
    assert named == plain - {("patch", "podgroups/status")}, "PodGroup has no status of its own here"
    granted = rules_of(finding_words.grants([one.to_json() for one in missing], mode))
    assert granted == named


def rules_of(manifest: str) -> set[tuple[str, str]]:
    roles = [one for one in yaml.safe_load_all(manifest) if one["kind"] in ("Role", "ClusterRole")]
    rules = [rule for role in roles for rule in role["rules"]]
    return {(verb, rule["resources"][0]) for rule in rules for verb in rule["verbs"]}


def test_the_configuration_of_volcano_may_be_elsewhere(server):
    place = ("batch-system", "scheduler")
    server.objects["/api/v1/namespaces/batch-system/configmaps/scheduler"] = server.objects.pop(CONF_PATH)
    assert probe(server.connection(), "quota")["conf_missing"][0].values["name"].startswith("volcano-system/")
    assert probe(server.connection(), "quota", conf=place)["card_quota_holds"]
    assert server.asked[-1] == {} or any(one.get("namespace") == "batch-system" for one in server.asked)
    server.denied = {("get", "configmaps")}
    missing = [one.to_json() for one in probe(server.connection(), "quota", conf=place)["verb_missing"]]
    manifest = finding_words.grants(missing, "quota")
    assert "namespace: batch-system" in manifest
    assert "resourceNames: [scheduler]" in manifest


def test_what_is_granted_goes_to_the_account_that_lacks_it(server):
    server.denied = {("create", "pods/binding"), ("get", "leases"), ("update", "leases")}
    found = probe(server.connection())
    assert len(found["verb_missing"]) == 3
    everything = [one.to_json() for findings in found.values() for one in findings]
    manifest = finding_words.grants(everything, "schedule")
    assert "kind: ServiceAccount\n  name: tidesched\n  namespace: tidesched" in manifest
    assert "kind: ClusterRole\n" in manifest
    assert "resourceNames: [tidesched-scheduler]" in manifest


def test_every_line_of_the_table_has_its_words():
    assert {need.why for need in NEEDS} == set(finding_words.WHY)


def test_the_wrong_authority(server, tmp_path):
    found = probe(server.connection(ca_certificate=pem(pair("another")[0])))
    assert list(found)[-1] == "wrong_authority"


def test_a_certificate_for_another_name(tmp_path):
    server = AnsweringServer(tmp_path, address="10.1.2.3")
    try:
        assert "wrong_name" in probe(server.connection())
    finally:
        server.stop()


def test_a_server_whose_certificate_has_ended(tmp_path):
    server = AnsweringServer(tmp_path, certificate_days=-1)
    try:
        assert "server_expired" in probe(server.connection())
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("https://127.0.0.1:1", "refused"),
        ("https://no-such-name.invalid:6443", "name_unknown"),
        ("https://[::ffff:169.254.169.254]:443", "forbidden_address"),
    ],
)
def test_addresses_that_lead_nowhere(url, code, monkeypatch):
    if code == "forbidden_address":  # whatever the network here does: the peer is looked at before anything is sent
        import socket

        from urllib3.util import connection

        class Peer(socket.socket):
            def getpeername(self):
                return ("169.254.169.254", 443)

        monkeypatch.setattr(connection, "create_connection", lambda *_, **__: Peer())
    assert code in probe(Connection(url, token="x"))


class Plain(http.server.BaseHTTPRequestHandler):
    """Says its version and nothing else, without TLS."""

    def do_GET(self):
        body = json.dumps({"gitVersion": "v1.34.0"} if self.path == "/version" else {}).encode()
        self.send_response(200 if self.path == "/version" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815  # the name that http.server calls

    def log_message(self, *_args):
        pass


def test_no_certificate_is_praised_where_there_is_none(server):
    assert {"reached"} == probe(server.connection()).keys() & {"reached", "reached_plainly"}
    plain = http.server.HTTPServer(("127.0.0.1", 0), Plain)
    threading.Thread(target=plain.serve_forever, args=(0.05,), daemon=True).start()
    try:
        found = probe(Connection(f"http://127.0.0.1:{plain.server_address[1]}", token="x"))
        assert {"reached_plainly"} == found.keys() & {"reached", "reached_plainly"}
    finally:
        plain.shutdown()
        plain.server_close()


def test_a_port_without_tls(tmp_path):
    plain = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=plain.serve_forever, args=(0.05,), daemon=True).start()
    try:
        assert "no_tls" in probe(Connection(f"https://127.0.0.1:{plain.server_address[1]}", token="x"))
    finally:
        plain.shutdown()
        plain.server_close()


def test_a_token_that_the_cluster_does_not_know(server):
    assert list(probe(server.connection(token="old")))[-1] == "not_let_in"


def token_until(end: dt.datetime) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": int(end.timestamp()), "sub": "x"}).encode()).rstrip(b"=")
    return f"e30.{claims.decode()}.c2ln"


def test_when_a_token_ends(server):
    for days, code in ((-1, "expired"), (2, "ends_soon"), (90, "lasts")):
        token = token_until(NOW + dt.timedelta(days=days))
        server.tokens.add(token)
        assert code in probe(server.connection(token=token))


def test_client_certificates_and_their_ends(server):
    authority = pair("clients")
    certificate, key = pair("tidesched", issuer=authority, days=2)
    others = key_pem(pair("x", issuer=authority)[1])
    good = server.connection(client_certificate=pem(certificate), client_key=key_pem(key))
    assert "ends_soon" in probe(good)
    wrong = server.connection(client_certificate=pem(certificate), client_key=others)
    assert set(probe(wrong)) == {"unusable"}


def test_a_server_that_is_no_cluster(server):
    server.version = {}
    assert "not_kubernetes" in probe(server.connection())
    server.version = {"major": "1", "minor": "20+", "gitVersion": "v1.20.2"}
    assert "version_old" in probe(server.connection())


def test_what_the_cluster_lacks(server):
    server.groups["scheduling.volcano.sh/v1beta1"] = ["podgroups"]
    server.groups["v1"].remove("pods/eviction")
    found = probe(server.connection())
    assert found["crd_missing"][0].values["crd"] == "queues.scheduling.volcano.sh"
    assert found["api_missing"][0].values["resource"] == "pods/eviction"
    assert found["crd_missing"][0].level == "failed"
    assert probe(server.connection(), "observe")["crd_missing"][0].level == "warning"


def test_a_volcano_that_ignores_card_quotas(server):
    server.objects[CONF_PATH] = {"data": {"volcano-scheduler.conf": CARDS.replace("capacity-card", "capacity")}}
    found = {mode: probe(server.connection(), mode)["card_quota_ignored"][0] for mode in MODES}
    assert {mode: one.level for mode, one in found.items()} == {
        "observe": "warning",
        "quota": "failed",
        "schedule": "note",
    }
    assert "gang, capacity" in finding_words.sentence(found["quota"].to_json())
    del server.objects[CONF_PATH]
    assert "conf_missing" in probe(server.connection(), "quota")
    own = probe(server.connection(), "schedule")
    assert "conf_missing" not in own, "Volcano's configuration says nothing of a cluster that TideSched schedules"
    assert own["card_quota_own"][0].level == "good"


def test_two_schedulers(server):
    metadata = {"namespace": "volcano-system", "name": "volcano-scheduler"}
    server.objects["/apis/apps/v1/deployments"] = {"items": [{"metadata": metadata, "status": {"readyReplicas": 1}}]}
    assert probe(server.connection())["volcano_runs"][0].level == "failed"
    assert probe(server.connection(), "quota")["volcano_runs"][0].level == "good"
    spec = {"holderIdentity": "there", "renewTime": NOW.isoformat(), "leaseDurationSeconds": 15}
    server.objects[LEASE_PATH] = {"spec": spec}
    assert probe(server.connection())["other_installation"][0].values == {"holder": "there"}
    server.objects[LEASE_PATH] = {"spec": spec | {"holderIdentity": "here"}}
    assert "other_installation" not in probe(server.connection())
    server.objects[LEASE_PATH] = {"spec": spec | {"renewTime": (NOW - dt.timedelta(minutes=1)).isoformat()}}
    assert "other_installation" not in probe(server.connection())


def test_the_token_of_the_own_pod_is_read_again(server, tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    token = TokenFile(file)
    client = KubernetesClient(server.connection(token="", token_file=token))
    try:
        assert client.get("/version")["gitVersion"]
        server.tokens = {"the next token"}
        file.write_text("the next token")
        assert client.send("GET", "/version").reason == "Unauthorized"  # the old one was kept for a while
        assert client.send("GET", "/version").done  # and is read anew once the server does not take it
        file.unlink()
        token.forget()
        assert client.send("GET", "/version").done
    finally:
        client.close()
    assert client.send("GET", "/version").done
    lost = KubernetesClient(server.connection(token="", token_file=TokenFile(tmp_path / "nothing")))
    assert not lost.send("GET", "/version").done
    lost.close()


def test_fingerprints_of_authorities():
    authority = pem(pair("one")[0])
    (found,) = authorities(authority)
    assert found.subject == "CN=one"
    assert len(found.fingerprint) == 32 * 3 - 1
    assert authorities("") == []
