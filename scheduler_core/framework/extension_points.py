"""The named hooks of a session: how the answers of several plugins are combined, and which switch governs them.

Source: volcano-semantics 1.3 (switches) and 1.4 (combination rules). Orders are sort keys instead of comparisons:
the keys of the plugins, one after the other, decide exactly as "the first comparison that is not zero wins".
"""

from __future__ import annotations

import enum

import msgspec


class Combine(enum.StrEnum):
    """How the answers of the registered plugins become one."""

    KEY = "key"  # sort keys one after the other
    VOTE = "vote"  # any reject refuses; at the end of a tier with a permit, permitted
    ALL = "all"  # every one must agree, over all tiers; the first refusal is the answer
    ANY = "any"  # one is enough, over all tiers
    FIRST_TIER_ALL = "first_tier_all"  # only the first tier with a registrant, all of it
    VICTIMS = "victims"  # intersection in a tier, veto by an empty answer
    UNION = "union"  # union in a tier, the first tier that names any
    MASKS = "masks"  # node masks, all must hold
    SUM = "sum"  # node scores are added
    CALL_ALL = "call_all"  # no answer
    FIRST = "first"  # the first registrant's answer


class ExtensionPoint(msgspec.Struct, frozen=True, gc=False):
    """One hook.

    Attributes:
        name: snake case; a plugin registers by having a method of that name.
        combine: rule of combination.
        switch: key of :attr:`PluginOption.switches` that turns it off; empty = no switch.
    """

    name: str
    combine: Combine
    switch: str = ""


_P, _C = ExtensionPoint, Combine

EXTENSION_POINTS: tuple[ExtensionPoint, ...] = (
    _P("queue_order", _C.KEY, "queue_order"),
    _P("job_order", _C.KEY, "job_order"),
    _P("task_order", _C.KEY, "task_order"),
    _P("victim_queue_order", _C.KEY),
    _P("job_valid", _C.ALL),
    _P("job_ready", _C.ALL, "job_ready"),
    _P("job_pipelined", _C.VOTE, "job_pipelined"),
    _P("job_starving", _C.FIRST_TIER_ALL, "job_starving"),
    _P("job_enqueueable", _C.VOTE, "job_enqueued"),
    _P("job_enqueued", _C.CALL_ALL, "job_enqueued"),
    _P("overused", _C.ANY, "overused"),
    _P("allocatable", _C.ALL, "allocatable"),
    _P("preemptive", _C.ALL, "preemptive"),
    _P("preemptable", _C.VICTIMS, "preemptable"),
    _P("reclaimable", _C.VICTIMS, "reclaimable"),
    _P("unified_evictable", _C.VICTIMS),
    _P("victim_tasks", _C.UNION, "victim"),
    _P("predicate", _C.MASKS, "predicate"),
    _P("node_order", _C.SUM, "node_order"),
    # Ours: what a single task adds to what its class says, see Candidates.
    _P("task_predicate", _C.MASKS, "predicate"),
    _P("task_node_order", _C.SUM, "node_order"),
    # Ours: which cards of the chosen node, (cls, card, node) -> numbers or None; what has no room is passed over.
    _P("card_choice", _C.FIRST, "node_order"),
    _P("best_node", _C.FIRST, "best_node"),
    _P("target_job", _C.FIRST, "target_job"),
    _P("reserved_nodes", _C.CALL_ALL, "reserved_nodes"),
    # The per-pod cycle, see framework.pod_points; filter and score are predicate and node_order.
    _P("queue_sort", _C.KEY),
    _P("pre_filter", _C.ALL),
    _P("post_filter", _C.FIRST),
    _P("pre_score", _C.ALL),
    _P("normalize_score", _C.CALL_ALL),
    _P("reserve", _C.ALL),
    _P("unreserve", _C.CALL_ALL),
    _P("permit", _C.ALL),
    _P("pre_bind", _C.ALL),
    _P("bind", _C.FIRST),
    _P("post_bind", _C.CALL_ALL),
    # Ours: what is wrong with a gang as written, what its quota lacks, who may take back at all,
    # what a gang is for, what of a task's cpu and memory counts against its queue.
    _P("job_problem", _C.ALL),
    _P("quota_shortfall", _C.FIRST),
    _P("reclaimer", _C.ALL, "reclaimable"),
    _P("service_type", _C.FIRST),
    _P("quota_charge", _C.FIRST),
    # Ours: the sums of the queues are made; what the votes let in is refused by another plugin (compatibility only).
    _P("sums_made", _C.CALL_ALL),
    _P("overruled", _C.CALL_ALL),
    # Ours: annotations that go with a bind.
    _P("bind_notes", _C.CALL_ALL),
    # Ours: whether a gang that is pipelined by vote keeps what it found although it cannot start with it.
    _P("holds_partly", _C.ANY, "job_pipelined"),
    # Ours: what a queue deserves and how much of it is in use, for the result.
    _P("queue_deserved", _C.FIRST),
    _P("queue_share", _C.FIRST),
)

POINTS: dict[str, ExtensionPoint] = {point.name: point for point in EXTENSION_POINTS}

# As written in a policy file -> (switch, value when the file says nothing). Volcano spells some `enabledX`.
SWITCHES: dict[str, tuple[str, bool]] = {
    "enableJobOrder": ("job_order", True),
    "enableTaskOrder": ("task_order", True),
    "enableQueueOrder": ("queue_order", True),
    "enableJobReady": ("job_ready", True),
    "enableJobPipelined": ("job_pipelined", True),
    "enableJobStarving": ("job_starving", True),
    "enableJobEnqueued": ("job_enqueued", True),
    "enablePreemptable": ("preemptable", True),
    "enableReclaimable": ("reclaimable", True),
    "enablePreemptive": ("preemptive", True),
    "enablePredicate": ("predicate", True),
    "enableNodeOrder": ("node_order", True),
    "enableBestNode": ("best_node", True),
    "enableTargetJob": ("target_job", True),
    "enableReservedNodes": ("reserved_nodes", True),
    "enabledVictim": ("victim", True),
    "enabledOverused": ("overused", True),
    "enabledAllocatable": ("allocatable", True),
    "enabledHyperNodeOrder": ("hyper_node_order", True),
    "enabledHyperNodeGradient": ("hyper_node_gradient", True),
    "enabledSubJobReady": ("sub_job_ready", True),
    "enabledSubJobPipelined": ("sub_job_pipelined", True),
    "enabledSubJobOrder": ("sub_job_order", True),
    "enableHierarchy": ("hierarchy", False),
    "enabledClusterOrder": ("cluster_order", False),
}
