"""Plugin ``binpack``: of the nodes that fit, the one that gets fullest.

Extension point: node_order. Score = 100 x ``binpack.weight`` x sum of weight x (used + request) / capacity over the
resources that the task asks for and the policy names, divided by the sum of their weights; 0 where one of them would be
over its capacity. Cpu and memory always take part, other resources only where ``binpack.resources`` names them.
Source: volcano-semantics 4.7. On purpose: used is what will be used once all that leaves has left, promises included,
so that packing does not chase room that is about to be free (``compatibility: volcano``: what leaves counts, promises
do not); a card type may be named as well as its Kubernetes resource; a negative weight is an error, not 1."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from scheduler_core.framework.forms import Form, Term
from scheduler_core.framework.kernels.terms import PACK
from scheduler_core.framework.named_resources import NamedResources
from scheduler_core.framework.node_scores import ScoredByTerms
from scheduler_core.framework.plugin import Argument, number
from scheduler_core.framework.session import Session
from scheduler_core.state.status import Floats

_MOST = 1_000_000


class Binpack(ScoredByTerms):
    name: ClassVar[str] = "binpack"
    arguments: ClassVar[tuple[Argument, ...]] = (
        number("binpack.weight", 1, (0, _MOST), "weight of the whole score"),
        number("binpack.cpu", 1, (0, _MOST), "weight of cpu"),
        number("binpack.memory", 1, (0, _MOST), "weight of memory"),
        Argument(
            name="binpack.resources", type="list", default=[],
            doc="further resources that count, such as `nvidia.com/gpu` or a card type: names, or one text with commas",
        ),
        Argument(
            name="binpack.resources.<name>", type="int", default={}, minimum=0, maximum=_MOST,
            doc="weight of one of them, 1 where it is not given",
        ),
    )  # fmt: skip

    def open(self, session: Session) -> None:
        super().open(session)
        extra = list(dict.fromkeys(self.values["binpack.resources"]))
        own = self.values["binpack.resources.<name>"]
        self._resources = NamedResources(session, ["cpu", "memory", *extra])
        weights = [self.values["binpack.cpu"], self.values["binpack.memory"], *(own.get(name, 1) for name in extra)]
        self._weights: Floats = np.array(weights, dtype=np.float64)

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        if point != "node_order":
            return None
        scale = float(self.values["binpack.weight"])
        return [Term(PACK, scale, resources=self._resources, row_weights=self._weights)]
