"""Kubeconfig files and addresses: inline data only, and no address that gives secrets away."""

from __future__ import annotations

import ast
import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from tidesched_web.clusters.kubernetes import kubeconfig as reader
from tidesched_web.clusters.kubernetes.connection import BadConnection, check_server, check_server_name
from tidesched_web.clusters.kubernetes.credential_facts import Facts, token_facts
from tidesched_web.clusters.kubernetes.kubeconfig import read_kubeconfig
from tidesched_web.clusters.refusal_words import SAID

PEM = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n").decode()


def kubeconfig(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **top: Any) -> str:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "x"}}],
        "clusters": [
            {"name": "k", "cluster": cluster or {"server": "https://10.0.0.1:6443", "certificate-authority-data": PEM}}
        ],
        "users": [{"name": "u", "user": user or {"token": "secret-token"}}],
    }
    return yaml.safe_dump(document | top)


def test_a_token_and_an_authority_are_taken() -> None:
    connection = read_kubeconfig(kubeconfig())
    assert connection.url == "https://10.0.0.1:6443"
    assert connection.token == "secret-token"
    assert connection.ca_certificate.startswith("-----BEGIN CERTIFICATE")
    assert "secret-token" not in repr(connection)


def test_a_client_certificate_is_taken_with_its_key() -> None:
    connection = read_kubeconfig(kubeconfig(user={"client-certificate-data": PEM, "client-key-data": PEM}))
    assert connection.client_key == connection.client_certificate != ""
    with pytest.raises(BadConnection, match="needs its key"):
        read_kubeconfig(kubeconfig(user={"client-certificate-data": PEM}))


@pytest.mark.parametrize(
    ("user", "field"),
    [
        ({"exec": {"command": "sh"}}, r"users\[u\]\.user\.exec: would run a program"),
        ({"auth-provider": {"name": "gcp"}}, "auth-provider: would run a program"),
        ({"tokenFile": "/etc/shadow"}, "tokenFile: would read a file"),
        ({"client-certificate": "/etc/passwd", "client-key": "/etc/passwd"}, "client-certificate: would read a file"),
        ({"username": "a", "password": "b"}, "basic authentication is not part"),
        ({"token": "t", "as": "system:admin"}, r"user\.as: is not accepted; known here"),
        ({}, "a token or a client certificate is needed"),
        ({"token": 5}, r"user\.token: a text is needed"),
        ({"token": "a\r\nHost: b"}, r"user\.token: has blanks"),
        ({"client-certificate-data": "not base64!"}, "is not base64 of a PEM text"),
    ],
)
def test_users_that_would_reach_into_this_machine_are_refused(user: dict[str, Any], field: str) -> None:
    with pytest.raises(BadConnection, match=field):
        read_kubeconfig(kubeconfig(user=user or {"token": ""}))


