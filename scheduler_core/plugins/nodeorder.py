"""Plugin ``nodeorder``: which of the nodes that fit is best.

Extension point: node_order. Score = sum of weight x score (0 to 100).
Source: volcano-semantics 4.6; Kubernetes' scoring plugins of the same names.
Departure on purpose: scores that are scaled by their largest value (preferred nodes, soft taints, pod affinity) are
scaled over all nodes, not over those that happen to be feasible, so that a node's score does not depend on which
others were looked at. With ``compatibility: volcano`` they are scaled over the feasible ones, as upstream does."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from scheduler_core.algorithms.scoring import image_locality, normalised
from scheduler_core.framework.forms import Form, Term
from scheduler_core.framework.kernels.terms import BALANCED, LEAST, MOST, STATIC
from scheduler_core.framework.neighbours import Neighbours
from scheduler_core.framework.node_scores import ScoredByTerms
from scheduler_core.framework.plugin import Argument, number
from scheduler_core.framework.session import Session
from scheduler_core.state.status import Bools, Floats, Ints
from scheduler_core.state.task_class import TaskClass


def _weight(name: str, default: int, doc: str) -> Argument:
    return number(f"{name}.weight", default, (0, 1_000_000), doc)


class NodeOrder(ScoredByTerms):
    name: ClassVar[str] = "nodeorder"
    arguments: ClassVar[tuple[Argument, ...]] = (
        _weight("leastrequested", 1, "nodes with much free cpu and memory"),
        _weight("mostrequested", 0, "nodes with little free cpu and memory"),
        _weight("nodeaffinity", 2, "nodes that the pod prefers"),
        _weight("balancedresource", 1, "nodes whose cpu, memory and cards are used evenly"),
        _weight("tainttoleration", 3, "nodes with few PreferNoSchedule taints"),
        _weight("podaffinity", 2, "nodes near the pods whose company is preferred, on either side"),
        _weight("imagelocality", 1, "nodes that have the container images"),
        _weight("podtopologyspread", 2, "places with few pods, for spread constraints with ScheduleAnyway"),
    )

    def open(self, session: Session) -> None:
        super().open(session)
        self._index = session.node_index
        self._weights = {name.removesuffix(".weight"): int(value) for name, value in self.values.items()}
        self._static: dict[object, Floats] = {}
        self._neighbours = Neighbours(session)

    def volatile(self, cls: TaskClass) -> bool:
        """Company and spread change by placements of this very session, and so does which nodes are feasible."""
        return self._prefers_company(cls) or self._spreads(cls) or (self.session.compat and self._is_scaled(cls))

    def _is_scaled(self, cls: TaskClass) -> bool:
        """Some score of the class is a part of the largest one."""
        soft = self._index.intolerable(cls.tolerations, preferred=True)
        return bool(cls.preferred) or bool(soft.any())

    def _prefers_company(self, cls: TaskClass) -> bool:
        return self._weights["podaffinity"] > 0 and self._neighbours.has_preferences(cls)

    def _spreads(self, cls: TaskClass) -> bool:
        between = cls.relations
        soft = between is not None and any(not constraint.hard for constraint in between.spread)
        return soft and self._weights["podtopologyspread"] > 0

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        if point != "node_order":
            return None
        kinds = {"leastrequested": LEAST, "mostrequested": MOST, "balancedresource": BALANCED}
        terms = [Term(kind, float(self._weights[name])) for name, kind in kinds.items() if self._weights[name]]
        vectors = [Term(STATIC, of_class=of_class) for of_class in (self._unmoved, self._company, self._spread)]
        return [vectors[0], *terms, *vectors[1:]]

    def _unmoved(self, cls: TaskClass) -> Floats:
        among = self._among(cls)
        return self._fixed(cls) if among is None else self._made(cls, among)

    def _company(self, cls: TaskClass) -> Floats | None:
        if not self._prefers_company(cls):
            return None
        return self._weights["podaffinity"] * self._neighbours.preference_score(cls, self._among(cls))

    def _spread(self, cls: TaskClass) -> Floats | None:
        if not self._spreads(cls):
            return None
        return self._weights["podtopologyspread"] * self._neighbours.spread_score(cls, self._among(cls))

    def _among(self, cls: TaskClass) -> Bools | None:
        """The nodes over which scores are scaled; None = all."""
        return self.session.candidates.feasible_nodes(cls) if self.session.compat and self.volatile(cls) else None

    def _fixed(self, cls: TaskClass) -> Floats:
        """The part that no placement changes: preferred nodes, soft taints and images."""
        key = (cls.preferred, cls.tolerations, cls.images, cls.containers)
        fixed = self._static.get(key)
        if fixed is None:
            fixed = self._static[key] = self._made(cls, np.ones(len(self.session.nodes), dtype=np.bool_))
        return fixed

    def _made(self, cls: TaskClass, among: Bools) -> Floats:
        """That part, scaled over some of the nodes, bool (N,)."""
        fixed: Floats = np.zeros(len(self.session.nodes), dtype=np.float64)
        if cls.preferred and self._weights["nodeaffinity"]:
            raw: Ints = np.zeros(len(fixed), dtype=np.int64)
            for preference in cls.preferred:
                raw += preference.weight * self._index.term(preference.term)
            fixed += self._weights["nodeaffinity"] * normalised(raw * among)
        if self._weights["tainttoleration"]:
            raw = self._index.intolerable(cls.tolerations, preferred=True)
            fixed += self._weights["tainttoleration"] * normalised(raw * among, reverse=True)
        if cls.images and self._weights["imagelocality"]:
            fixed += self._weights["imagelocality"] * self._images(cls)
        return fixed

    def _images(self, cls: TaskClass) -> Floats:
        sizes: Ints = np.zeros((len(cls.images), len(self.session.nodes)), dtype=np.int64)
        for row, image in zip(sizes, cls.images, strict=True):
            row[:] = [node.images.get(image, 0) for node in self.session.nodes.nodes]
        return image_locality(sizes, cls.containers)
