"""Strict: Kubernetes' own loader runs programs (``exec``) and opens files that an uploaded file names."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import yaml

from tidesched_web.clusters.kubernetes.connection import (
    BadConnection,
    Connection,
    check_secret_text,
    check_server,
    check_server_name,
)
from tidesched_web.engine.model import BadInput
from tidesched_web.engine.yaml_shape import UNREADABLE, check_shape

MAX_BYTES = 256 * 1024

_CLUSTER_KEYS = frozenset({"server", "certificate-authority-data", "tls-server-name"})
_USER_KEYS = frozenset({"token", "client-certificate-data", "client-key-data"})
_RUNS_PROGRAMS = frozenset({"exec", "auth-provider"})
_READS_FILES = frozenset({"certificate-authority", "client-certificate", "client-key", "tokenFile"})
_WHY_NOT = {
    "insecure-skip-tls-verify": "the server must be verified; put its authority into certificate-authority-data",
    "username": "basic authentication is not part of Kubernetes any more; use a token",
    "password": "basic authentication is not part of Kubernetes any more; use a token",
    "proxy-url": "a proxy is chosen by the operator of this server, not by a cluster's file",
}


def contexts_of(text: str) -> tuple[list[str], str]:
    document = _load(text)
    entries = document.get("contexts")
    listed = [entry.get("name") for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    names = [name for name in listed if isinstance(name, str) and name]
    return names, _current(document)


def read_kubeconfig(text: str, *, context: str = "") -> Connection:
    document = _load(text)
    name = context or _current(document)
    if not name:
        there = ", ".join(contexts_of(text)[0])
        if not there:
            raise BadConnection("current-context", "the file has no context")
        raise BadConnection("current-context", "name the context to use: %(contexts)s", contexts=there)
    chosen = _named(document, "contexts", "context", name)
    cluster_name, user_name = (_text(chosen, key, f"contexts[{name}].context") for key in ("cluster", "user"))
    cluster = _named(document, "clusters", "cluster", cluster_name)
    user = _named(document, "users", "user", user_name)
    _only(cluster, _CLUSTER_KEYS, f"clusters[{cluster_name}].cluster")
    _only(user, _USER_KEYS, f"users[{user_name}].user")
    server = _text(cluster, "server", f"clusters[{cluster_name}].cluster")
    connection = Connection(
        url=check_server(server, path=f"clusters[{cluster_name}].cluster.server"),
        ca_certificate=_pem(cluster, "certificate-authority-data", f"clusters[{cluster_name}].cluster"),
        token=_text(user, "token", f"users[{user_name}].user", needed=False).strip(),
        client_certificate=_pem(user, "client-certificate-data", f"users[{user_name}].user"),
        client_key=_pem(user, "client-key-data", f"users[{user_name}].user"),
        tls_server_name=_text(cluster, "tls-server-name", f"clusters[{cluster_name}].cluster", needed=False),
    )
    check_secret_text(connection.token, f"users[{user_name}].user.token")
    check_server_name(connection.tls_server_name, f"clusters[{cluster_name}].cluster.tls-server-name")
    if bool(connection.client_certificate) != bool(connection.client_key):
        raise BadConnection(f"users[{user_name}].user", "a client certificate needs its key, and a key its certificate")
    if not connection.token and not connection.client_certificate:
        raise BadConnection(f"users[{user_name}].user", "a token or a client certificate is needed")
    return connection


def _current(document: Mapping[str, Any]) -> str:
    found = document.get("current-context") or ""
    if not isinstance(found, str):
        raise BadConnection("current-context", "a text is needed")
    return found


def _load(text: str) -> Mapping[str, Any]:
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise BadConnection("", "a kubeconfig of more than %(kib)s KiB is not read", kib=MAX_BYTES // 1024)
    try:
        check_shape(text)
        document = yaml.load(text, Loader=yaml.CSafeLoader)
    except BadInput as error:
        said = "this key is in one mapping twice (line %(line)s): keep one of the two"
        raise BadConnection(error.path or "", said, line=error.line) from None
    except (yaml.YAMLError, *UNREADABLE) as error:
        raise BadConnection("", "this is not YAML: %(detail)s", detail=_problem(error)) from None
    if not isinstance(document, Mapping) or document.get("kind", "Config") != "Config":
        raise BadConnection("kind", "this is not a kubeconfig (kind: Config)")
    for section in ("contexts", "clusters", "users"):
        _refuse_namesakes(section, document.get(section))
    return document


def _refuse_namesakes(section: str, entries: object) -> None:
    """Of two entries of one name it is unknown which one is meant; kubectl refuses them too."""
    seen = set()
    for entry in entries if isinstance(entries, list) else []:
        name = entry.get("name") if isinstance(entry, Mapping) else None
        if not isinstance(name, str):
            continue
        if name in seen:
            raise BadConnection(section, "two entries are named %(name)s: each name may be there once", name=repr(name))
        seen.add(name)


def _problem(error: Exception) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    return f"{problem} (line {mark.line + 1}, column {mark.column + 1})" if mark and problem else str(error)


def _named(document: Mapping[str, Any], section: str, field: str, name: str) -> Mapping[str, Any]:
    entries = document.get(section)
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, Mapping) and entry.get("name") == name:
            value = entry.get(field)
            if not isinstance(value, Mapping):
                raise BadConnection(f"{section}[{name}].{field}", "a mapping is needed")
            return value
    raise BadConnection(section, "there is no entry named %(name)s", name=repr(name))


def _only(mapping: Mapping[str, Any], known: frozenset[str], path: str) -> None:
    for key in mapping:
        if key in known:
            continue
        where = f"{path}.{key}"
        if key in _RUNS_PROGRAMS:
            raise BadConnection(where, "would run a program on this server; use a token of a service account")
        if key in _READS_FILES:
            said = "would read a file of this server; put the contents into %(key)s-data or token"
            raise BadConnection(where, said, key=key)
        if key in _WHY_NOT:
            raise BadConnection(where, _WHY_NOT[key])
        raise BadConnection(where, "is not accepted; known here: %(known)s", known=", ".join(sorted(known)))


def _text(mapping: Mapping[str, Any], key: str, path: str, *, needed: bool = True) -> str:
    value = mapping.get(key, "")
    if not isinstance(value, str) or (needed and not value):
        raise BadConnection(f"{path}.{key}", "a text is needed")
    return value


def _pem(mapping: Mapping[str, Any], key: str, path: str) -> str:
    value = _text(mapping, key, path, needed=False)
    if not value:
        return ""
    try:
        text = base64.b64decode(value, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        raise BadConnection(f"{path}.{key}", "is not base64 of a PEM text") from None
    if "-----BEGIN " not in text:
        raise BadConnection(f"{path}.{key}", "is not base64 of a PEM text")
    return text
