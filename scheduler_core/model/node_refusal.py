"""Why a node does not take a pod: the words of the built-in filters, a closed list. ``numbers.nodes`` of a reason
counts nodes by them. Beside these a node may be refused by an amount, as ``<resource> in use`` or ``<resource> too
small``, and by a plugin of one's own in its own words."""

from __future__ import annotations

import enum


class NodeRefusal(enum.StrEnum):
    """By filter; the values are what results show."""

    NO_SUCH_CARD = "no such card"
    TOO_FEW_CARDS = "too small"
    CARDS_IN_USE = "cards in use or promised"
    TOO_MANY_PODS = "too many pods"
    PROMISED = "room promised to others"
    UNSCHEDULABLE = "unschedulable"
    NODE_SELECTOR = "node selector"
    NODE_AFFINITY = "node affinity"
    TAINT = "taint"
    HOST_PORT = "host port"
    NO_TOPOLOGY_LABEL = "no topology label"
    TOPOLOGY_SPREAD = "topology spread"
    POD_AFFINITY = "pod affinity"
    POD_ANTI_AFFINITY = "pod anti-affinity"
    UNWANTED = "anti-affinity of other pods"
    CLAIM_MISSING = "volume claim missing"
    CLAIM_LEAVING = "volume claim is being deleted"
    CLAIM_UNBOUND = "unbound volume claim"
    VOLUME_LOST = "volume lost"
    VOLUME_MISSING = "volume missing"
    VOLUME_OF_ANOTHER = "volume claim bound to another's volume"
    VOLUME_AFFINITY = "volume node affinity"
    VOLUME_ZONE = "volume zone"
    NO_VOLUME = "no volume to bind"
    VOLUME_IN_USE = "volume in use"
    VOLUME_LIMIT = "volume limit"
    MACHINE_GROUP = "machine group"
    CARD_MODEL = "card model"
    RARE_CARD = "rare card"
    DEVICES = "devices"
    NUMA_POLICY = "numa policy"
    NUMA_CELLS = "numa cells"
    REVOCABLE_ZONE = "revocable zone"
    NODE_GROUP = "node group"
    RESERVED = "kept for an elected gang"
    EXTENDER = "extender"
    CPU_LOAD = "cpu load"
    MEMORY_LOAD = "memory load"
