"""What a session decided (``serde.result`` writes it as the result document)."""

import enum
from collections.abc import Sequence

import msgspec

from scheduler_core.model.finding import Finding
from scheduler_core.model.podgroup import GangCondition, GangPhase
from scheduler_core.model.reason import Reason
from scheduler_core.model.resources import Amount, cards_to_json

RESULT_VERSION = 1


class VictimRole(enum.StrEnum):
    """Why a pod leaves: chosen itself, or a sibling of one that was."""

    VICTIM = "victim"
    SIBLING = "sibling"


class Bind(msgspec.Struct, frozen=True, gc=False):
    """``pod`` (namespace/name) goes to ``node``; ``card`` is the type it takes there, ``card_indices`` which ones.
    ``notes`` are annotations that plugins want on the pod, for the agents of its node."""

    pod: str
    node: str
    card: str = ""
    card_indices: tuple[int, ...] = ()
    notes: dict[str, str] = {}


class Eviction(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """``pod`` leaves ``node`` so that ``reclaimer`` (a gang) can run."""

    pod: str
    node: str
    gang: str
    reclaimer: str
    action: str
    role: VictimRole
    reason: str


class GangOutcome(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    name: str
    queue: str
    service_type: str
    phase: GangPhase
    min_member: int
    ready: int
    bound: int
    conditions: tuple[GangCondition, ...] = ()
    # Not part of the contract's document; the host stores them.
    position: int | None = None
    cards: dict[str, int] = {}
    waiting_since: float = 0.0
    priority: int = 0


class QueueOutcome(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A queue as after the session; ``quota`` holds its capability and card quota."""

    name: str
    state: str
    quota: Amount
    allocated: Amount
    inqueue: Amount
    elastic: Amount
    deserved: Amount
    share: float


class ReclaimVictimGang(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """An evicted gang; ``cards`` in milli-cards by type, work lost in card-seconds. ``queue_priority`` and ``priority``
    come before the work lost in what it costs (not in the contract's document). ``last_restart``: its Job has been
    restarted as often as it may be, so that it fails."""

    gang: str
    queue: str
    pods: tuple[str, ...]
    cards: dict[str, int]
    work_lost_card_seconds: float
    queue_priority: int = 0
    priority: int = 0
    last_restart: bool = False


class Vote(msgspec.Struct, frozen=True, gc=False):
    """What one plugin said of the victims: permit, abstain or reject."""

    tier: int
    plugin: str
    vote: str


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """A candidate gang that was not taken, and the rule that said so."""

    gang: str
    rule: str


class NodeRoom(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What there would be on a node if one gang alone left: amounts of ``resource`` (a card type, or what a node has).

    Units as in the numbers of a reason: cards, milli-cores, bytes, counts. Of cards only those that a pod of the
    reclaimer could use: wholly free ones, or the most that is free on one card where a share is asked for.

    Attributes:
        free: before. frees: what the gang's leaving adds. needs: of one pod of the reclaimer.
        fits: pods of the reclaimer that would fit. short: for one pod, where none would fit."""

    node: str
    resource: str
    free: float
    frees: float
    needs: float
    fits: int
    short: float


class Alone(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What one gang's leaving would have made room for: ``fits`` of ``wanted`` pods, by node, the best nodes first."""

    fits: int
    wanted: int
    nodes: tuple[NodeRoom, ...]
    more_nodes: int = 0


class Candidate(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A gang that came into question and was not taken: what it would have cost, and the rule that decided.

    The cost is the one by which victims are chosen, as it was at that moment: queue priority, then gang priority, then
    work lost. ``frees_milli``: milli-cards of all types (milli-cores where no cards were asked for). ``alone``: where
    room decided, what there would have been."""

    gang: str
    queue: str
    queue_priority: int
    priority: int
    work_lost_card_seconds: float
    frees_milli: int
    rule: str
    alone: Alone | None = None


class QueueMoment(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A queue that gains or loses in a reclaim: its quota at that moment, its use before and after. Use is what is
    bound, running or promised; pods that leave do not count. Cards: those that moved. A card that ``quota`` does not
    name has no limit; cpu and memory 0 in it mean no limit."""

    queue: str
    quota: Amount
    before: Amount
    after: Amount


class Reclaim(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Which gang needed what, which gangs were evicted, and why that was allowed. ``queues``, ``candidates`` (by what
    they cost, bounded) and ``more_candidates`` (how many more there were) are not part of the contract's document; the
    host stores them."""

    reclaimer: str
    queue: str
    action: str
    needed: Amount
    freed: Amount
    victims: tuple[ReclaimVictimGang, ...]
    rule: str
    votes: tuple[Vote, ...] = ()
    refused: tuple[Refusal, ...] = ()
    queues: tuple[QueueMoment, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    more_candidates: int = 0


class Event(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A Kubernetes event that is to be written; ``kind`` Pod or PodGroup, ``type`` Normal or Warning."""

    kind: str
    name: str
    type: str
    reason: str
    message: str


class Result(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """All that one session decided; every list is sorted by name, and the long ones are made when they are read.

    Attributes:
        now: of the session, seconds since the epoch.
        binds: pods that get a place. pipelined: promises of room that is being freed. evictions: pods that leave.
        podgroups, queues: as they are once this is carried out; cards in milli-cards.
        reclaims: what each gang took and from which. reasons: why gangs wait. events: for Kubernetes.
        findings: of the snapshot, objects that could not be read or only in part.
        timings_ms: milliseconds by step; empty without a timer."""

    now: float
    binds: Sequence[Bind] = ()
    evictions: Sequence[Eviction] = ()
    pipelined: Sequence[Bind] = ()
    podgroups: Sequence[GangOutcome] = ()
    queues: Sequence[QueueOutcome] = ()
    reclaims: Sequence[Reclaim] = ()
    reasons: tuple[Reason, ...] = ()
    events: tuple[Event, ...] = ()
    findings: tuple[Finding, ...] = ()
    timings_ms: dict[str, float] = {}
    version: int = RESULT_VERSION


def cards_json(cards: dict[str, int]) -> dict[str, int | float]:
    """Milli-cards by type as counts by type, sorted."""
    return {name: cards_to_json(milli) for name, milli in sorted(cards.items()) if milli}
