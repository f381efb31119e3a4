"""The proxy of the environment: its user and password go into one header, and stand nowhere else."""

from __future__ import annotations

import base64
import datetime as dt
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from tests.cluster.answering_server import TOKEN, AnsweringServer, pem
from tests.cluster.connect_proxy import ConnectProxy
from tidesched_web.clusters import finding_words
from tidesched_web.clusters.kubernetes.client import KubernetesClient, Unreachable
from tidesched_web.clusters.kubernetes.connection import BadConnection, Connection
from tidesched_web.clusters.kubernetes.probe import Probe, unusable

HOST = "192.0.2.7"  # reached through the proxy alone
SECRET = "p@ss:wörd"
WRITTEN = "p%40ss%3Aw%C3%B6rd"


@pytest.fixture(autouse=True)
def _no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AnsweringServer]:
    made = AnsweringServer(tmp_path, address=HOST)
    yield made
    made.stop()


@pytest.fixture
def proxy(server: AnsweringServer) -> Iterator[ConnectProxy]:
    made = ConnectProxy(int(server.url.rpartition(":")[2]), in_header(f"user:{SECRET}"))
    yield made
    made.stop()


def in_header(credentials: str) -> str:
    return base64.b64encode(credentials.encode()).decode()


def behind(server: AnsweringServer) -> Connection:
    return Connection(f"https://{HOST}:6443", ca_certificate=pem(server.authority[0]), token=TOKEN)


def version(server: AnsweringServer) -> object:
    client = KubernetesClient(behind(server))
    try:
        return client.get("/version")
    finally:
        client.close()


@pytest.mark.parametrize("before", ["http://", ""])
@pytest.mark.parametrize("credentials", [f"user:{WRITTEN}", f"user:{SECRET}", "user:p%40ss%3aw%c3%b6rd"])
def test_user_and_password_are_sent_to_the_proxy(server, proxy, monkeypatch, caplog, before, credentials) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"{before}{credentials}@127.0.0.1:{proxy.port}")
    with caplog.at_level(logging.DEBUG):
        assert version(server) == server.version
    client = KubernetesClient(behind(server))
    assert isinstance(client._pool, urllib3.ProxyManager)
    assert str(client._pool.proxy) == f"http://127.0.0.1:{proxy.port}"
    client.close()
    assert proxy.asked == [(f"CONNECT {HOST}:6443 HTTP/1.0", proxy.wanted)]
    assert not any(word in caplog.text for word in (SECRET, WRITTEN, proxy.wanted))


@pytest.mark.parametrize(("given", "sent"), [("", ""), ("user@", "user:"), ("us%2Fer:a%20b@", "us/er:a b")])
def test_other_credentials(server, proxy, monkeypatch, given, sent) -> None:
    proxy.wanted = in_header(sent) if sent else ""
    monkeypatch.setenv("https_proxy", f"http://{given}127.0.0.1:{proxy.port}/")
    assert version(server) == server.version


def test_a_refusal_of_the_proxy_is_said_without_the_password(server, proxy, monkeypatch, caplog) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:{WRITTEN}x@127.0.0.1:{proxy.port}")
    client = KubernetesClient(behind(server))
    with caplog.at_level(logging.DEBUG), pytest.raises(Unreachable) as raised:
        client.get("/version")
    said = f"https://{HOST}:6443: the proxy of HTTPS_PROXY: Tunnel connection failed: 407 Proxy Authentication Required"
    assert (str(raised.value), raised.value.maybe_done) == (said, False)
    (*_steps, (_percent, findings)) = Probe(client, mode="observe", installation="x", now=dt.datetime.now(dt.UTC)).run()
    client.close()
    assert (findings[-1].step, findings[-1].code, findings[-1].level) == ("reach", "proxy", "failed")
    assert "HTTPS_PROXY" in finding_words.sentence(findings[-1].to_json())
    assert "p%40ss" not in caplog.text + str(findings)


def test_a_proxy_that_is_away_is_said(server, monkeypatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://user:sesame@127.0.0.1:1")
    with pytest.raises(Unreachable, match=r"the proxy of HTTPS_PROXY: .*Connection refused") as raised:
        version(server)
    assert "sesame" not in str(raised.value)


@pytest.mark.parametrize(
    "address",
    ["http://user:ses#ame@proxy:3128", "http://user:12/sesame@proxy:3128", "http://user:1?sesame@proxy:3128",
     "http://user:1#sesame@proxy:3128", "socks5://user:sesame@proxy:1080", "http://", "http://proxy:port"],
)  # fmt: skip
def test_what_is_no_address_of_a_proxy_is_refused_without_a_word_of_it(server, monkeypatch, address) -> None:
    monkeypatch.setenv("HTTPS_PROXY", address)
    with pytest.raises(BadConnection) as raised:
        version(server)
    assert str(raised.value) == "HTTPS_PROXY: is not the address of a proxy, such as http://proxy.example:3128"
    assert raised.value.__cause__ is None
    assert unusable(raised.value).code == "proxy"


@pytest.mark.parametrize("listed", [HOST, "192.0.2.0/24", "other, 192.0.2.7:6443", "*"])
def test_what_no_proxy_lists_is_reached_directly(server, proxy, monkeypatch, listed) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://user:#@:")
    monkeypatch.setenv("NO_PROXY", listed)
    client = KubernetesClient(behind(server))
    assert client._direct is not None
    client.close()
    monkeypatch.setenv("NO_PROXY", "198.51.100.0/24, example.com")
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:{WRITTEN}@127.0.0.1:{proxy.port}")
    assert version(server) == server.version
    assert len(proxy.asked) == 1


def test_a_proxy_by_tls_is_trusted_as_the_web_is(server, tmp_path, monkeypatch) -> None:
    proxy = ConnectProxy(int(server.url.rpartition(":")[2]), in_header("user:sesame"), folder=tmp_path)
    try:
        monkeypatch.setenv("HTTPS_PROXY", f"https://user:sesame@127.0.0.1:{proxy.port}")
        with pytest.raises(Unreachable, match="certificate verify failed"):
            version(server)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "proxies.pem"))
        assert version(server) == server.version
        assert proxy.asked == [(f"CONNECT {HOST}:6443 HTTP/1.0", proxy.wanted)]
    finally:
        proxy.stop()
