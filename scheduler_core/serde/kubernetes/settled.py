"""Pods with what other objects say of them: the card types of the cluster and the values of priority classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from scheduler_core.model.edition import Edition, Series
from scheduler_core.model.pod import Pod
from scheduler_core.serde.kubernetes.catalogue import Catalogue
from scheduler_core.serde.kubernetes.classes import Classes
from scheduler_core.serde.kubernetes.pod import PodRecord


class Settled(msgspec.Struct, frozen=True, gc=False):
    """A pod as it is in snapshots, what it was made of, its gang, and what is wrong with it."""

    record: PodRecord
    pod: Pod
    gang: str
    problem: str


class SettledPods:
    """All pods by name, and who is in which gang; settled once and again when card types or classes change."""

    def __init__(self, schedulers: Iterable[str]) -> None:
        self._ours = frozenset(schedulers)
        self._settled: dict[str, Settled] = {}
        self._members: dict[str, dict[str, None]] = {}
        self._series: Series[Pod] = Series()

    @property
    def edition(self) -> Edition[Pod]:
        """All pods, by name."""
        return self._series.edition

    def update(
        self, stale: Iterable[str], records: Mapping[str, PodRecord], catalogue: Catalogue, classes: Classes
    ) -> dict[str, None]:
        """Look at some pods again; returns the gangs that have other members now, or members that changed."""
        touched: dict[str, None] = {}
        changes: dict[str, Pod | None] = {}
        for key in stale:
            before, record = self._settled.pop(key, None), records.get(key)
            if before is not None and before.gang:
                touched[before.gang] = None
                members = self._members[before.gang]
                del members[key]
                if not members:
                    del self._members[before.gang]
            if record is None:
                if before is not None:
                    changes[key] = None
                continue
            pod, problem = _settle(record, catalogue, classes, self._ours)
            if before is not None and before.pod == pod:
                pod = before.pod
            else:
                changes[key] = pod
            gang = f"{pod.namespace}/{pod.group}" if pod.group else ""
            self._settled[key] = Settled(record, pod, gang, problem)
            if gang:
                touched[gang] = None
                self._members.setdefault(gang, {})[key] = None
        self._series.change(changes)
        return touched

    def gangs(self) -> Iterable[str]:
        """Gangs that have members."""
        return self._members.keys()

    def has_members(self, gang: str) -> bool:
        """Whether some pod says that it is in the gang."""
        return gang in self._members

    def members(self, gang: str) -> list[PodRecord]:
        """Records of a gang's members, by name."""
        return [self._settled[key].record for key in sorted(self._members.get(gang, ()))]

    def problem(self, gang: str) -> str:
        """What is wrong with the first member, by name, that has a problem and has not ended; empty for none."""
        for key in sorted(self._members.get(gang, ())):
            settled = self._settled[key]
            if settled.problem and not settled.pod.finished:
                return f"pod {settled.pod.name}: {settled.problem}"
        return ""


def _settle(record: PodRecord, catalogue: Catalogue, classes: Classes, ours: frozenset[str]) -> tuple[Pod, str]:
    """The pod with its cards and priority, and what is wrong with it."""
    pod, problem = record.pod, record.problem
    fields: dict[str, Any] = {}
    if record.devices or record.names or record.share:
        card, scalars, wrong = catalogue.request(record.names, record.devices, record.share)
        fields["card"], fields["scalars"] = card, scalars
        problem = problem or wrong
    if not record.has_priority:
        fields["priority"] = classes.value(pod.priority_class)
    if pod.scheduler not in ours:
        fields["group"] = ""
    return (msgspec.structs.replace(pod, **fields) if fields else pod), problem
