from typing import Any

from tidesched_web.simcluster.errors import path_not_found
from tidesched_web.simcluster.resources import READ_VERBS, RESOURCE_TYPES, WRITE_VERBS, ResourceType

_SUBRESOURCE_KINDS = {"binding": ("", "v1", "Binding"), "eviction": ("policy", "v1", "Eviction")}


def version() -> dict[str, str]:
    return {"major": "1", "minor": "34", "gitVersion": "v1.34.0-tidesched-simulated", "platform": "simulated"}


def api_versions() -> dict[str, Any]:
    return {"kind": "APIVersions", "versions": ["v1"]}


def group_list() -> dict[str, Any]:
    groups = dict.fromkeys(kind.group for kind in RESOURCE_TYPES if kind.group)
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(group) for group in groups]}


def group(name: str) -> dict[str, Any]:
    if not any(kind.group == name for kind in RESOURCE_TYPES):
        raise path_not_found()
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name)}


def resource_list(group_name: str, version_name: str) -> dict[str, Any]:
    kinds = [kind for kind in RESOURCE_TYPES if (kind.group, kind.version) == (group_name, version_name)]
    if not kinds:
        raise path_not_found()
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": kinds[0].group_version,
        "resources": [entry for kind in kinds for entry in _entries(kind)],
    }


def _group(name: str) -> dict[str, Any]:
    versions = dict.fromkeys(kind.version for kind in RESOURCE_TYPES if kind.group == name)
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _entries(kind: ResourceType) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = [
        {
            "name": kind.plural,
            "singularName": kind.kind.lower(),
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": [*READ_VERBS, *WRITE_VERBS],
            "shortNames": list(kind.short_names),
        }
    ]
    for subresource in kind.subresources:
        entry: dict[str, Any] = {
            "name": f"{kind.plural}/{subresource}",
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": ["get", "patch", "update"] if subresource == "status" else ["create"],
        }
        if subresource in _SUBRESOURCE_KINDS:
            entry["group"], entry["version"], entry["kind"] = _SUBRESOURCE_KINDS[subresource]
        entries.append(entry)
    return entries
