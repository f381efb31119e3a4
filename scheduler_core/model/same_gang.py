"""Which PodGroup goes on from an earlier one: a controller that restarts a workload makes its PodGroup anew."""

from scheduler_core.model.podgroup import PodGroup


def lasting_name(group: PodGroup) -> str:
    """Name that stays the same when a controller makes the PodGroup anew: its owner's, else its own. Returns:
    ``namespace/kind/name`` of the owner, or ``namespace/name`` of a PodGroup without one."""
    if group.owner_kind and group.owner_name:
        return f"{group.namespace}/{group.owner_kind}/{group.owner_name}"
    return f"{group.namespace}/{group.name}"


def goes_on(group: PodGroup, *, owner_uid: str, at: float) -> bool:
    """True where ``group`` is the gang of an earlier PodGroup of its lasting name, and not another of that name.

    1. Both PodGroups name the uid of their owner: it is the same gang where the owner is the same object.
    2. Else the Job that owns ``group`` has to be made no later than ``at``.
    3. Where neither is known, ``group`` has to say itself (``submitted``) that it was submitted no later than ``at``,
       and before it was made.

    Args:
        owner_uid: uid of the earlier PodGroup's owner, empty = not known.
        at: a time at which the earlier one was there, seconds since the epoch."""
    if group.owner_uid and owner_uid:
        return group.owner_uid == owner_uid
    if group.owner_created is not None:
        return group.owner_created <= at
    return group.submitted is not None and group.submitted < group.created and group.submitted <= at
