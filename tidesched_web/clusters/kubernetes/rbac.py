"""`python -m tidesched_web.clusters.kubernetes.rbac manifests|chart MODE`, or `… page`, prints a generated file."""

import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import yaml

from tidesched_web.clusters.kubernetes.verbs import MODES, NEEDS, Need, needs_of

NAMESPACE, ACCOUNT = "tidesched", "tidesched"
_HEAD = "# Written by `make docs` from tidesched_web/clusters/kubernetes/verbs.py.\n"
_API = "rbac.authorization.k8s.io/v1"
Json = dict[str, Any]


class _Plain(yaml.SafeDumper):
    """Writes what is the same twice twice: readers of roles do not know YAML's aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> Any:
        words = all(isinstance(entry, str) for entry in sequence)
        return super().represent_sequence(tag, sequence, flow_style=words or flow_style)


def _dump(documents: list[Json]) -> str:
    return yaml.dump_all(documents, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=200)


def rules(needs: Iterable[Need]) -> list[Json]:
    merged: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for need in needs:
        verbs = merged.setdefault((need.group, need.resource, need.names), [])
        verbs += [verb for verb in need.verbs if verb not in verbs]
    made: list[Json] = []
    for (group, resource, names), verbs in merged.items():
        rule: Json = {"apiGroups": [group], "resources": [resource], "verbs": verbs}
        made.append(rule | ({"resourceNames": list(names)} if names else {}))
    return made


def roles(mode: str) -> Json:
    """What the Helm chart makes roles of: rules for the whole cluster, and for single namespaces."""
    needs = needs_of(mode)
    places = sorted({need.namespace for need in needs if need.namespace})
    return {
        "cluster": rules(need for need in needs if not need.namespace),
        "namespaces": {place: rules(need for need in needs if need.namespace == place) for place in places},
    }


def _granted(kind: str, metadata: Json, listed: list[Json], subject: Json) -> list[Json]:
    """A role, and that the subject has it."""
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": metadata["name"]}
    bound = {"kind": f"{kind}Binding", "metadata": metadata, "roleRef": reference, "subjects": [subject]}
    return [{"apiVersion": _API, "kind": kind, "metadata": metadata, "rules": listed}, {"apiVersion": _API, **bound}]


def manifests(mode: str) -> list[Json]:
    name = f"tidesched-{mode}"
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
    found = roles(mode)
    made: list[Json] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}},
        *_granted("ClusterRole", {"name": name}, found["cluster"], subject),
    ]
    for place, listed in found["namespaces"].items():
        made += _granted("Role", {"name": name, "namespace": place}, listed, subject)
    return made


def remedy(missing: Iterable[tuple[Need, str]], *, user: str, mode: str) -> str:
    by_place: dict[str, list[Need]] = {}
    for need, verb in missing:
        by_place.setdefault(need.namespace, []).append(replace(need, verbs=(verb,)))
    parts = user.split(":")
    if user.startswith("system:serviceaccount:") and len(parts) == 4:
        subject = {"kind": "ServiceAccount", "name": parts[3], "namespace": parts[2]}
    else:
        subject = {"kind": "User", "name": user or "…", "apiGroup": "rbac.authorization.k8s.io"}
    made: list[Json] = []
    for place, needs in sorted(by_place.items()):
        kind = "Role" if place else "ClusterRole"
        metadata = {"name": f"tidesched-{mode}-more"} | ({"namespace": place} if place else {})
        made += _granted(kind, metadata, rules(needs), subject)
    return _dump(made)


def page() -> str:
    lines = [
        "# What TideSched may do in a cluster",
        "",
        "Each mode needs exactly these verbs; `deploy/rbac/` has them as roles, the Helm chart makes the same,",
        "and the connection test asks the cluster for each ([connecting.md](connecting.md)). Written by",
        "`make docs` from `tidesched_web/clusters/kubernetes/verbs.py`.",
        "",
        "| group | resource | where | verbs | observe | quota | schedule | for |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for need in NEEDS:
        where = f"`{need.namespace}`" if need.namespace else "everywhere"
        if need.names:
            where += f", only `{need.names[0]}`"
        why = need.why + (" (where the cluster has it)" if need.optional else "")
        ticks = " | ".join("yes" if mode in need.modes else "" for mode in MODES)
        group, verbs = need.group or "core", ", ".join(need.verbs)
        lines.append(f"| {group} | {need.resource} | {where} | {verbs} | {ticks} | {why} |")
    return "\n".join(lines) + "\n"


def text(form: str, mode: str = "") -> str:
    if form == "page":
        return page()
    if mode not in MODES:
        raise ValueError(f"unknown mode {mode!r}; known: {', '.join(MODES)}")
    if form == "chart":
        return _HEAD + _dump([roles(mode)])
    if form == "manifests":
        return _HEAD + _dump(manifests(mode))
    raise ValueError(f"unknown form {form!r}; known: manifests, chart, page")


if __name__ == "__main__":
    sys.stdout.write(text(*sys.argv[1:]))
