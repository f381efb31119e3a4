"""Which pods the affinity terms of the cluster speak of, kept from one session to the next. Every subject (namespaces
and labels) that some pod's term has is numbered once, and every pod is matched against them once: it has a *profile*,
the subjects that it matches. A cluster whose pods say nothing of each other pays nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from scheduler_core.model.observed import Namespace
from scheduler_core.model.pod import Pod
from scheduler_core.model.relations import PodSubject, Relations
from scheduler_core.model.selector import matches
from scheduler_core.state.status import Bools, Index

_NAME_LABEL = "kubernetes.io/metadata.name"
NOTHING = 0


class RelationTable:
    """Subjects by number, profiles by number, and the profile of each task slot. ``subjects``: all that were ever met.
    ``of_slot``: int32 (slots,), profile of the pod there. ``profiles``: the numbers of the matched subjects, ascending;
    the first one is empty."""

    def __init__(self, namespaces: Iterable[Namespace] = ()) -> None:
        self._namespaces: dict[str, Mapping[str, str]] = {space.name: space.labels for space in namespaces}
        self.subjects: list[PodSubject] = []
        self.profiles: list[tuple[int, ...]] = [()]
        self.of_slot: Index = np.zeros(0, dtype=np.int32)
        self._numbers: dict[PodSubject, int] = {}
        self._profile_numbers: dict[tuple[int, ...], int] = {(): NOTHING}
        # Subjects whose terms act on others: those of anti-affinity and of preferences.
        self._acting: set[int] = set()
        # Subjects by one label value that they need, and those that need none.
        self._by_label: dict[tuple[str, str], list[int]] = {}
        self._anywhere: list[int] = []

    def fork(self) -> RelationTable:
        """The same subjects and profiles with slots of its own."""
        other = object.__new__(RelationTable)
        other.__dict__.update(self.__dict__)
        other.of_slot = self.of_slot.copy()
        return other

    def learn(self, pods: Iterable[Pod]) -> bool:
        """Take in the terms of new pods; True when pods that are known already have to be matched again."""
        before = (len(self.subjects), len(self._acting))
        for pod in pods:
            if pod.relations is not None:
                self._learn(pod.relations)
        return (len(self.subjects), len(self._acting)) != before

    def number(self, subject: PodSubject) -> int:
        return self._numbers[subject]

    def set_profiles(self, slots: Sequence[int], pods: Iterable[Pod]) -> None:
        """Match the pods of some slots; O(their labels), nothing where no pod has terms."""
        if not slots:
            return
        last = max(slots)
        if last >= len(self.of_slot):
            grown: Index = np.zeros(max(64, 2 * last + 1), dtype=np.int32)
            grown[: len(self.of_slot)] = self.of_slot
            self.of_slot = grown
        self.of_slot[slots] = [self._profile(pod) for pod in pods] if self.subjects else NOTHING

    def of_class(self, pod: Pod) -> tuple[Relations | None, tuple[int, ...]] | None:
        """What of the pod's relations makes tasks differ: its own terms, and which acting or own subjects it matches.
        None for a pod that says nothing of others and that the acting terms of no other name."""
        if not self.subjects:
            return None
        own = pod.relations
        matched = self.profiles[self._profile(pod)]
        counted = self._acting if own is None else self._acting | {self._numbers[subject] for subject in _subjects(own)}
        kept = tuple(number for number in matched if number in counted)
        return (own, kept) if own is not None or kept else None

    def members(self, number: int) -> Bools:
        """bool (slots,): whose pods match a subject. O(slots), without a look at any pod."""
        has: Bools = np.fromiter((number in profile for profile in self.profiles), np.bool_, len(self.profiles))
        return has[self.of_slot]

    def _learn(self, relations: Relations) -> None:
        for subject in _subjects(relations):
            if subject not in self._numbers:
                number = self._numbers[subject] = len(self.subjects)
                self.subjects.append(subject)
                self._file(number, subject)
        for term in relations.anti_affinity:
            self._acting.add(self._numbers[term.subject])
        for wish in relations.preferred:
            self._acting.add(self._numbers[wish.term.subject])

    def _file(self, number: int, subject: PodSubject) -> None:
        if subject.selector is None:
            return
        for line in subject.selector:
            if line.operator == "In":
                for value in line.values:
                    self._by_label.setdefault((line.key, value), []).append(number)
                return
        self._anywhere.append(number)

    def _profile(self, pod: Pod) -> int:
        found = [number for number in self._anywhere if self._speaks_of(number, pod)]
        by_label = self._by_label
        for label in pod.labels.items():
            if label in by_label:
                found += [number for number in by_label[label] if self._speaks_of(number, pod)]
        profile = tuple(sorted(found))
        known = self._profile_numbers.get(profile)
        if known is None:
            known = self._profile_numbers[profile] = len(self.profiles)
            self.profiles.append(profile)
        return known

    def _speaks_of(self, number: int, pod: Pod) -> bool:
        subject = self.subjects[number]
        if pod.namespace not in subject.namespaces:
            further = subject.namespace_selector
            if further is None:
                return False
            labels = self._namespaces.get(pod.namespace) or {_NAME_LABEL: pod.namespace}
            if not matches(further, labels):
                return False
        return subject.selector is not None and matches(subject.selector, pod.labels)


def _subjects(relations: Relations) -> Iterable[PodSubject]:
    for term in relations.affinity:
        yield term.subject
    for term in relations.anti_affinity:
        yield term.subject
    for wish in relations.preferred:
        yield wish.term.subject
    for constraint in relations.spread:
        yield constraint.subject
