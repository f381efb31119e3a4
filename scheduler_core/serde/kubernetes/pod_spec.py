"""``spec`` of a pod or of a pod template, as far as it is read."""

from typing import Any

import msgspec

from scheduler_core.serde.kubernetes.affinity import RawNodeAffinity, RawToleration
from scheduler_core.serde.kubernetes.decode import Int32
from scheduler_core.serde.kubernetes.metadata import Scalar
from scheduler_core.serde.kubernetes.quantities import RawResources
from scheduler_core.serde.kubernetes.relations import RawPodAffinity, RawSpread


class RawRequirements(msgspec.Struct):
    requests: RawResources | None = None
    limits: RawResources | None = None


class RawPort(msgspec.Struct, rename="camel", gc=False):
    host_port: Int32 | None = None
    protocol: str | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")


class RawContainer(msgspec.Struct, rename="camel"):
    """A container or an init container (``restartPolicy: Always`` makes the latter a sidecar)."""

    image: str | None = None
    resources: RawRequirements | None = None
    ports: list[RawPort] | None = None
    restart_policy: str | None = None


class RawAffinity(msgspec.Struct, rename="camel"):
    node_affinity: RawNodeAffinity | None = None
    pod_affinity: RawPodAffinity | None = None
    pod_anti_affinity: RawPodAffinity | None = None


class RawMountedClaim(msgspec.Struct, rename="camel", gc=False):
    claim_name: str


class RawMount(msgspec.Struct, rename="camel"):
    """One entry of ``volumes``, as far as it names a claim."""

    name: str = ""
    persistent_volume_claim: RawMountedClaim | None = None
    ephemeral: dict[str, Any] | None = None


class RawPodSpec(msgspec.Struct, rename="camel"):
    containers: list[RawContainer] | None = None
    init_containers: list[RawContainer] | None = None
    overhead: RawResources | None = None
    node_name: str | None = None
    scheduler_name: str | None = None
    priority: Int32 | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    node_selector: dict[str, Scalar] | None = None
    affinity: RawAffinity | None = None
    tolerations: list[RawToleration] | None = None
    scheduling_gates: list[dict[str, Any]] | None = None
    topology_spread_constraints: list[RawSpread] | None = None
    volumes: list[RawMount] | None = None
    resources: RawRequirements | None = None
    resource_claims: list[Any] | None = None
    scheduling_group: dict[str, Any] | None = None
    workload_ref: dict[str, Any] | None = None
