"""Naive plugins by the name that a policy uses: one file each, see :mod:`tests.reference.hooks` for their points."""

from __future__ import annotations

from tests.reference.plugins.binpack import Binpack
from tests.reference.plugins.capacity import Capacity
from tests.reference.plugins.capacity_card import CapacityCard
from tests.reference.plugins.card_model import CardModel
from tests.reference.plugins.cdp import Cdp
from tests.reference.plugins.conformance import Conformance
from tests.reference.plugins.coscheduling import Coscheduling
from tests.reference.plugins.default_preemption import DefaultPreemption
from tests.reference.plugins.deviceshare import DeviceShare
from tests.reference.plugins.drf import Drf
from tests.reference.plugins.extender import Extender
from tests.reference.plugins.fragmentation import Fragmentation
from tests.reference.plugins.gang import Gang
from tests.reference.plugins.machine_group import MachineGroup
from tests.reference.plugins.nodegroup import NodeGroup
from tests.reference.plugins.nodeorder import NodeOrder
from tests.reference.plugins.numa_aware import NumaAware
from tests.reference.plugins.overcommit import Overcommit
from tests.reference.plugins.pdb import Pdb
from tests.reference.plugins.predicates import Predicates
from tests.reference.plugins.priority import Priority
from tests.reference.plugins.priority_sort import PrioritySort
from tests.reference.plugins.proportion import Proportion
from tests.reference.plugins.requested_to_capacity_ratio import RequestedToCapacityRatio
from tests.reference.plugins.rescheduling import Rescheduling
from tests.reference.plugins.reservation import Reservation
from tests.reference.plugins.resourcequota import ResourceQuota
from tests.reference.plugins.sla import Sla
from tests.reference.plugins.task_topology import TaskTopology
from tests.reference.plugins.tdm import Tdm
from tests.reference.plugins.usage import Usage

NAIVE = {
    "binpack": Binpack,
    "capacity": Capacity,
    "capacity-card": CapacityCard,
    "card-model": CardModel,
    "cdp": Cdp,
    "conformance": Conformance,
    "coscheduling": Coscheduling,
    "default-preemption": DefaultPreemption,
    "deviceshare": DeviceShare,
    "drf": Drf,
    "extender": Extender,
    "fragmentation": Fragmentation,
    "gang": Gang,
    "machine-group": MachineGroup,
    "nodegroup": NodeGroup,
    "nodeorder": NodeOrder,
    "numa-aware": NumaAware,
    "overcommit": Overcommit,
    "pdb": Pdb,
    "predicates": Predicates,
    "priority": Priority,
    "priority-sort": PrioritySort,
    "proportion": Proportion,
    "requested-to-capacity-ratio": RequestedToCapacityRatio,
    "rescheduling": Rescheduling,
    "reservation": Reservation,
    "resourcequota": ResourceQuota,
    "sla": Sla,
    "task-topology": TaskTopology,
    "tdm": Tdm,
    "usage": Usage,
}
