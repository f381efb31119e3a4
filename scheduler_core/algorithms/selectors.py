"""Node selectors, taints and tolerations over all nodes at once. Source: Kubernetes' node affinity and taint
semantics."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from scheduler_core.model.node import Node, Taint
from scheduler_core.model.pod import Toleration
from scheduler_core.model.selector import NodeSelectorRequirement, NodeSelectorTerm

Bools = npt.NDArray[np.bool_]

NODE_NAME_FIELD = "metadata.name"


class NodeIndex:
    """Masks over nodes, each requirement computed once. O(N) per new requirement."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._masks: dict[NodeSelectorRequirement, Bools] = {}
        self._tolerated: dict[tuple[tuple[Toleration, ...], bool], npt.NDArray[np.int64]] = {}
        self._topologies: dict[str, tuple[npt.NDArray[np.int32], int]] = {}
        self._tainted = [(place, node.taints) for place, node in enumerate(nodes) if node.taints]
        self.unschedulable: Bools = np.array([node.unschedulable for node in nodes], dtype=np.bool_)

    @staticmethod
    def same_for(old: Node, new: Node) -> bool:
        """Whether all that an index asks of a node is the same for both."""
        return (
            old.name == new.name
            and old.labels == new.labels
            and old.taints == new.taints
            and old.unschedulable == new.unschedulable
        )

    def term(self, term: NodeSelectorTerm) -> Bools:
        """Nodes that meet every requirement of a term; an empty term meets none."""
        mask: Bools = np.full(len(self._nodes), bool(term), dtype=np.bool_)
        for requirement in term:
            mask &= self.requirement(requirement)
        return mask

    def requirement(self, requirement: NodeSelectorRequirement) -> Bools:
        mask = self._masks.get(requirement)
        if mask is None:
            holds, key = requirement.holds, requirement.key
            values = (node.name if key == NODE_NAME_FIELD else node.labels.get(key) for node in self._nodes)
            mask = np.fromiter((holds(value) for value in values), dtype=np.bool_, count=len(self._nodes))
            self._masks[requirement] = mask
        return mask

    def any_term(self, terms: tuple[NodeSelectorTerm, ...] | None) -> Bools:
        """Nodes that meet one of the terms; None asks for nothing."""
        if terms is None:
            return np.ones(len(self._nodes), dtype=np.bool_)
        mask: Bools = np.zeros(len(self._nodes), dtype=np.bool_)
        for term in terms:
            mask |= self.term(term)
        return mask

    def topology(self, key: str) -> tuple[npt.NDArray[np.int32], int]:
        """The place of each node by a label (-1 = it has none) and the number of places. O(N) per new label."""
        known = self._topologies.get(key)
        if known is None:
            numbers: dict[str, int] = {}
            values = (node.labels.get(key) for node in self._nodes)
            places = [-1 if value is None else numbers.setdefault(value, len(numbers)) for value in values]
            known = self._topologies[key] = (np.array(places, dtype=np.int32), len(numbers))
        return known

    def intolerable(self, tolerations: tuple[Toleration, ...], *, preferred: bool) -> npt.NDArray[np.int64]:
        """How many taints of each node are not tolerated: the binding ones, or those of PreferNoSchedule."""
        key = (tolerations, preferred)
        counts = self._tolerated.get(key)
        if counts is None:
            counts = np.zeros(len(self._nodes), dtype=np.int64)
            for place, taints in self._tainted:
                counts[place] = sum(
                    1
                    for taint in taints
                    if (taint.effect == "PreferNoSchedule") == preferred
                    and not any(tolerates(toleration, taint) for toleration in tolerations)
                )
            self._tolerated[key] = counts
        return counts


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Kubernetes' rule: an empty key with Exists matches every taint, an empty effect every effect."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.operator == "Exists":
        return not toleration.key or toleration.key == taint.key
    return toleration.key == taint.key and toleration.value == taint.value
