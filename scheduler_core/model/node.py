"""Nodes and what they can hold."""

import msgspec

from scheduler_core.model.cards import NodeCards


class Taint(msgspec.Struct, frozen=True, gc=False):
    key: str
    value: str = ""
    effect: str = "NoSchedule"


class Node(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One node, immutable.

    Attributes:
        cpu_milli, memory_mib, pods: allocatable. cards: its cards by type, sorted by card name.
        scalars: allocatable of extended resources that are not cards, in whole units. unschedulable: cordoned.
        images: bytes of each container image on the node, by name with tag.
        volume_limits: how many volumes of a driver may be attached; keys are what follows ``attachable-volumes-``."""

    name: str
    uid: str = ""
    created: float = 0.0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    cpu_milli: int = 0
    memory_mib: int = 0
    pods: int = 110
    cards: tuple[NodeCards, ...] = ()
    scalars: dict[str, int] = {}
    images: dict[str, int] = {}
    volume_limits: dict[str, int] = {}
