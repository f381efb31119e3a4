"""The built-in plugins: an explicit table by the name that a policy file uses."""

from scheduler_core.framework.plugin import Plugin
from scheduler_core.plugins.binpack import Binpack
from scheduler_core.plugins.capacity import Capacity
from scheduler_core.plugins.capacity_card import CapacityCard
from scheduler_core.plugins.card_model import CardModel
from scheduler_core.plugins.cdp import Cdp
from scheduler_core.plugins.conformance import Conformance
from scheduler_core.plugins.coscheduling import Coscheduling
from scheduler_core.plugins.default_preemption import DefaultPreemption
from scheduler_core.plugins.deviceshare import DeviceShare
from scheduler_core.plugins.drf import Drf
from scheduler_core.plugins.extender import Extender
from scheduler_core.plugins.fragmentation import Fragmentation
from scheduler_core.plugins.gang import Gang
from scheduler_core.plugins.machine_group import MachineGroup
from scheduler_core.plugins.nodegroup import NodeGroup
from scheduler_core.plugins.nodeorder import NodeOrder
from scheduler_core.plugins.numa_aware import NumaAware
from scheduler_core.plugins.overcommit import Overcommit
from scheduler_core.plugins.pdb import Pdb
from scheduler_core.plugins.predicates import Predicates
from scheduler_core.plugins.priority import Priority
from scheduler_core.plugins.priority_sort import PrioritySort
from scheduler_core.plugins.proportion import Proportion
from scheduler_core.plugins.requested_to_capacity_ratio import RequestedToCapacityRatio
from scheduler_core.plugins.rescheduling import Rescheduling
from scheduler_core.plugins.reservation import Reservation
from scheduler_core.plugins.resourcequota import ResourceQuotas
from scheduler_core.plugins.sla import Sla
from scheduler_core.plugins.task_topology import TaskTopology
from scheduler_core.plugins.tdm import Tdm
from scheduler_core.plugins.usage import Usage

PLUGINS: dict[str, type[Plugin]] = {
    plugin.name: plugin
    for plugin in (
        Binpack, Capacity, CapacityCard, CardModel, Cdp, Conformance, Coscheduling, DefaultPreemption, DeviceShare, Drf,
        Extender, Fragmentation, Gang, MachineGroup, NodeGroup, NodeOrder, NumaAware, Overcommit, Pdb, Predicates,
        Priority, PrioritySort, Proportion, RequestedToCapacityRatio, Rescheduling, Reservation, ResourceQuotas, Sla,
        TaskTopology, Tdm, Usage,
    )
}  # fmt: skip
