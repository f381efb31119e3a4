"""Fields that ask for what the scheduler does not do: a gang that has one waits, with the path of the field. Left out
on purpose: what only prefers (``networkTopology`` with mode ``soft``), and what other parts of Kubernetes obey without
the scheduler."""

from collections.abc import Mapping, Sequence

import msgspec

from scheduler_core.serde.kubernetes import annotations as keys
from scheduler_core.serde.kubernetes.pod_spec import RawPodSpec
from scheduler_core.serde.pointers import child

_SOFT = "soft"
_OWN_GROUP = (keys.GROUP_NAME, keys.GROUP_NAME_VOLCANO)


class RawTopology(msgspec.Struct, rename="camel"):
    """``networkTopology`` of a PodGroup, a Job or one of their parts; without a mode it is hard, as in its CRD."""

    mode: str | None = None


def of_pod_spec(spec: RawPodSpec, path: str = "spec") -> str:
    """The first such field of a pod or of a pod template; empty for none."""
    if spec.resource_claims:
        return f"{path}.resourceClaims"
    if spec.resources is not None and (spec.resources.requests or spec.resources.limits):
        return f"{path}.resources"
    if spec.scheduling_group:
        return f"{path}.schedulingGroup"
    return f"{path}.workloadRef" if spec.workload_ref else ""


def of_marks(labels: Mapping[str, str], notes: Mapping[str, str], path: str = "metadata") -> str:
    """The first label or annotation of a pod that asks for another scheduler's group or a domain; empty for none."""
    if keys.COSCHEDULING_LABEL in labels and not any(key in notes for key in _OWN_GROUP):
        return child(f"{path}.labels", keys.COSCHEDULING_LABEL)
    asked = [key for key in (keys.TOPOLOGY_MODE, keys.TOPOLOGY_TIER) if key in notes]
    return child(f"{path}.annotations", asked[0]) if asked and notes.get(keys.TOPOLOGY_MODE) != _SOFT else ""


def of_topology(topology: RawTopology | None, path: str = "spec") -> str:
    """``networkTopology`` that has to hold; empty where there is none or it only prefers."""
    return f"{path}.networkTopology.mode" if topology is not None and topology.mode != _SOFT else ""


def of_group(topology: RawTopology | None, parts: Sequence[object] | None) -> str:
    """The first such field of a PodGroup's ``spec``; empty for none."""
    return of_topology(topology) or ("spec.subGroupPolicy" if parts else "")
