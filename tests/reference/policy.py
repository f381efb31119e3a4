"""The policy that the naive scheduler follows: which naive plugins vote, and the founding policy's own numbers."""

from __future__ import annotations

from tests.reference.hooks import Hooks
from tests.reference.plugins import NAIVE

# What the founding policy says, for the sums that are counted without asking a plugin.
FOUNDING = {
    "overCommitFactor": 2.0,
    "cardUnlimitedCpuMemory": True,
    "podOwnerReferenceToServiceType": {"ReplicaSet": "inference", "Deployment": "inference", "Job": "training"},
    "unknownReclaimer": "deny",
    "reservationSeconds": 120.0,
}
# The same where no capacity-card is in the policy.
PLAIN = {
    "overCommitFactor": 1.0,
    "cardUnlimitedCpuMemory": False,
    "podOwnerReferenceToServiceType": {},
    "unknownReclaimer": "deny",
    "reservationSeconds": 120.0,
}
_FOUNDING_TIERS = (
    (("priority", {}), ("gang", {"reclaimable": False}), ("conformance", {"reclaimable": False})),
    (("predicates", {}), ("capacity-card", {}), ("nodeorder", {})),
)
FOUNDING_ACTIONS = ("enqueue", "allocate", "backfill", "reclaim")


def options_of(policy, options):
    """FOUNDING with ``options`` over it, or what the policy's capacity-card is told."""
    if policy is None:
        return {**FOUNDING, **(options or {})}
    given = [option.arguments for tier in policy.tiers for option in tier if option.name == "capacity-card"]
    return {**PLAIN, **(given[0] if given else {}), **policy.action_arguments.get("reclaim", {})}


def hooks_of(policy, options):
    """The naive plugins in their tiers.

    Raises:
        KeyError: a plugin of the policy has no naive version.
    """
    if policy is None:
        arguments = {"capacity-card": options}
        tiers = [[(NAIVE[n](arguments.get(n, {})), switches) for n, switches in tier] for tier in _FOUNDING_TIERS]
    else:
        tiers = [[(_made(option), option.switches) for option in tier] for tier in policy.tiers]
    return Hooks(tiers)


def _made(option):
    plugin = NAIVE[option.name](option.arguments)
    plugin.switches = option.switches
    return plugin


def install(world, policy=None):
    """Give a world its hooks."""
    world["hooks"] = hooks_of(policy, world["options"])
    world["actions"] = FOUNDING_ACTIONS if policy is None else policy.actions
    world["action_arguments"] = {} if policy is None else policy.action_arguments
    world["falls_whole"] = any(getattr(p, "falls_whole", False) for tier in world["hooks"].tiers for p, _ in tier)
    return world
