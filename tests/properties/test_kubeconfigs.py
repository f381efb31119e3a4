"""Any kubeconfig that kubectl takes is taken, and means the same here, or is refused by a rule of docs/connecting.md.

A file is drawn together with what it means: each piece brings the rule that refuses it, or what it adds."""

from __future__ import annotations

import base64
import json
import os
import random
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives import serialization
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cluster.answering_server import key_pem, pair, pem
from tidesched_web.clusters.connection_input import by_kubeconfig
from tidesched_web.common.errors import DomainError

FILES = int(os.environ.get("RANDOM_KUBECONFIGS", "300"))
PAGE = Path(__file__).parents[2] / "docs" / "connecting.md"


@cache
def rules() -> dict[str, list[str]]:
    """Each rule of the page, and the sentences of which a refusal by it has one."""
    section = PAGE.read_text().partition("### What of a kubeconfig is refused\n")[2].partition("\n### ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:3] == "| `"]
    return {rule.strip("`"): said.split("; ") for rule, _what, said in rows}


AUTHORITIES = [pair(f"authority {number}") for number in range(3)]
PEOPLE = [pair(f"person {number}", issuer=AUTHORITIES[0]) for number in range(2)]
ENCRYPTED = (
    PEOPLE[0][1]
    .private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"sesame")
    )
    .decode()
)
COMMENTS = ("", "# root\n", "# Főtanúsítvány 根\r\n", "Bag Attributes\n    localKeyID: 01\n", "\ufeff", "\r\n\n")
NAMES = (
    "mini",
    "a b",
    "arn:aws:eks:eu-1:1:cluster/x",
    "2026-03-04",
    "12:30",
    "Größe",
    "=",
    "k8s@home",
    "0",
    "~x",
    "yes",
)
SERVERS = (
    "https://10.0.0.1:6443",
    "https://api.example.com",
    "https://[2001:db8::1]:6443",
    "https://h.example/k8s/c-1",
)
SAYS_NOTHING: tuple[Any, ...] = (False, "", None, [], {})
EXTENSIONS = [{"name": "info", "extension": {"provider": "example.org", "exec": {"command": "sh"}}}]


@dataclass
class Drawn:
    cluster: dict[str, Any] = field(default_factory=dict)
    user: dict[str, Any] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    server: str = ""
    authority: str = ""
    token: str = ""
    certificate: str = ""
    key: str = ""
    name: str = ""


def packed(rng: random.Random, text: str) -> str:
    raw = text.encode()
    one = base64.b64encode(raw).decode()
    wrapped = base64.encodebytes(raw).decode()
    return rng.choice([one, one, wrapped, wrapped.replace("\n", "\r\n")])


def around(rng: random.Random, block: str) -> str:
    block = block.replace("\n", "\r\n") if rng.random() < 0.2 else block
    return rng.choice(COMMENTS) + block + rng.choice(COMMENTS)


