"""Naive plugins by the name that a policy uses: one file each, see :mod:`tests.reference.hooks` for their points."""

from __future__ import annotations

from tests.reference.plugins.capacity_card import CapacityCard
from tests.reference.plugins.conformance import Conformance
from tests.reference.plugins.gang import Gang
from tests.reference.plugins.nodeorder import NodeOrder
from tests.reference.plugins.predicates import Predicates
from tests.reference.plugins.priority import Priority

NAIVE = {
    "capacity-card": CapacityCard,
    "conformance": Conformance,
    "gang": Gang,
    "nodeorder": NodeOrder,
    "predicates": Predicates,
    "priority": Priority,
}
