"""Node selectors, taints and tolerations over all nodes at once.

Source: Kubernetes' node affinity and taint semantics.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from scheduler_core.model.node import Node, Taint
from scheduler_core.model.pod import NodeSelectorRequirement, NodeSelectorTerm, Toleration

Bools = npt.NDArray[np.bool_]

NODE_NAME_FIELD = "metadata.name"


class NodeIndex:
    """Masks over nodes, each requirement computed once. O(N) per new requirement."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self._nodes = nodes
        self._masks: dict[NodeSelectorRequirement, Bools] = {}
        self._tolerated: dict[tuple[tuple[Toleration, ...], bool], npt.NDArray[np.int64]] = {}
        self.unschedulable: Bools = np.array([node.unschedulable for node in nodes], dtype=np.bool_)

    def term(self, term: NodeSelectorTerm) -> Bools:
        """Nodes that meet every requirement of a term; an empty term meets none."""
        mask: Bools = np.full(len(self._nodes), bool(term), dtype=np.bool_)
        for requirement in term:
            mask &= self.requirement(requirement)
        return mask

    def requirement(self, requirement: NodeSelectorRequirement) -> Bools:
        """Nodes that meet one requirement."""
        mask = self._masks.get(requirement)
        if mask is None:
            holds = _test(requirement)
            key = requirement.key
            values = (node.name if key == NODE_NAME_FIELD else node.labels.get(key) for node in self._nodes)
            mask = np.fromiter((holds(value) for value in values), dtype=np.bool_, count=len(self._nodes))
            self._masks[requirement] = mask
        return mask

    def intolerable(self, tolerations: tuple[Toleration, ...], *, preferred: bool) -> npt.NDArray[np.int64]:
        """How many taints of each node are not tolerated: the binding ones, or those of PreferNoSchedule."""
        key = (tolerations, preferred)
        counts = self._tolerated.get(key)
        if counts is None:
            counts = np.array(
                [
                    sum(
                        1
                        for taint in node.taints
                        if (taint.effect == "PreferNoSchedule") == preferred
                        and not any(tolerates(toleration, taint) for toleration in tolerations)
                    )
                    for node in self._nodes
                ],
                dtype=np.int64,
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


def _test(requirement: NodeSelectorRequirement) -> Callable[[str | None], bool]:
    values = frozenset(requirement.values)
    operator = requirement.operator
    if operator == "In":
        return lambda value: value in values
    if operator == "NotIn":
        return lambda value: value not in values
    if operator == "Exists":
        return lambda value: value is not None
    if operator == "DoesNotExist":
        return lambda value: value is None
    bound = int(requirement.values[0])
    if operator == "Gt":
        return lambda value: (number := _integer(value)) is not None and number > bound
    return lambda value: (number := _integer(value)) is not None and number < bound


def _integer(value: str | None) -> int | None:
    try:
        return None if value is None else int(value)
    except ValueError:
        return None
