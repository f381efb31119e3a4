"""Kubeconfig files and addresses: inline data only, and no address that gives secrets away."""

from __future__ import annotations

import ast
import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.answering_server import TOKEN, AnsweringServer, key_pem, pair, pem
from tidesched_web.clusters.connection_input import by_kubeconfig, by_token
from tidesched_web.clusters.kubernetes import kubeconfig as reader
from tidesched_web.clusters.kubernetes.client import KubernetesClient
from tidesched_web.clusters.kubernetes.connection import BadConnection, check_server, check_server_name
from tidesched_web.clusters.kubernetes.credential_facts import Facts, certificates, token_facts
from tidesched_web.clusters.kubernetes.in_cluster import in_cluster_connection
from tidesched_web.clusters.kubernetes.kubeconfig import read_kubeconfig, text_of
from tidesched_web.clusters.refusal_words import SAID
from tidesched_web.common.errors import DomainError


def packed(text: str | bytes) -> str:
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


AUTHORITY, KEY = pair("an authority")
PEM, KEY_PEM = packed(pem(AUTHORITY)), packed(key_pem(KEY))


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
    connection = read_kubeconfig(kubeconfig(user={"client-certificate-data": PEM, "client-key-data": KEY_PEM}))
    assert (connection.client_certificate, connection.client_key) == (pem(AUTHORITY), key_pem(KEY))
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
        ({"token": "t", "as": "system:admin"}, r"user\.as: would act as somebody else"),
        ({"token": "t", "as-groups": ["system:masters"]}, r"user\.as-groups: would act as somebody else"),
        ({"token": "t", "tokenFile": "/etc/shadow"}, "tokenFile: .*; put its contents into token$"),
        ({"client-certificate-data": PEM, "client-key-data": PEM}, "client-key-data: is not a private key in PEM"),
        ({}, "a token or a client certificate is needed"),
        ({"token": ["t"]}, r"user\.token: a text is needed"),
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
        (kubeconfig(**{"current-context": ["c"]}), "current-context: a text is needed"),
        (kubeconfig() + "---\n" + kubeconfig(), "more than one document is in it"),
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
        ("a: !!timestamp soon", "not YAML"),
        ("a: " + "1" * 5000, "not YAML"),
        ("a: \ud800", "not YAML"),
        (kubeconfig(contexts=[{"name": "c", "context": {"cluster": ["k"], "user": "u"}}]), "cluster: a text is"),
    ],
)
def test_other_files_are_refused(text: str, why: str) -> None:
    with pytest.raises(BadConnection, match=why):
        read_kubeconfig(text)


# The same authority as people have it: what stands around it, how lines end, how it is broken.
COMMENT, BLOCK = "# Főtanúsítvány 根证书\n", pem(AUTHORITY)
BAG = "Bag Attributes\n    friendlyName: Główny\nsubject=CN = an authority\n"
WRITTEN = {
    "plain": BLOCK,
    "a comment": COMMENT + BLOCK + COMMENT,
    "bag attributes": BAG + BLOCK,
    "a mark": "\ufeff" + BLOCK,
    "a mark and a comment": "\ufeff" + COMMENT + BLOCK,
    "other line ends": BLOCK.replace("\n", "\r\n"),
    "indented": BLOCK.replace("\n", "\n    "),
    "in one line": BLOCK.replace("\n", " "),
    "no last line end": BLOCK.rstrip(),
    "its key beside it": key_pem(KEY) + BLOCK,
    "the old name": BLOCK.replace("CERTIFICATE", "X509 CERTIFICATE"),
}
OTHER = pem(pair("another")[0])


@pytest.mark.parametrize("written", WRITTEN)
def test_an_authority_is_read_alike_at_both_doors(written: str) -> None:
    text = WRITTEN[written]
    url = "https://10.0.0.1:6443"
    assert by_token(api_url=url, token="t", ca_certificate=text).connection.ca_certificate == BLOCK
    in_lines = base64.encodebytes(text.encode()).decode()
    for data in (packed(text), in_lines, in_lines.replace("\n", "\r\n "), packed(text.encode("utf-8") + b"# \xf6\n")):
        given = kubeconfig(cluster={"server": url, "certificate-authority-data": data})
        assert by_kubeconfig(given).connection.ca_certificate == BLOCK


