"""Plugin ``requested-to-capacity-ratio``: nodes by how full they would be, along a line that the policy draws.

Extension point: node_order. For each named resource u = (request + allocated) / total in percent; the score is the
weighted mean of line(u), brought to 0..100 and multiplied by ``weight``. A line that rises packs, one that falls
spreads.
Source: document 003 and contracts 4; Kubernetes' RequestedToCapacityRatio. As the document has it and other than
Kubernetes: a resource whose score is zero stays in the divisor, and points may go up to 10 or up to 100 (``maxScore``).
As in Kubernetes: a node that has none of a resource counts as full of it, so that packing keeps tasks without cards off
the nodes with cards. Allocated is what will be in use once all that leaves has left, promises included."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from scheduler_core.framework.forms import Form, Term
from scheduler_core.framework.kernels.terms import SHAPE
from scheduler_core.framework.named_resources import NamedResources
from scheduler_core.framework.node_scores import ScoredByTerms
from scheduler_core.framework.plugin import Argument, number
from scheduler_core.framework.session import Session
from scheduler_core.state.status import Floats

_LOW, _HIGH = 10, 100


class RequestedToCapacityRatio(ScoredByTerms):
    name: ClassVar[str] = "requested-to-capacity-ratio"
    arguments: ClassVar[tuple[Argument, ...]] = (
        Argument(
            name="functionshape",
            aliases=("shape",),
            type="records",
            default=[{"utilization": 0.0, "score": 0.0}, {"utilization": 100.0, "score": 10.0}],
            fields=(
                number("utilization", 0.0, (0, 100), "percent"),
                number("score", 0.0, (0, _HIGH), "score there"),
            ),
            doc="points of the line, utilization rising; between two points it is straight",
        ),
        Argument(
            name="resourcetoweightmap", aliases=("resources",), type="weights", default={"cpu": 1, "memory": 1},
            minimum=0, maximum=1_000_000,
            doc="weight of each resource that counts: `cpu`, `memory`, an extended resource or a card type",
        ),
        number("weight", 1, (0, 1_000_000), "weight among the node scores"),
        number(
            "maxScore", 0, (0, _HIGH),
            "the highest score that a point may have, 10 or 100; 0 = 10 if no point is higher, else 100",
        ),
    )  # fmt: skip

    @classmethod
    def check(cls, values: Mapping[str, Any]) -> None:
        points, most = values["functionshape"], values["maxScore"]
        if not points:
            raise ValueError("functionshape has at least one point")
        for before, after in itertools.pairwise(points):
            if after["utilization"] <= before["utilization"]:
                raise ValueError(f"functionshape rises in utilization; {after['utilization']:g} does not")
        highest = max(point["score"] for point in points)
        if most and highest > most:
            raise ValueError(f"functionshape has the score {highest:g}, more than maxScore {most}")
        if not any(values["resourcetoweightmap"].values()):
            raise ValueError("resourcetoweightmap gives no resource a weight")

    def open(self, session: Session) -> None:
        super().open(session)
        points, weights = self.values["functionshape"], self.values["resourcetoweightmap"]
        self._at: Floats = np.array([point["utilization"] for point in points], dtype=np.float64)
        self._score: Floats = np.array([point["score"] for point in points], dtype=np.float64)
        self._resources = NamedResources(session, list(weights))
        self._weights: Floats = np.array(list(weights.values()), dtype=np.float64)
        most = self.values["maxScore"] or (_LOW if float(self._score.max()) <= _LOW else _HIGH)
        self._scale = float(self.values["weight"]) * 100.0 / most

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        if point != "node_order":
            return None
        line = self._at, self._score
        return [Term(SHAPE, self._scale, resources=self._resources, row_weights=self._weights, line=line)]