def draw_cluster(rng: random.Random, drawn: Drawn) -> None:
    drawn.server = rng.choice(SERVERS)
    drawn.cluster["server"] = drawn.server + rng.choice(["", "", "/"])
    if rng.random() < 0.8:
        blocks = [pem(certificate) for certificate, _key in rng.sample(AUTHORITIES, rng.randint(1, 3))]
        drawn.authority = "".join(blocks)
        text = "".join(around(rng, block) for block in blocks)
        if rng.random() < 0.2:
            text += key_pem(AUTHORITIES[0][1])
        if rng.random() < 0.1:
            text += pem(AUTHORITIES[1][0])[:200] + "\n"  # kubectl leaves it out
            drawn.refused.add("certificate")
        drawn.cluster["certificate-authority-data"] = packed(rng, text)
    if rng.random() < 0.2:
        drawn.name = drawn.cluster["tls-server-name"] = rng.choice(["kubernetes", "api.example.com", "10.0.0.1"])
    for key, value, rule in [
        ("server", f"http{drawn.server[5:]}", "https"),
        ("server", "10.0.0.1:6443", "address"),
        ("server", "https://127.0.0.1:6443", "address"),
        ("server", "https://localhost", "address"),
        ("server", f"{drawn.server}?a=b", "address"),
        ("tls-server-name", "https://a.example", "server name"),
        ("insecure-skip-tls-verify", True, "verification"),
        ("proxy-url", rng.choice(["http://proxy:3128", "socks5://proxy"]), "proxy"),
        ("certificate-authority", "/etc/hosts", "file"),
    ]:
        if rng.random() < 0.03:
            drawn.cluster[key] = value
            drawn.refused = {one for one in drawn.refused if key != "server" or one not in ("https", "address")} | {
                rule
            }
    idle = ("insecure-skip-tls-verify", "proxy-url", "certificate-authority", "tls-server-name", "disable-compression")
    fill(rng, drawn.cluster, idle)
    if rng.random() < 0.3:
        drawn.cluster |= {"disable-compression": True, "extensions": EXTENSIONS}


def draw_user(rng: random.Random, drawn: Drawn) -> None:
    how = rng.choice(["token", "token", "pair", "both"])
    if how != "pair":
        drawn.token = drawn.user["token"] = rng.choice(["abc", "a.b-c_d~e+f/g==", "0x1F", "x" * 2000])
    if how != "token":
        certificate, key = rng.choice(PEOPLE)
        drawn.certificate, drawn.key = pem(certificate), key_pem(key)
        drawn.user["client-certificate-data"] = packed(rng, around(rng, drawn.certificate))
        drawn.user["client-key-data"] = packed(rng, around(rng, drawn.key))
    if rng.random() < 0.04:
        drawn.user, drawn.refused = {}, drawn.refused | {"no credentials"}
    elif how == "token" and rng.random() < 0.05:
        drawn.user["client-key-data"] = packed(rng, key_pem(PEOPLE[0][1]))
        drawn.refused.add("half a pair")
    elif how == "token" and rng.random() < 0.05:
        drawn.user["token"] = rng.choice(["a b", "gr\xfcn", "x" * 20_001])
        drawn.refused.add("token")
    elif how != "token" and rng.random() < 0.05:
        drawn.user["client-key-data"] = packed(rng, ENCRYPTED)
        drawn.refused.add("key")
    for key, value, rule in [
        ("exec", {"apiVersion": "client.authentication.k8s.io/v1", "command": "aws"}, "program"),
        ("auth-provider", {"name": "gcp"}, "program"),
        ("tokenFile", "/etc/hosts", "file"),
        ("as", "system:admin", "other account"),
        ("username", "ann", "password"),
    ]:
        if rng.random() < 0.03:
            drawn.user[key] = value
            drawn.refused.add(rule)
            if key == "as":
                drawn.user |= {"as-uid": "5", "as-groups": ["system:masters"], "as-user-extra": {"a": ["b"]}}
    idle = ("exec", "auth-provider", "tokenFile", "client-certificate", "client-key", "username", "password", "token")
    fill(rng, drawn.user, (*idle, "as", "as-uid", "as-groups", "as-user-extra", "client-certificate-data"))
    if rng.random() < 0.2:
        drawn.user["extensions"] = EXTENSIONS


def fill(rng: random.Random, mapping: dict[str, Any], idle: tuple[str, ...]) -> None:
    """Keys whose value says nothing, and keys that kubectl does not know, among the others."""
    for key in idle:
        if key not in mapping and rng.random() < 0.15:
            mapping[key] = rng.choice(SAYS_NOTHING)
    if rng.random() < 0.3:
        mapping[rng.choice(["Exec", "TOKENFILE", "insecure-skip-tls-Verify", "isolate", "Server", "As"])] = {"a": True}