def test_several_authorities_are_all_taken() -> None:
    both = COMMENT + OTHER + BAG + BLOCK + COMMENT
    assert (
        by_token(api_url="https://10.0.0.1", token="t", ca_certificate=both).connection.ca_certificate == OTHER + BLOCK
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (COMMENT, "certificates in PEM are needed"),
        (key_pem(KEY), "certificates in PEM are needed"),
        (BLOCK.replace("CERTIFICATE", "TRUSTED CERTIFICATE"), "certificates in PEM are needed"),
        (BLOCK[: len(BLOCK) // 2], "certificate 1 in it cannot be read: it is cut off or damaged"),
        (OTHER + BLOCK[:-40], "certificate 2 in it cannot be read"),
        (BLOCK[:-40] + OTHER, "certificate 1 in it cannot be read"),
        (BLOCK.replace("MII", "MIJ"), "certificate 1 in it cannot be read"),
        (BLOCK.replace("MII", "Mű"), "certificate 1 in it cannot be read"),
        (BLOCK.replace("\n", "\\n"), "certificate 1 in it cannot be read"),
    ],
)
def test_what_is_no_authority_is_refused_alike_at_both_doors(text: str, why: str) -> None:
    with pytest.raises(BadConnection, match=why):
        certificates(text)
    said = why[:1].upper() + why[1:]
    with pytest.raises(DomainError, match=said):
        by_token(api_url="https://10.0.0.1:6443", token="t", ca_certificate=text)
    given = kubeconfig(cluster={"server": "https://10.0.0.1:6443", "certificate-authority-data": packed(text)})
    with pytest.raises(DomainError, match=f"certificate-authority-data: {why}"):
        by_kubeconfig(given)


def test_a_server_is_reached_with_what_was_stored_of_its_authority(tmp_path: Path) -> None:
    server = AnsweringServer(tmp_path)
    try:
        text = "\ufeff" + COMMENT + OTHER + BAG + pem(server.authority[0]).replace("\n", "\r\n")
        stored = by_token(api_url=server.url, token=TOKEN, ca_certificate=text).connection
        assert stored.ca_certificate.isascii()
        client = KubernetesClient(stored)
        assert client.get("/version") == server.version
        client.close()
    finally:
        server.stop()


def test_the_authority_of_the_own_pod_is_read_alike(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text(COMMENT + BAG + BLOCK)
    (tmp_path / "token").write_text("t")
    assert in_cluster_connection(tmp_path).ca_certificate == BLOCK
    (tmp_path / "ca.crt").write_text(BLOCK[:80])
    with pytest.raises(BadConnection, match=r"ca\.crt: certificate 1 in it cannot be read"):
        in_cluster_connection(tmp_path)


def test_a_client_certificate_may_have_comments_too() -> None:
    data = {"client-certificate-data": packed(BAG + pem(AUTHORITY)), "client-key-data": packed(COMMENT + key_pem(KEY))}
    connection = by_kubeconfig(kubeconfig(user=data)).connection
    assert (connection.client_certificate, connection.client_key) == (pem(AUTHORITY), key_pem(KEY))


def test_keys_that_say_nothing_are_as_if_they_were_not_there() -> None:
    text = """
apiVersion: v1
kind: Config
preferences: {colors: true}
extensions: [{name: all, extension: {exec: {command: sh}}}]
current-context: mini
contexts:
- name: mini
  context: {cluster: mini, user: 2026-03-04, namespace: default, extensions: [{name: context_info, extension: {}}]}
clusters:
- name: mini
  cluster:
    server: https://192.0.2.7:6443
    insecure-skip-tls-verify: false
    Insecure-Skip-TLS-Verify: true
    certificate-authority: ""
    proxy-url: ""
    tls-server-name: null
    disable-compression: true
    extensions: [{name: cluster_info, extension: {provider: example.org}}]
- name: other
  cluster: null
users:
- name: 2026-03-04
  user: {token: abc, username: "", password: null, exec: null, as-groups: [], as-user-extra: {}, tokenfile: /etc/shadow}
"""
    connection = by_kubeconfig(text).connection
    assert connection == reader.Connection("https://192.0.2.7:6443", token="abc")


def test_bytes_are_utf_8_or_have_a_mark() -> None:
    text = kubeconfig() + "# Főtanúsítvány\r\n"
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        assert text_of(text.encode(encoding)) == text
        assert by_kubeconfig(text.encode(encoding)).connection.token == "secret-token"
    lines = text.count("\n")
    with pytest.raises(DomainError, match=rf"no UTF-8 text \(line {lines}\): save it as UTF-8"):
        by_kubeconfig(text.encode("iso-8859-2"))
    with pytest.raises(DomainError, match=r"no UTF-16 text \(line 3\)"):
        by_kubeconfig("a\nb\nc".encode("utf-16") + b"x")


def test_what_is_said_of_bad_connections_can_be_said_in_other_languages() -> None:
    folder = Path(reader.__file__).parent
    said = set(reader.REFUSED.values())
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
