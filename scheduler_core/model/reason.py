"""Why a gang waits: a closed code with numbers; the sentence is made where it is shown."""

import enum

import msgspec


class ReasonCode(enum.StrEnum):
    """The closed list; its order is the order in which they are tried, the first that holds wins."""

    SUSPENDED = "Suspended"
    MISCONFIGURED = "Misconfigured"
    NOT_SUPPORTED = "NotSupported"
    TIMED_OUT = "TimedOut"
    NO_MATCHING_CARD = "NoMatchingCard"
    QUEUE_CLOSED = "QueueClosed"
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
    GANG_INCOMPLETE = "GangIncomplete"
    WAITING_FOR_RECLAIM = "WaitingForReclaim"
    NOT_ALLOWED_IN_QUEUE = "NotAllowedInQueue"
    WAITING_FOR_QUOTA = "WaitingForQuota"
    OVER_COMMITTED = "OverCommitted"
    WAITING_FOR_CARDS = "WaitingForCards"
    NO_NODE_MATCHES = "NoNodeMatches"
    WAITING_FOR_RESOURCES = "WaitingForResources"
    FRAGMENTED = "Fragmented"
    BEHIND_HIGHER_PRIORITY = "BehindHigherPriority"
    RECLAIM_FORBIDDEN = "ReclaimForbidden"
    BACKING_OFF = "BackingOff"
    PENDING_EVALUATION = "PendingEvaluation"


# What kind of change may end a reason: more quota of the queue; or more free cards, where no quota is in the way.
ENDED_BY_QUOTA = frozenset({ReasonCode.WAITING_FOR_QUOTA, ReasonCode.EXCEEDS_MAX_QUOTA})
ENDED_BY_CARDS = frozenset(
    {ReasonCode.WAITING_FOR_CARDS, ReasonCode.FRAGMENTED, ReasonCode.OVER_COMMITTED, ReasonCode.RECLAIM_FORBIDDEN}
)
# The end of another gang may end these: it makes room, or gives quota back. Where taking back is forbidden it is waited
# for the gangs that may go, and nothing is tried.
ENDED_BY_AN_END = (ENDED_BY_CARDS - {ReasonCode.RECLAIM_FORBIDDEN}) | {
    ReasonCode.WAITING_FOR_QUOTA,
    ReasonCode.NO_NODE_MATCHES,
    ReasonCode.WAITING_FOR_RESOURCES,
}
# A promise to another gang of the same queue, admitted and without its cards, may be the cause of these.
BEHIND_A_PROMISE = frozenset(
    {
        ReasonCode.WAITING_FOR_QUOTA, ReasonCode.OVER_COMMITTED, ReasonCode.WAITING_FOR_CARDS,
        ReasonCode.BEHIND_HIGHER_PRIORITY,
    }
)  # fmt: skip


class Holder(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A gang that holds some of what is asked for; ``amount`` in the unit of the reason's resource. ``promised_since``:
    where some of it is only promised to an admitted gang, since when; seconds since the epoch."""

    gang: str
    queue: str
    amount: float
    promised_since: float | None = None


class ReasonNumbers(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The figures behind a reason. Cards as counts, cpu in milli-cores, memory (and storage, huge pages) in bytes.

    Attributes:
        field: path of the field that the scheduler does not support.
        resource: card name (``A|B`` for a choice), ``cpu``, ``memory``, ``pods`` or another resource of a node.
        requested, limit, allocated, inqueue, free, short: of that resource. holders: at most ten, the largest first.
        position: place in the queue, 1 = next. nodes: how many nodes said no, by reason."""

    field: str | None = None
    resource: str | None = None
    requested: float | None = None
    limit: float | None = None
    allocated: float | None = None
    inqueue: float | None = None
    free: float | None = None
    short: float | None = None
    holders: tuple[Holder, ...] | None = None
    position: int | None = None
    nodes: dict[str, int] | None = None


class Remedy(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The smallest single change that a session has shown to admit the gang."""

    change: str
    queue: str | None = None
    card: str | None = None
    by: float | None = None
    gang: str | None = None
    above: int | None = None
    verified: bool = True


class Reason(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Why ``podgroup`` (namespace/name) still needs something."""

    podgroup: str
    code: ReasonCode
    numbers: ReasonNumbers = ReasonNumbers()
    message: str = ""
    remedy: Remedy | None = None