def draw_file(rng: random.Random) -> tuple[bytes, Drawn]:
    drawn = Drawn()
    draw_cluster(rng, drawn)
    draw_user(rng, drawn)
    context, cluster, user, other = rng.sample(NAMES, 4)
    # What the chosen context does not name may be anything.
    wild = {"exec": {"command": "rm"}, "tokenFile": "/etc/shadow", "as": "x"}
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": rng.choice(["Config", "Config", "", None]),
        "clusters": [
            {"name": cluster, "cluster": drawn.cluster},
            {"name": other, "cluster": {"proxy-url": "http://p"}},
        ],
        "users": [{"name": other, "user": wild}, {"name": user, "user": drawn.user or rng.choice([{}, None])}],
        "contexts": [{"name": context, "context": {"cluster": cluster, "user": user}}],
        "current-context": context,
    }
    of_context = document["contexts"][0]["context"]
    for place, key, value in [
        (of_context, "namespace", "team-a"),
        (of_context, "extensions", EXTENSIONS),
        (document, "extensions", EXTENSIONS),
        (document, "preferences", {"colors": True}),
        (document, "preferences", None),
        (document, "whatever", 5),
    ]:
        if rng.random() < 0.2:
            place[key] = value
    if rng.random() < 0.2:
        document["contexts"].append({"name": other, "context": {"cluster": other, "user": other}})
        if rng.random() < 0.3:
            document["current-context"] = rng.choice(SAYS_NOTHING[1:3])
            drawn.refused.add("context")
    elif rng.random() < 0.2:
        document["current-context"] = rng.choice(SAYS_NOTHING[1:3])
    return written(rng, document, drawn), drawn


def written(rng: random.Random, document: dict[str, Any], drawn: Drawn) -> bytes:
    keys = list(document)
    rng.shuffle(keys)
    document = {key: document[key] for key in keys}
    if rng.random() < 0.2:
        text = json.dumps(document, indent=rng.choice([None, 2, "\t"]), ensure_ascii=False)
    else:
        text = yaml.safe_dump(
            document, sort_keys=False, allow_unicode=rng.random() < 0.5, width=rng.choice([80, 10**6])
        )
        plain = r"^(\s*(?:- )?(?:name|user|cluster|current-context): )'(2026-03-04|12:30|=)'$"
        text = re.sub(plain, r"\1\2", text, flags=re.MULTILINE) if rng.random() < 0.5 else text
        text = rng.choice(["", "---\n", "# größe\n"]) + text + rng.choice(["", "---\n", "...\n"])
        # kubectl takes the first document, and the last of two keys.
        for ending, rule in (
            ("---\nkind: Config\n", "documents"),
            ("kind: Config\n", "twice"),
            ("x: !own 1\n", "yaml"),
        ):
            if rng.random() < 0.02 and not text.endswith(("---\n", "...\n")):
                text += ending
                drawn.refused = {rule}
                break
    text = text.replace("\n", "\r\n") if rng.random() < 0.2 else text
    if rng.random() < 0.03:
        drawn.refused = {"encoding"}
        return text.encode() + "# größe".encode("latin-1")
    return text.encode(rng.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16"]))


@settings(max_examples=FILES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.integers(min_value=0, max_value=2**32 - 1))
def test_a_kubeconfig_means_what_it_means_to_kubectl(seed: int) -> None:
    raw, drawn = draw_file(random.Random(seed))
    try:
        connection = by_kubeconfig(raw).connection
    except DomainError as error:
        (said,) = (one["detail"] for one in error.extra["errors"])
        assert any(sentence in said for rule in drawn.refused for sentence in rules()[rule]), (said, drawn.refused)
        return
    assert not drawn.refused
    assert (connection.url, connection.tls_server_name) == (drawn.server, drawn.name)
    assert (connection.ca_certificate, connection.token) == (drawn.authority, drawn.token)
    assert (connection.client_certificate, connection.client_key) == (drawn.certificate, drawn.key)
