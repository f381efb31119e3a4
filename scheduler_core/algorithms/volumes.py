"""Which nodes the volumes of a pod allow, as far as claims, volumes and storage classes show.

Source: Kubernetes' VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits. Departures on purpose: a claim
(volume) that the snapshot does not hold is no obstacle where it holds no claims (volumes) at all, because then they
were not collected; a claim that names its volume counts as bound."""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from scheduler_core.algorithms.selectors import NodeIndex
from scheduler_core.model.node_refusal import NodeRefusal
from scheduler_core.model.selector import matches
from scheduler_core.model.snapshot import Snapshot
from scheduler_core.model.storage import StorageClass, Volume, VolumeClaim

Bools = npt.NDArray[np.bool_]

NO_PROVISIONER = "kubernetes.io/no-provisioner"
SINGLE_POD = "ReadWriteOncePod"
# Labels of a volume that say in which zones or regions it is; several values are joined by two underscores.
ZONE_LABELS = (
    "failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/region", "topology.kubernetes.io/zone",
)  # fmt: skip


class Needs(msgspec.Struct, frozen=True):
    """What the claims of a pod come to.

    Attributes:
        problem: why no node will do; empty = nothing is wrong.
        bound: volumes that are there. waiting: claims that get theirs once the pod has a node, smallest first.
        single: keys of claims that one pod alone may use.
        attached: (driver, name) of every volume that is attached to the node, known or to be made."""

    problem: str = ""
    bound: tuple[Volume, ...] = ()
    waiting: tuple[VolumeClaim, ...] = ()
    single: tuple[str, ...] = ()
    attached: tuple[tuple[str, str], ...] = ()


