"""The client for extenders, against a real HTTP server: answers, failures, and addresses that are not asked."""

from __future__ import annotations

import ipaddress
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from scheduler_core import PluginOption, Policy
from scheduler_core.framework.extender_client import ExtenderError
from scheduler_core.model.policy import Profile
from tests.core.small_cluster import binds, gang, node, snapshot, training
from tidesched_web.engine import extender_client
from tidesched_web.engine.bridge import decide, policy_problem
from tidesched_web.engine.extender_client import HttpExtenderClient
from tidesched_web.engine.policy_check import policy_findings


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, self.headers["Content-Type"], json.loads(body)))
        if self.path == "/slow":
            self.server.released.wait(60)
        status = {"/gone": 404, "/moved": 302}.get(self.path, 200)
        answer = b"x" * 2000 if self.path == "/long" else json.dumps({"refused": {"n1": "full"}}).encode()
        self.send_response(status)
        self.send_header("Location", "/predicate")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        """Quiet."""


@pytest.fixture
def server():
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.asked, made.released = [], threading.Event()
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.released.set()
    made.shutdown()
    made.server_close()
    thread.join()


def url(server, path):
    return f"http://127.0.0.1:{server.server_port}/{path}"


def test_a_question_and_its_answer(server):
    answer = HttpExtenderClient(loopback=True).post(url(server, "predicate"), b'{"nodes": []}', 5.0)
    assert json.loads(answer) == {"refused": {"n1": "full"}}
    assert server.asked == [("/predicate", "application/json", {"nodes": []})]


@pytest.mark.parametrize(("path", "says"), [("gone", "404"), ("moved", "302")])
def test_only_a_success_is_an_answer_and_nobody_is_sent_elsewhere(server, path, says):
    with pytest.raises(ExtenderError, match=says):
        HttpExtenderClient(loopback=True).post(url(server, path), b"{}", 5.0)
    assert len(server.asked) == 1


def test_an_answer_has_its_time(server):
    with pytest.raises(ExtenderError, match=r"timed out|no answer in time"):
        HttpExtenderClient(loopback=True).post(url(server, "slow"), b"{}", 0.2)


def test_an_answer_has_its_size(server, monkeypatch):
    monkeypatch.setattr(extender_client, "MOST_BYTES", 1000)
    with pytest.raises(ExtenderError, match="more than 1000 bytes"):
        HttpExtenderClient(loopback=True).post(url(server, "long"), b"{}", 5.0)


def test_nobody_listens():
    with pytest.raises(ExtenderError):
        HttpExtenderClient(loopback=True).post("http://127.0.0.1:1/x", b"{}", 1.0)


NEVER = (
    "http://127.0.0.1/x",
    "http://localhost/x",
    "http://[::1]/x",
    "http://[::ffff:127.0.0.1]/x",
    "http://2130706433/x",
    "http://169.254.169.254/latest/meta-data",
    "http://[fe80::1]/x",
    "http://0.0.0.0/x",
    "http://224.0.0.1/x",
    "http://metadata.google.internal/x",
    "http://100.100.100.200/latest/meta-data",
    "http://100.64.0.1/x",
    "http://192.0.0.192/opc/v1/instance",
    "http://168.63.129.16/machine",
    "http://[::ffff:169.254.169.254]/x",
    "http://[::169.254.169.254]/x",
    "http://[::ffff:100.100.100.200]/x",
    "http://[2002:a9fe:a9fe::1]/x",
    "http://[64:ff9b::a9fe:a9fe]/x",
    "http://[64:ff9b:1::a9fe:a9fe]/x",
    "http://[2001:0:a9fe:a9fe::1]/x",
    "http://[fd00:ec2::254]/x",
    "http://[fd20:ce::254]/x",
    "http://[fe80::a9fe:a9fe%251]/x",
    "http://[64:ff9b::7f00:1]/x",
    "http://2852039166/x",
    "http://0xa9fea9fe/x",
    "http://user:secret@10.0.0.1/x",
    "ftp://10.0.0.1/x",
    "http:///x",
    "http://10.0.0.1:99999/x",
)


@pytest.mark.parametrize("address", NEVER)
def test_addresses_that_are_not_asked(address, monkeypatch):
    def connected(place, timeout=None):
        raise AssertionError(f"{place} would have been asked")

    # A guard that fails must not make the test ask a metadata service.
    monkeypatch.setattr(extender_client.socket, "create_connection", connected)
    with pytest.raises(ExtenderError, match="is not an address"):
        HttpExtenderClient().post(address, b"{}", 1.0)


@pytest.mark.parametrize(
    "address", ["10.0.0.1", "192.168.1.7", "172.16.0.1", "fd12:3456::1", "8.8.8.8", "2600:1f18::1", "64:ff9b::a00:1"]
)
def test_addresses_where_an_extender_may_be(address):
    assert not extender_client.refused(ipaddress.ip_address(address))


CONF = """actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: extender
    arguments: {extender.urlPrefix: "%s", extender.predicateVerb: predicate}
"""


@pytest.mark.parametrize("address", NEVER)
def test_a_policy_that_names_such_an_address_is_refused_when_it_is_set(address):
    """It was valid, and each question of each session failed."""
    problem = policy_problem(CONF % address)
    assert problem is not None
    if address.startswith("http"):
        place = "tiers[0].plugins[2].arguments.extender.urlPrefix"
        assert (problem["code"], problem["path"]) == ("bad_extender_address", place)
        assert "https://extender.example" in problem["hint"]
        errors = [one["code"] for one in policy_findings(CONF % address) if one["severity"] == "error"]
        assert errors == ["bad_extender_address"]


@pytest.mark.parametrize("address", ["https://extender.example:8443/v", "http://10.0.0.7/v", "http://[fd12:3456::1]/v"])
def test_a_policy_names_another_machine_or_a_name_that_is_looked_up_later(address):
    assert policy_problem(CONF % address) is None
    assert not [one for one in policy_findings(CONF % address) if one["code"] == "bad_extender_address"]


def test_the_extenders_of_a_profile_are_looked_at_too():
    tiers = (PluginOption(name="extender", arguments={"extender.urlPrefix": "http://[::1]/"}),)
    policy = Policy(actions=("allocate",), tiers=(), profiles=(Profile(scheduler="mine", tiers=(tiers,)),))
    (found,) = extender_client.wrong_addresses(policy)
    assert found.path == "profiles[0].tiers[0].plugins[0].arguments.extender.urlPrefix"


def test_a_session_asks_it(server):
    arguments = {"extender.urlPrefix": url(server, ""), "extender.predicateVerb": "predicate"}
    plugins = (PluginOption(name="gang"), PluginOption(name="extender", arguments=arguments))
    rules = Policy(actions=("allocate",), tiers=(plugins,))
    given = snapshot([node("n1"), node("n2")], [training()], gang("x", 1, 1, "training"))
    client = HttpExtenderClient(loopback=True)
    result, _ = decide(given, rules, now=1000.0, memory=None, extenders=client)
    assert binds(result) == {"x-0": "n2"}
    # By itself the host does not ask its own machine: the question fails, and the gang waits.
    assert not decide(given, rules, now=1000.0, memory=None)[0].binds