@pytest.mark.parametrize(
    ("cluster", "field"),
    [
        ({"server": "https://10.0.0.1", "insecure-skip-tls-verify": True}, "the server must be verified"),
        ({"server": "https://10.0.0.1", "certificate-authority": "/etc/passwd"}, "would read a file"),
        ({"server": "https://10.0.0.1", "proxy-url": "http://p"}, "a proxy is chosen by"),
        ({"server": "https://169.254.169.254"}, "is not an address where a cluster may be"),
        ({"server": "https://127.0.0.1:6443"}, "is not an address where a cluster may be"),
        ({"server": "http://10.0.0.1"}, "https is needed"),
        ({"server": ""}, "a text is needed"),
        ({"server": "https://10.0.0.1", "tls-server-name": "https://a.example"}, "tls-server-name: a host name alone"),
    ],
)
def test_clusters_that_cannot_be_trusted_are_refused(cluster: dict[str, Any], field: str) -> None:
    with pytest.raises(BadConnection, match=field):
        read_kubeconfig(kubeconfig(cluster=cluster))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [", r"not YAML: did not find expected node content \(line 2, column 1\)$"),
        ("kind: Secret", "not a kubeconfig"),
        ("[]", "not a kubeconfig"),
        (kubeconfig(**{"current-context": ""}), "name the context"),
        (kubeconfig(**{"current-context": "other"}), "there is no entry named 'other'"),
        (kubeconfig(clusters=[]), "there is no entry named 'k'"),
        (kubeconfig(**{"current-context": 5}), "current-context: a text is needed"),
        (kubeconfig(users=[{"name": "u", "user": {}}]), "a token or a client certificate is needed"),
        (
            kubeconfig(users=[{"name": "u", "user": {"token": name}} for name in "ab"]),
            "users: two entries are named 'u'",
        ),
        (kubeconfig(clusters=[{"name": "k"}, {"name": "k"}]), "clusters: two entries are named 'k'"),
        (kubeconfig(contexts=[{"name": "c"}, {"name": "c"}]), "contexts: two entries are named 'c'"),
        (kubeconfig() + "users: []\n", r"users: this key is in one mapping twice \(line \d+\)"),
        ("x" * 300_000, "more than 256 KiB"),
        ("[" * 200_000, "deep in each other"),
        ("a: &a [1]\nb: &b [" + "*a, " * 999 + "]\nc: &c [" + "*b, " * 999 + "]", "not YAML"),
        ("a: &a [*a]", "holds itself"),
        ("a: 2026-13-45", "not YAML"),
        ("a: !!timestamp soon", "not YAML"),
        ("a: " + "1" * 5000, "not YAML"),
        ("a: \ud800", "not YAML"),
        (kubeconfig(contexts=[{"name": "c", "context": {"cluster": ["k"], "user": "u"}}]), "cluster: a text is"),
    ],
)
def test_other_files_are_refused(text: str, why: str) -> None:
    with pytest.raises(BadConnection, match=why):
        read_kubeconfig(text)


def test_what_is_said_of_bad_connections_can_be_said_in_other_languages() -> None:
    folder = Path(reader.__file__).parent
    said = set(reader._WHY_NOT.values())
    for module in folder.glob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "BadConnection":
                said |= {node.args[1].value} if isinstance(node.args[1], ast.Constant) else set()
    assert len(said) > 20
    assert said <= set(SAID)


@pytest.mark.parametrize(
    "url",
    [
        "https://[fe80::1]:6443",
        "https://0.0.0.0",
        "https://224.0.0.1",
        "https://metadata.google.internal",
        "https://[::ffff:169.254.169.254]",
        "https://2852039166",
        "https://0xA9FEA9FE",
        "https://169.254.43518",
        "https://[",
        "https://localhost",
        "https://localhost.",
        "https://[64:ff9b::a9fe:a9fe]",
        "https://[2002:a9fe:a9fe::]",
        "https://ex\x00ample",
        "https://a b",
        "https://a%0d%0ab",
        "https://a/b c",
        "https://" + "a" * 300,
        "https://u:p@10.0.0.1",
        "https://10.0.0.1:99999",
        "https://10.0.0.1:0",
        "ftp://10.0.0.1",
        "10.0.0.1",
        "",
    ],
)
def test_odd_addresses_are_refused(url: str) -> None:
    with pytest.raises(BadConnection):
        check_server(url)


def test_tokens_may_say_what_they_like_of_themselves() -> None:
    def facts(claims: str) -> Facts:
        return token_facts(f"a.{base64.urlsafe_b64encode(claims.encode()).decode().rstrip('=')}.c")

    assert facts('{"exp": 1000000000000, "sub": "in\\u0000milliseconds"}') == Facts("inmilliseconds", None)
    assert facts('{"exp": -1, "sub": ["x"]}') == facts("[") == facts("1e999") == Facts("", None)


def test_a_name_for_tls_is_a_host_name_or_an_address() -> None:
    for name in ("", "kubernetes.default.svc", "Api.Example.com", "10.0.0.1", "2001:db8::1"):
        check_server_name(name, "tls_server_name")
    for name in ("https://api.example.com", "api.example.com:6443", "a/b", "a b", "a..b/", "*.example.com", "a" * 300):
        with pytest.raises(BadConnection):
            check_server_name(name, "tls_server_name")


def test_addresses_come_out_in_one_form() -> None:
    assert check_server(" https://Api.Example.com:6443/ ") == "https://api.example.com:6443"
    assert check_server("https://[2001:db8::1]:6443/base/") == "https://[2001:db8::1]:6443/base"
    assert check_server("http://127.0.0.1:8001", loopback=True) == "http://127.0.0.1:8001"
