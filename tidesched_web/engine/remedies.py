from collections.abc import Callable
from typing import Any

import msgspec

from scheduler_core.framework import remedies
from scheduler_core.model.same_gang import lasting_name
from tidesched_web.engine.admitted import with_pods
from tidesched_web.engine.model import ENDED_BY_CARDS, MIB, Memory, Reason, Result, ServiceType, Snapshot
from tidesched_web.engine.what_if import Picture


class Interrupted(Exception):
    """A more urgent question came while a gang was looked at; nothing is known of this gang."""


def reasons_of(picture: Picture) -> dict[str, Reason]:
    return {reason.podgroup: reason for reason in picture.before.reasons}


class Answer(msgspec.Struct, frozen=True):
    """``starts``: it gets all that it lacks, not only admission. ``first``: who would get what is freed."""

    remedy: dict[str, Any] | None
    starts: bool
    first: str = ""
    endless: float = 0.0


def remedy(picture: Picture, reason: Reason, *, urgent: Callable[[], bool]) -> Answer:
    """Each try is a session; ``urgent`` is asked before each. A Job without pods is tried with its wished ones."""

    def session(changed: Snapshot) -> Result:
        if urgent():
            raise Interrupted
        return picture.decide(changed)

    snapshot = with_pods(picture.snapshot, {reason.podgroup}, least=True)
    starts = any(pod.group_key == reason.podgroup for pod in snapshot.pods)
    endless = {one.name for one in picture.before.podgroups if one.service_type == ServiceType.INFERENCE}
    found = remedies.search(snapshot, reason, session, endless=endless, waiting=_rivals(picture, reason))
    if found.remedy is None:
        return Answer(None, starts, found.first, _held(snapshot, reason, endless))
    shown = msgspec.to_builtins(found.remedy) | {"verified": found.remedy.verified}
    if found.remedy.gang and not any(pod.node and pod.group_key == found.remedy.gang for pod in snapshot.pods):
        shown["waits"] = True  # it holds a promise only
    return Answer(shown, starts)


def _rivals(picture: Picture, reason: Reason) -> set[str]:
    wanted = set((reason.numbers.resource or "").split("|"))
    waiting = (one for one in picture.before.reasons if one.code != "WaitingForReclaim")
    same = {one.podgroup for one in waiting if wanted & set((one.numbers.resource or "").split("|"))}
    return same - {reason.podgroup}


def _held(snapshot: Snapshot, reason: Reason, gangs: set[str]) -> float:
    """Cards of the kind that a gang lacks that these gangs hold; only where the cluster has too few of them free."""
    if reason.code not in ENDED_BY_CARDS:
        return 0.0
    wanted = set((reason.numbers.resource or "").split("|"))
    bound = (pod for pod in snapshot.pods if pod.node and not pod.finished and pod.group_key in gangs)
    return sum(pod.card.milli for pod in bound if pod.card is not None and wanted & set(pod.card.names)) / 1000


def expected_at(picture: Picture, reason: Reason) -> tuple[float, str] | None:
    """Seconds since the epoch. Known are the end of the pods that leave for it and the end of its back-off."""
    memory = picture.memory
    if memory is None:
        return None
    if reason.code == "BackingOff":
        ends = [rest.until for rest in memory.backing_off if rest.gang in _names(picture.snapshot, reason.podgroup)]
        return (max(ends), "back_off") if ends and max(ends) > picture.now else None
    return _leaving(picture, memory, reason.podgroup) if reason.code == "WaitingForReclaim" else None


def _leaving(picture: Picture, memory: Memory, gang: str) -> tuple[float, str] | None:
    victims = {pod for kept in memory.reservations if kept.gang == gang for pod in kept.victims}
    ends = [pod.deleted for pod in picture.snapshot.pods if pod.deleted is not None and pod.key in victims]
    return (max(ends), "pods_leave") if ends and max(ends) > picture.now else None


def _names(snapshot: Snapshot, gang: str) -> set[str]:
    group = next((group for group in snapshot.pod_groups if group.key == gang), None)
    return {gang} if group is None else {gang, lasting_name(group)}


# How the engine says that a node could not take a pod even if it were empty: so, or after the resource.
_TOO_SMALL = "too small"


def too_large(picture: Picture, reason: Reason) -> list[dict[str, Any]]:
    """In the reasons' units. Empty where no node is too small, or where each amount by itself would fit one of them."""
    if not any(said.endswith(_TOO_SMALL) for said in reason.numbers.nodes or ()):
        return []
    asked = {"cpu": 0, "memory": 0, "cards": 0.0}
    for pod in picture.snapshot.pods:
        if pod.group_key == reason.podgroup and not pod.node and not pod.finished:
            asked["cpu"] = max(asked["cpu"], pod.cpu_milli)
            asked["memory"] = max(asked["memory"], pod.memory_mib * MIB)
            asked["cards"] = max(asked["cards"], pod.card.milli / 1000 if pod.card else 0)
    cards = set((reason.numbers.resource or "").split("|"))
    nodes = picture.snapshot.nodes
    fitting = [node for node in nodes if cards & {held.card for held in node.cards}] or nodes
    largest = {
        "cpu": max((node.cpu_milli for node in fitting), default=0),
        "memory": max((node.memory_mib * MIB for node in fitting), default=0),
        "cards": max((held.count for node in fitting for held in node.cards if held.card in cards), default=0),
    }
    names = {"cards": reason.numbers.resource or ""}
    return [
        {"resource": names.get(name, name), "asked": asked[name], "largest": largest[name]}
        for name in asked
        if asked[name] > largest[name] > 0
    ]
