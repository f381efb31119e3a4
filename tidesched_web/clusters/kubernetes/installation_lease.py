"""A restored back-up has a database of its own: by this object only one installation schedules a cluster."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidesched_web.clusters.kubernetes.client import KubernetesClient
from tidesched_web.clusters.kubernetes.manifests import rfc3339_micro
from tidesched_web.clusters.kubernetes.outcomes import Outcome, OutcomeKind
from tidesched_web.clusters.kubernetes.paths import LEASE, NAMESPACE

LEASE_NAMESPACE = "kube-system"
LEASE_NAME = "tidesched-scheduler"


@dataclass(frozen=True)
class LeaseAnswer:
    """``held``: this installation may schedule. ``holder``: who may, as far as it is known."""

    held: bool
    holder: str
    outcome: Outcome


def hold_lease(client: KubernetesClient, *, installation: str, wall: float, seconds: float) -> LeaseAnswer:
    """Wall time. The write carries the version that was read, so of two that find it free one gets it."""
    path = LEASE.path(LEASE_NAMESPACE, LEASE_NAME)
    found = client.send("GET", path)
    if found.kind is OutcomeKind.GONE:
        return _create(client, installation, wall, seconds)
    if found.body is None:
        return LeaseAnswer(False, "", found)
    lease, spec = found.body, dict(found.body.get("spec") or {})
    holder = str(spec.get("holderIdentity") or "")
    if holder and holder != installation and wall < _expiry(spec):
        return LeaseAnswer(False, holder, found)
    if holder != installation:
        spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
        spec["acquireTime"] = rfc3339_micro(wall)
    spec |= _held(installation, wall, seconds)
    outcome = client.send("PUT", path, {**lease, "spec": spec})
    return LeaseAnswer(outcome.done, installation if outcome.done else holder, outcome)


def release_lease(client: KubernetesClient, *, installation: str) -> None:
    path = LEASE.path(LEASE_NAMESPACE, LEASE_NAME)
    found = client.send("GET", path)
    if found.body is not None and (found.body.get("spec") or {}).get("holderIdentity") == installation:
        client.send("PUT", path, {**found.body, "spec": {**found.body["spec"], "holderIdentity": ""}})


def _create(client: KubernetesClient, installation: str, wall: float, seconds: float) -> LeaseAnswer:
    lease = {
        "apiVersion": LEASE.group_version,
        "kind": LEASE.name,
        "metadata": {"name": LEASE_NAME, "namespace": LEASE_NAMESPACE},
        "spec": {"acquireTime": rfc3339_micro(wall), "leaseTransitions": 0, **_held(installation, wall, seconds)},
    }
    outcome = client.send("POST", LEASE.path(LEASE_NAMESPACE), lease)
    if outcome.kind is OutcomeKind.GONE:  # a cluster without kube-system
        client.send("POST", NAMESPACE.path(), {"metadata": {"name": LEASE_NAMESPACE}})
        outcome = client.send("POST", LEASE.path(LEASE_NAMESPACE), lease)
    return LeaseAnswer(outcome.done, installation if outcome.done else "", outcome)


def _held(installation: str, wall: float, seconds: float) -> dict[str, Any]:
    return {
        "holderIdentity": installation,
        "leaseDurationSeconds": max(1, round(seconds)),
        "renewTime": rfc3339_micro(wall),
    }


def _expiry(spec: dict[str, Any]) -> float:
    renewed = spec.get("renewTime")
    if not renewed:
        return 0.0
    return datetime.fromisoformat(renewed).timestamp() + float(spec.get("leaseDurationSeconds") or 0)
