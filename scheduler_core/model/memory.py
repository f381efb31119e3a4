"""What the scheduler keeps from one session to the next."""

import msgspec

from scheduler_core.model.queued_pod import QueuedPod

MEMORY_VERSION = 1


class Reservation(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Room on a node that is promised to a pod until ``expires``: what eviction freed is not given to others.

    Attributes:
        pod, gang: namespace/name. node: where. card, card_indices: which cards there.
        victims: pods that must be gone first. made, expires: seconds since the epoch.
        attempts: how often the per-pod cycle had tried the pod when it got the place."""

    pod: str
    gang: str
    node: str
    card: str = ""
    card_indices: tuple[int, ...] = ()
    victims: tuple[str, ...] = ()
    made: float = 0.0
    expires: float = 0.0
    attempts: int = 0


class Election(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The one gang that nodes are kept free for, until it starts or goes. ``gang``: namespace/name. ``nodes``: by name,
    they take no other gang. ``since``: when it was elected, seconds since the epoch."""

    gang: str
    nodes: tuple[str, ...] = ()
    since: float = 0.0


class Rest(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A gang that is left alone for a while. ``gang``: namespace/name, or the lasting name of what comes back under a
    new PodGroup. ``why``: in words. ``until``: seconds since the epoch. ``seconds``: how long; the next time it is
    twice as long. ``cools``: it was evicted, and rests for that alone: no longer the next time."""

    gang: str
    why: str
    until: float
    seconds: float
    cools: bool = False


class AssumedPod(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A bind that was decided and that the cluster has not shown yet: the pod holds its place until ``expires``.
    ``pod``: namespace/name. ``uid``: of the pod then, a new one of the same name is another pod. ``node``: where.
    ``card``, ``card_indices``: which cards there. ``made``, ``expires``: seconds since the epoch; None = binding."""

    pod: str
    node: str
    uid: str = ""
    card: str = ""
    card_indices: tuple[int, ...] = ()
    made: float = 0.0
    expires: float | None = None


class Memory(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Carried from session to session; stored with the session row, so it survives a crash.

    Attributes:
        reservations: by pod.
        submitted: gang -> the time it was first seen waiting, seconds since the epoch; keeps the place of a gang
            that was restarted under a new PodGroup.
        owners: lasting name -> uid of the owner, as far as it is known, of the gangs that have a place in ``submitted``
            or a cool-down in ``spared``: a gang of another owner has neither.
        told: gang -> what its last event said, so that it is said once.
        admitted: gang -> when it was admitted, for those that have no place yet; seconds since the epoch.
        election: whom actions ``elect`` and ``reserve`` keep nodes for.
        acted: plugin's key -> when it last did what it does only every so often, see ``Plugin.remember``.
        spared: gangs that are no victims for now: evicted not long ago, or the cluster does not let them go.
        backing_off: gangs that are not tried for now: not all of their members could be bound.
        assumed: binds that the cluster has not shown yet, by pod.
        queue, cycle, move_cycle: the scheduling queue of the per-pod cycle, and its counters.
        events: digests of the cluster after the session's decisions, by what they are of (:data:`Event`): where the
            next session finds another one, something has happened that may help the pods which wait for such."""

    version: int = MEMORY_VERSION
    reservations: tuple[Reservation, ...] = ()
    submitted: dict[str, float] = {}
    owners: dict[str, str] = {}
    told: dict[str, str] = {}
    admitted: dict[str, float] = {}
    election: Election | None = None
    acted: dict[str, float] = {}
    spared: tuple[Rest, ...] = ()
    backing_off: tuple[Rest, ...] = ()
    assumed: tuple[AssumedPod, ...] = ()
    queue: tuple[QueuedPod, ...] = ()
    cycle: int = 0
    move_cycle: int = -1
    events: dict[str, str] = {}
