"""The PodGroup of a gang as its cluster holds it, made again from what the last session saw of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import yaml

API_VERSION = "scheduling.volcano.sh/v1beta1"


def pod_group_yaml(seen: Mapping[str, Any], *, phase: str) -> str:
    """YAML in the order in which a person writes it; nothing when nothing was kept."""
    if not seen:
        return ""
    document = {
        "apiVersion": API_VERSION,
        "kind": "PodGroup",
        "metadata": _filled(
            namespace=seen.get("namespace"),
            name=seen.get("name"),
            uid=seen.get("uid"),
            creationTimestamp=_moment(seen.get("created")),
            labels=seen.get("labels"),
            annotations=seen.get("annotations"),
        ),
        "spec": _filled(
            queue=seen.get("queue"),
            minMember=seen.get("min_member"),
            minTaskMember=seen.get("min_task_member"),
            minResources=resources(seen.get("min_resources")),
            priorityClassName=seen.get("priority_class"),
        ),
        "status": {"phase": phase},
    }
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def resources(amount: Mapping[str, Any] | None) -> dict[str, str]:
    found = {}
    if cpu := (amount or {}).get("cpu_milli"):
        found["cpu"] = f"{cpu // 1000}" if cpu % 1000 == 0 else f"{cpu}m"
    if memory := (amount or {}).get("memory_mib"):
        found["memory"] = f"{memory}Mi"
    return found


def _filled(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "", {}, [])}


def _moment(seconds: float | None) -> str | None:
    if not seconds:
        return None
    return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat().replace("+00:00", "Z")
