"""All that a session knows about one gang that waits: every node and every possible victim, each with its reason."""

import msgspec

from scheduler_core.model.reason import Reason


class NodeCandidate(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One node and one kind of member. ``fits``: ``now``, ``later`` (once what leaves has left) or empty. ``refusal``:
    the first obstacle, empty where it fits. ``resource``, ``requested``, ``free``: where an amount is short, in the
    units of the result (milli-cores, bytes, counts). ``score``: what the policy gives the node."""

    node: str
    fits: str = ""
    refusal: str = ""
    resource: str = ""
    requested: float = 0
    free: float = 0
    score: float = 0.0


class MemberCandidates(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Members with equal needs, and every node for them."""

    pods: tuple[str, ...]
    nodes: tuple[NodeCandidate, ...]


class VictimCandidate(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A gang that could have made room, and the rule that kept it."""

    gang: str
    queue: str
    rule: str


class Explanation(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What a session says of one gang. ``reason``: None when nothing keeps it waiting. ``phase``: after the session.
    ``decision``: what it got, one sentence. ``quota``: sentence about the first limit of its queue that it meets, empty
    = none."""

    podgroup: str
    queue: str
    phase: str
    decision: str
    reason: Reason | None = None
    quota: str = ""
    members: tuple[MemberCandidates, ...] = ()
    victims: tuple[VictimCandidate, ...] = ()
