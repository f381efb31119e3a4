from scheduler_core.algorithms.allowance import allowance
from scheduler_core.model.cards import CardRequest, CardType
from scheduler_core.model.decision import (
    Alone,
    Bind,
    Candidate,
    Event,
    GangOutcome,
    QueueMoment,
    QueueOutcome,
    Reclaim,
    ReclaimVictimGang,
    Result,
)
from scheduler_core.model.disruption import DisruptionBudget
from scheduler_core.model.edition import Edition
from scheduler_core.model.errors import BadInput, BrokenInvariant
from scheduler_core.model.memory import Memory
from scheduler_core.model.node import Node
from scheduler_core.model.node_refusal import NodeRefusal
from scheduler_core.model.pod import OwnerReference, Pod, PodPhase, ServiceType
from scheduler_core.model.podgroup import GangCondition, GangPhase, PodGroup
from scheduler_core.model.policy import Policy
from scheduler_core.model.queue import PriorityClass, Queue
from scheduler_core.model.reason import (
    BEHIND_A_PROMISE,
    ENDED_BY_CARDS,
    ENDED_BY_QUOTA,
    Reason,
    ReasonCode,
    ReasonNumbers,
)
from scheduler_core.model.resources import MIB, Amount, cards_to_json
from scheduler_core.model.rests import prolonged
from scheduler_core.model.rules import Rule, rule_of_text
from scheduler_core.model.snapshot import Snapshot

__all__ = [
    "BEHIND_A_PROMISE",
    "ENDED_BY_CARDS",
    "ENDED_BY_QUOTA",
    "MIB",
    "Alone",
    "Amount",
    "BadInput",
    "Bind",
    "BrokenInvariant",
    "Candidate",
    "CardRequest",
    "CardType",
    "DisruptionBudget",
    "Edition",
    "Event",
    "GangCondition",
    "GangOutcome",
    "GangPhase",
    "Memory",
    "Node",
    "NodeRefusal",
    "OwnerReference",
    "Pod",
    "PodGroup",
    "PodPhase",
    "Policy",
    "PriorityClass",
    "Queue",
    "QueueMoment",
    "QueueOutcome",
    "Reason",
    "ReasonCode",
    "ReasonNumbers",
    "Reclaim",
    "ReclaimVictimGang",
    "Result",
    "Rule",
    "ServiceType",
    "Snapshot",
    "allowance",
    "cards_to_json",
    "prolonged",
    "rule_of_text",
]
