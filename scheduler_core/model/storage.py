"""Volumes as far as they decide where a pod may be."""

import msgspec

from scheduler_core.model.selector import LabelSelector, NodeSelectorTerm


class VolumeClaim(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A PersistentVolumeClaim.

    Attributes:
        volume: name of the volume it is bound to; empty = not bound.
        storage_class: name; empty asks for volumes without a class; None = not said (the default class holds).
        access_modes: as written. mode: ``Filesystem`` or ``Block``. size: bytes asked for.
        selector: labels of the volumes that will do; empty = any.
        selected_node: node for which a volume is being made (``volume.kubernetes.io/selected-node``).
        lost: its volume is gone. leaving: it has a deletion timestamp."""

    namespace: str
    name: str
    volume: str = ""
    storage_class: str | None = None
    access_modes: tuple[str, ...] = ()
    mode: str = "Filesystem"
    size: int = 0
    selector: LabelSelector = ()
    selected_node: str = ""
    lost: bool = False
    leaving: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Volume(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A PersistentVolume.

    Attributes:
        capacity: bytes. claim: ``namespace/name`` of the claim it belongs to; empty = of none.
        nodes: required node affinity, a disjunction; None = any node.
        driver: what attaches it (a CSI driver, or the short name of an in-tree one); empty = nothing is attached.
        handle: its name at the driver. available: phase Available or not given."""

    name: str
    storage_class: str = ""
    access_modes: tuple[str, ...] = ()
    mode: str = "Filesystem"
    capacity: int = 0
    claim: str = ""
    nodes: tuple[NodeSelectorTerm, ...] | None = None
    labels: dict[str, str] = {}
    driver: str = ""
    handle: str = ""
    available: bool = True


class StorageClass(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A StorageClass. ``waits``: ``volumeBindingMode: WaitForFirstConsumer``. ``default``: marked as the cluster's
    default class. ``topologies``: ``allowedTopologies``, a disjunction; None = any node."""

    name: str
    provisioner: str = ""
    waits: bool = False
    default: bool = False
    created: float = 0.0
    topologies: tuple[NodeSelectorTerm, ...] | None = None
