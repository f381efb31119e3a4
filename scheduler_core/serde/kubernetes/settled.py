"""Pods with what other objects say of them: the card types of the cluster and the values of priority classes."""

from collections.abc import Iterable
from typing import Any

import msgspec

from scheduler_core.model.edition import Edition
from scheduler_core.model.journal import Journal
from scheduler_core.model.pod import Pod
from scheduler_core.model.pod_notes import Likenesses
from scheduler_core.serde.kubernetes.catalogue import Catalogue
from scheduler_core.serde.kubernetes.classes import Classes
from scheduler_core.serde.kubernetes.pod import PodRecord
from scheduler_core.serde.kubernetes.products import named_products


class Settled(msgspec.Struct, frozen=True, gc=False):
    """A pod as it is in snapshots, what it was made of, its gang, and what is wrong with it."""

    record: PodRecord
    pod: Pod
    gang: str
    problem: str
    unsupported: str


class SettledPods:
    """All pods by name, and who is in which gang; settled once and again when card types or classes change."""

    def __init__(self, schedulers: Iterable[str]) -> None:
        self._ours = frozenset(schedulers)
        self._settled: dict[str, Settled] = {}
        self._members: dict[str, dict[str, None]] = {}
        self._touched: dict[str, None] = {}
        self._journal: Journal[Pod] = Journal()
        self._likenesses = Likenesses()

    def edition(self) -> Edition[Pod]:
        """All pods, by name."""
        return self._journal.next()

    def settle(self, key: str, record: PodRecord | None, catalogue: Catalogue, classes: Classes) -> None:
        """Look at one pod; None = it is gone."""
        before = self._settled.pop(key, None)
        if before is not None and before.gang:
            self._touched[before.gang] = None
            members = self._members[before.gang]
            del members[key]
            if not members:
                del self._members[before.gang]
        if record is None:
            if before is not None:
                self._journal.note(key, None)
            return
        pod, problem = settle(record, catalogue, classes, self._ours)
        if before is not None and before.pod == pod:
            pod, gang = before.pod, before.gang
        else:
            notes = self._likenesses.notes_of(pod)
            gang = notes.gang
            self._journal.note(key, pod, notes)
        self._settled[key] = Settled(record, pod, gang, problem, record.unsupported)
        if gang:
            self._touched[gang] = None
            self._members.setdefault(gang, {})[key] = None

    def take_touched(self) -> dict[str, None]:
        """Gangs that have other members now than at the last call, or members that changed."""
        touched, self._touched = self._touched, {}
        return touched

    def gangs(self) -> Iterable[str]:
        return self._members.keys()

    def has_members(self, gang: str) -> bool:
        return gang in self._members

    def members(self, gang: str) -> list[PodRecord]:
        return [self._settled[key].record for key in sorted(self._members.get(gang, ()))]

    def first(self, gang: str) -> PodRecord | None:
        """The record of a gang's first member, by name; None without any."""
        members = self._members.get(gang)
        return self._settled[min(members)].record if members else None

    def problem(self, gang: str) -> str:
        """What is wrong with the first member, by name, that has a problem and has not ended; empty for none."""
        known = self._settled
        wrong = [key for key in self._members.get(gang, ()) if known[key].problem and not known[key].pod.finished]
        if not wrong:
            return ""
        settled = known[min(wrong)]
        return f"pod {settled.pod.name}: {settled.problem}"

    def unsupported(self, gang: str) -> str:
        """The path of the first field, by name of the pod, that keeps members without a node waiting."""
        known = self._settled
        marked = [key for key in self._members.get(gang, ()) if known[key].unsupported and _waits(known[key].pod)]
        return known[min(marked)].unsupported if marked else ""


def _waits(pod: Pod) -> bool:
    return not pod.node and not pod.finished


def settle(record: PodRecord, catalogue: Catalogue, classes: Classes, ours: frozenset[str]) -> tuple[Pod, str]:
    """The pod with its cards and priority, and what is wrong with it."""
    pod, problem = record.pod, record.problem
    fields: dict[str, Any] = {}
    if record.devices or record.names or record.share:
        card, scalars, wrong = catalogue.request(
            record.names, record.devices, record.share, named_products(pod.node_selector, pod.required_nodes)
        )
        fields["card"], fields["scalars"] = card, scalars
        problem = problem or wrong
    if not record.has_priority:
        fields["priority"] = classes.value(pod.priority_class)
        if unknown := classes.problem(pod.priority_class):
            fields["preemptable"], problem = False, problem or unknown
    if not record.has_preemption_policy and (pod.priority_class or not record.has_priority):
        policy = classes.preemption_policy(pod.priority_class)
        if policy != pod.preemption_policy:
            fields["preemption_policy"] = policy
    if pod.scheduler not in ours:
        fields["group"] = ""
    return (msgspec.structs.replace(pod, **fields) if fields else pod), problem
