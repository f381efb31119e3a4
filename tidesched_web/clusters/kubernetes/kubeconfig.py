"""Strict: Kubernetes' own loader runs programs (``exec``) and opens files that an uploaded file names."""

import codecs
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import yaml

from tidesched_web.clusters.kubernetes.connection import (
    BadConnection,
    Connection,
    check_secret_text,
    check_server,
    check_server_name,
)
from tidesched_web.clusters.kubernetes.credential_facts import certificates, private_key, unpacked
from tidesched_web.engine.model import BadInput
from tidesched_web.engine.yaml_shape import UNREADABLE, check_shape

MAX_BYTES = 256 * 1024

_PROGRAM = "would run a program on this server; use a token of a service account"
_FILE = "would read a file of this server; put its contents into %(place)s"
_BASIC = "basic authentication is not part of Kubernetes any more; use a token"
_OTHER = "would act as somebody else; use a token of that account"
# Of the keys that kubectl knows, those that are refused, and why; what it does not know it leaves out.
REFUSED = {
    **dict.fromkeys(("exec", "auth-provider"), _PROGRAM),
    **dict.fromkeys(("certificate-authority", "client-certificate", "client-key", "tokenFile"), _FILE),
    **dict.fromkeys(("username", "password"), _BASIC),
    **dict.fromkeys(("as", "as-uid", "as-groups", "as-user-extra"), _OTHER),
    "insecure-skip-tls-verify": "the server must be verified; put its authority into certificate-authority-data",
    "proxy-url": "a proxy is chosen by the operator of this server, not by a cluster's file",
}


class _Loader(yaml.CSafeLoader):
    """Numbers and times are texts as they are written: kubectl knows fewer of them than YAML 1.1."""

    yaml_implicit_resolvers = {
        first: [one for one in resolvers if one[0].endswith((":null", ":bool", ":merge"))]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


def text_of(raw: bytes) -> str:
    """UTF-8, or what a mark at its begin names."""
    encoding = "utf-16" if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"
    try:
        return raw.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw[: error.start].decode(encoding, "ignore").count("\n") + 1
        said = "the file is no %(encoding)s text (line %(line)s): save it as UTF-8"
        raise BadConnection("", said, encoding=encoding.upper(), line=line) from None


def contexts_of(text: str) -> tuple[list[str], str]:
    document = _load(text)
    return [name for name, _entry in _entries(document, "contexts") if name], _current(document)


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
    of_cluster, of_user = f"clusters[{cluster_name}].cluster", f"users[{user_name}].user"
    _refuse(cluster, of_cluster)
    _refuse(user, of_user)
    connection = Connection(
        url=check_server(_text(cluster, "server", of_cluster), path=f"{of_cluster}.server"),
        ca_certificate=_pem(certificates, cluster, "certificate-authority-data", of_cluster),
        token=_text(user, "token", of_user, needed=False).strip(),
        client_certificate=_pem(certificates, user, "client-certificate-data", of_user),
        client_key=_pem(private_key, user, "client-key-data", of_user),
        tls_server_name=_text(cluster, "tls-server-name", of_cluster, needed=False),
    )
    check_secret_text(connection.token, f"{of_user}.token")
    check_server_name(connection.tls_server_name, f"{of_cluster}.tls-server-name")
    if bool(connection.client_certificate) != bool(connection.client_key):
        raise BadConnection(of_user, "a client certificate needs its key, and a key its certificate")
    if not connection.token and not connection.client_certificate:
        raise BadConnection(of_user, "a token or a client certificate is needed")
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
        documents = [one for one in yaml.load_all(text, Loader=_Loader) if one is not None]
    except BadInput as error:
        said = "this key is in one mapping twice (line %(line)s): keep one of the two"
        raise BadConnection(error.path or "", said, line=error.line) from None
    except (yaml.YAMLError, *UNREADABLE) as error:
        raise BadConnection("", "this is not YAML: %(detail)s", detail=_problem(error)) from None
    if len(documents) > 1:
        raise BadConnection("", "more than one document is in it: keep one")
    document = documents[0] if documents else None
    if not isinstance(document, Mapping) or (document.get("kind") or "Config") != "Config":
        raise BadConnection("kind", "this is not a kubeconfig (kind: Config)")
    for section in ("contexts", "clusters", "users"):
        names = sorted(name for name, _entry in _entries(document, section))
        twice = next((one for one, other in pairwise(names) if one == other), None)
        if twice is not None:  # it is unknown which one is meant; kubectl refuses them too
            said = "two entries are named %(name)s: each name may be there once"
            raise BadConnection(section, said, name=repr(twice))
    return document


def _entries(document: Mapping[str, Any], section: str) -> list[tuple[str, Mapping[str, Any]]]:
    listed = document.get(section)
    entries = [entry for entry in listed if isinstance(entry, Mapping)] if isinstance(listed, list) else []
    return [(entry["name"], entry) for entry in entries if isinstance(entry.get("name"), str)]


def _problem(error: Exception) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    return f"{problem} (line {mark.line + 1}, column {mark.column + 1})" if mark and problem else str(error)


def _named(document: Mapping[str, Any], section: str, field: str, name: str) -> Mapping[str, Any]:
    entry = dict(_entries(document, section)).get(name)
    if entry is None:
        raise BadConnection(section, "there is no entry named %(name)s", name=repr(name))
    value = entry.get(field) or {}
    if not isinstance(value, Mapping):
        raise BadConnection(f"{section}[{name}].{field}", "a mapping is needed")
    return value


def _refuse(mapping: Mapping[str, Any], path: str) -> None:
    for key, value in mapping.items():
        if value and key in REFUSED:
            raise BadConnection(f"{path}.{key}", REFUSED[key], place="token" if key == "tokenFile" else f"{key}-data")


def _text(mapping: Mapping[str, Any], key: str, path: str, *, needed: bool = True) -> str:
    value = mapping.get(key) or ""
    if not isinstance(value, str) or (needed and not value):
        raise BadConnection(f"{path}.{key}", "a text is needed")
    return value


def _pem(read: Callable[..., str], mapping: Mapping[str, Any], key: str, path: str) -> str:
    value, where = _text(mapping, key, path, needed=False), f"{path}.{key}"
    return read(unpacked(value, where), path=where) if value else ""