class Storage:
    def __init__(self, snapshot: Snapshot, index: NodeIndex) -> None:
        self._index = index
        self._nodes = snapshot.nodes
        self._claims = {claim.key: claim for claim in snapshot.claims}
        self._volumes = {volume.name: volume for volume in snapshot.volumes}
        self._classes = {one.name: one for one in snapshot.storage_classes}
        defaults = [one for one in snapshot.storage_classes if one.default]
        # Kubernetes takes the youngest where several call themselves the default.
        self._default = min(defaults, key=lambda one: (-one.created, one.name)).name if defaults else ""
        self._free: list[Volume] = sorted(
            (volume for volume in snapshot.volumes if volume.available), key=lambda one: (one.capacity, one.name)
        )
        self._nodes_of: dict[str, Bools] = {}

    def needs(self, namespace: str, names: Iterable[str]) -> Needs:
        bound: list[Volume] = []
        waiting: list[VolumeClaim] = []
        single: list[str] = []
        attached: list[tuple[str, str]] = []
        for name in names:
            claim = self._claims.get(f"{namespace}/{name}")
            if claim is None:
                return Needs(NodeRefusal.CLAIM_MISSING)
            problem = self._add(claim, bound, waiting, attached)
            if problem:
                return Needs(problem)
            if SINGLE_POD in claim.access_modes:
                single.append(claim.key)
        waiting.sort(key=lambda claim: (claim.size, claim.name))
        return Needs("", tuple(bound), tuple(waiting), tuple(single), tuple(dict.fromkeys(attached)))

    def _add(
        self, claim: VolumeClaim, bound: list[Volume], waiting: list[VolumeClaim], attached: list[tuple[str, str]]
    ) -> str:
        """Put one claim where it belongs; what is wrong with it, or nothing."""
        if claim.leaving:
            return NodeRefusal.CLAIM_LEAVING
        if claim.lost:
            return NodeRefusal.VOLUME_LOST
        if claim.volume:
            volume = self._volumes.get(claim.volume)
            if volume is None:
                return NodeRefusal.VOLUME_MISSING if self._volumes else ""
            if volume.claim and volume.claim != claim.key:
                return NodeRefusal.VOLUME_OF_ANOTHER
            bound.append(volume)
            if volume.driver:
                attached.append((volume.driver, volume.handle))
            return ""
        storage_class = self._class_of(claim)
        if storage_class is None or not storage_class.waits:
            return NodeRefusal.CLAIM_UNBOUND
        waiting.append(claim)
        if storage_class.provisioner and storage_class.provisioner != NO_PROVISIONER:
            attached.append((f"csi-{storage_class.provisioner}", f"claim {claim.key}"))
        return ""

    def _class_of(self, claim: VolumeClaim) -> StorageClass | None:
        name = self._default if claim.storage_class is None else claim.storage_class
        return self._classes.get(name)

    def near(self, volumes: Sequence[Volume]) -> Bools:
        """Nodes from which all of these volumes can be reached: their node affinity."""
        mask: Bools = np.ones(len(self._nodes), dtype=np.bool_)
        for volume in volumes:
            mask &= self._index.any_term(volume.nodes)
        return mask

    def in_zone(self, volumes: Sequence[Volume]) -> Bools:
        """Nodes in the zones and regions of the volumes' labels; a node with no such label at all is not asked."""
        mask: Bools = np.ones(len(self._nodes), dtype=np.bool_)
        for volume in volumes:
            for key in ZONE_LABELS:
                if key in volume.labels:
                    allowed = frozenset(volume.labels[key].split("__"))
                    mask &= np.fromiter((node.labels.get(key) in allowed for node in self._nodes), np.bool_, len(mask))
        if mask.all():
            return mask
        unlabelled = (not any(key in node.labels for key in ZONE_LABELS) for node in self._nodes)
        mask |= np.fromiter(unlabelled, np.bool_, len(mask))
        return mask

    def can_bind(self, waiting: Sequence[VolumeClaim], taken: frozenset[str]) -> Bools:
        """Nodes where every waiting claim finds a volume of its own, or one can be made for it. ``taken``: names of
        volumes that others have taken since the snapshot. Complexity: O(N) for claims that find no volume, else
        O(volumes x claims) and one step a (node, volume) pair."""
        fitting = [
            [volume for volume in self._free if volume.name not in taken and self._fits(claim, volume)]
            for claim in waiting
        ]
        possible: Bools = np.ones(len(self._nodes), dtype=np.bool_)
        for claim, volumes in zip(waiting, fitting, strict=True):
            mask = self._can_make(claim)
            for volume in volumes:
                mask = mask | self._nodes_with(volume)
            if claim.selected_node:
                mask = mask & np.fromiter((node.name == claim.selected_node for node in self._nodes), np.bool_)
            possible &= mask
        if sum(1 for volumes in fitting if volumes) < 2:
            return possible
        for node in np.flatnonzero(possible).tolist():
            possible[node] = self.choose(waiting, node, taken) is not None
        return possible

    def choose(
        self, waiting: Sequence[VolumeClaim], node: int, taken: frozenset[str] = frozenset()
    ) -> tuple[str, ...] | None:
        """Names of the volumes that the claims take on a node, the smallest that fits each; None = not all can."""
        used: dict[str, None] = dict.fromkeys(taken)
        chosen = []
        for claim in waiting:
            found = next(
                (
                    volume.name
                    for volume in self._free
                    if volume.name not in used and self._fits(claim, volume) and self._nodes_with(volume)[node]
                ),
                None,
            )
            if found is not None:
                used[found] = None
                chosen.append(found)
            elif not self._can_make(claim)[node]:
                return None
        return tuple(chosen)

    def _fits(self, claim: VolumeClaim, volume: Volume) -> bool:
        if volume.claim:
            return volume.claim == claim.key
        storage_class = self._class_of(claim)
        return (
            storage_class is not None
            and volume.storage_class == storage_class.name
            and volume.mode == claim.mode
            and volume.capacity >= claim.size
            and set(claim.access_modes) <= set(volume.access_modes)
            and matches(claim.selector, volume.labels)
        )

    def _can_make(self, claim: VolumeClaim) -> Bools:
        """Nodes for which the class of the claim can make a volume."""
        storage_class = self._class_of(claim)
        if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER) or claim.selector:
            return np.zeros(len(self._nodes), dtype=np.bool_)
        return self._index.any_term(storage_class.topologies)

    def _nodes_with(self, volume: Volume) -> Bools:
        mask = self._nodes_of.get(volume.name)
        if mask is None:
            mask = self._nodes_of[volume.name] = self._index.any_term(volume.nodes)
        return mask
