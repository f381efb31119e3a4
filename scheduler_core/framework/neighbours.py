"""Pods that affinity terms and spread constraints speak of, by the place they are in: for one session.

Nothing here walks over pods in Python: who matches a subject is kept from session to session (RelationTable), and where
they are is read from the columns of the task table.

Departures from Kubernetes on purpose: a pod that is leaving does not satisfy affinity and does not count in scores, and
who it does not want may be promised its room (with ``compatibility: volcano`` it counts until it is gone); a pod that
is promised room counts like one in place, except that no pod is bound at once for its company."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from scheduler_core.algorithms.places import (
    SoftSpread,
    count_by_place,
    least_loaded,
    spread_score,
    stretched,
    within_skew,
)
from scheduler_core.framework.session import Session
from scheduler_core.model.relations import PodTerm, Relations, SpreadConstraint
from scheduler_core.model.selector import NodeSelectorRequirement
from scheduler_core.state.status import HOLDS, PIPELINED, RELEASING, Bools, Floats, Index, Ints
from scheduler_core.state.task_class import TaskClass

_HOSTNAME = "kubernetes.io/hostname"

# Which statuses count: in place and staying; that or promised; anything on a node or promised.
STAYS: Bools = HOLDS.copy()
STAYS[RELEASING] = False
COMING: Bools = STAYS.copy()
COMING[PIPELINED] = True
PRESENT: Bools = HOLDS.copy()
PRESENT[PIPELINED] = True

# Topology key, weight, and the classes that have such a term.
_Held = tuple[str, int, tuple[int, ...]]


class Neighbours:
    """Masks and scores of one session that depend on where other pods are."""

    def __init__(self, session: Session) -> None:
        self._session, self._tasks = session, session.tasks
        self._index, self._relations = session.node_index, session.cluster.workspace.relations
        # Who is company at once and later, and whom anti-affinity minds later: upstream knows no leaving.
        self._company = (HOLDS, PRESENT) if session.compat else (STAYS, COMING)
        self._later = self._company[1]
        self._slots: dict[tuple[int, ...], Ints] = {}
        self._held_by: dict[tuple[int, ...], Ints] = {}
        self._holders: dict[str, dict[int, list[_Held]]] = {}

    def affinity(self, cls: TaskClass) -> tuple[Bools, Bools]:
        """Nodes next to pods that all required terms speak of: at once, and once promises are kept. Where there are
        none at all, a pod that matches its own terms may be the first, on any node with the labels."""
        assert cls.relations is not None
        terms = cls.relations.affinity
        numbers = tuple(self._relations.number(term.subject) for term in terms)
        slots = self._matching(numbers)
        first = all(number in cls.matched for number in numbers) and not any(
            self._counts(slots, term.topology_key, self._later)[0].any() for term in terms
        )
        masks = []
        for states in self._company:
            mask: Bools = np.ones(len(self._session.nodes), dtype=np.bool_)
            for term in terms:
                counts, places = self._counts(slots, term.topology_key, states)
                mask &= (places >= 0) if first else counts[places] > 0
            masks.append(mask)
        return masks[0], masks[1]

    def anti_affinity(self, cls: TaskClass) -> tuple[Bools, Bools]:
        """Nodes away from pods that a required anti-affinity term speaks of: at once, and once who leaves has left."""
        assert cls.relations is not None
        terms = cls.relations.anti_affinity
        return self._away(
            (self._matching((self._relations.number(term.subject),)), term.topology_key) for term in terms
        )

    def unwanted(self, cls: TaskClass) -> tuple[Bools, Bools]:
        """Nodes away from pods whose own anti-affinity speaks of the class (the symmetry of anti-affinity)."""
        return self._away((self._of_classes(holders), key) for key, _, holders in self._meant("anti", cls))

    def is_unwanted(self, cls: TaskClass) -> bool:
        """Whether the anti-affinity of any pod speaks of the class."""
        return any(True for _ in self._meant("anti", cls))

    def spread(self, cls: TaskClass) -> Iterator[tuple[Bools, Bools]]:
        """For each hard constraint: nodes that have the label, and those whose place is within the skew."""
        assert cls.relations is not None
        hard = [constraint for constraint in cls.relations.spread if constraint.hard]
        labelled = self._labelled(hard)
        for constraint in hard:
            number = self._relations.number(constraint.subject)
            eligible = labelled & self._eligible(cls, constraint)
            counts, places = self._counts(self._matching((number,)), constraint.topology_key, COMING, eligible)
            least = least_loaded(counts, places, eligible, constraint.min_domains)
            own = number in cls.matched
            yield places >= 0, within_skew(counts, places, least, own, constraint.max_skew)

    def spread_score(self, cls: TaskClass, among: Bools | None = None) -> Floats:
        """Score of the soft constraints; 0 for nodes that lack one of the labels. ``among``: scaled over these only."""
        assert cls.relations is not None
        soft = [constraint for constraint in cls.relations.spread if not constraint.hard]
        labelled = self._labelled(soft)
        parts = []
        for constraint in soft:
            number = self._relations.number(constraint.subject)
            eligible = labelled & self._eligible(cls, constraint)
            counts, places = self._counts(self._matching((number,)), constraint.topology_key, COMING, eligible)
            size = len(np.unique(places[eligible])) if constraint.topology_key != _HOSTNAME else int(eligible.sum())
            parts.append(SoftSpread(counts, places, size, constraint.max_skew))
        return spread_score(parts, labelled if among is None else labelled & among)

    def _labelled(self, constraints: Iterable[SpreadConstraint]) -> Bools:
        mask: Bools = np.ones(len(self._session.nodes), dtype=np.bool_)
        for constraint in constraints:
            mask &= self._index.topology(constraint.topology_key)[0] >= 0
        return mask

    def _eligible(self, cls: TaskClass, constraint: SpreadConstraint) -> Bools:
        mask: Bools = np.ones(len(self._session.nodes), dtype=np.bool_)
        if constraint.honor_affinity:
            for key, value in cls.selector:
                mask &= self._index.requirement(NodeSelectorRequirement(key, "In", (value,)))
            mask &= self._index.any_term(cls.required)
        if constraint.honor_taints:
            mask &= self._index.intolerable(cls.tolerations, preferred=False) == 0
        return mask

    def has_preferences(self, cls: TaskClass) -> bool:
        """Whether the class prefers the company or absence of others, or others prefer its."""
        if cls.relations is not None and cls.relations.preferred:
            return True
        return any(True for _ in self._meant("preferred", cls))

    def preference_score(self, cls: TaskClass, among: Bools | None = None) -> Floats:
        """0 to 100: what the class prefers of the pods there, and what they prefer of it; ``among``: of these alone."""
        raw: Ints = np.zeros(len(self._session.nodes), dtype=np.int64)
        if cls.relations is not None:
            for wish in cls.relations.preferred:
                slots = self._matching((self._relations.number(wish.term.subject),))
                counts, places = self._counts(slots, wish.term.topology_key, self._later)
                raw += wish.weight * counts[places]
        for key, weight, holders in self._meant("preferred", cls):
            counts, places = self._counts(self._of_classes(holders), key, self._later)
            raw += weight * counts[places]
        return stretched(raw) if among is None else _scaled_among(raw, among, stretched)

    def _away(self, terms: Iterable[tuple[Ints, str]]) -> tuple[Bools, Bools]:
        now: Bools = np.ones(len(self._session.nodes), dtype=np.bool_)
        later = now.copy()
        for slots, key in terms:
            present, places = self._counts(slots, key, PRESENT)
            coming, _ = self._counts(slots, key, self._later)
            now &= present[places] == 0
            later &= coming[places] == 0
        return now, later

    def _counts(self, slots: Ints, key: str, states: Bools, eligible: Bools | None = None) -> tuple[Ints, Index]:
        """Tasks among ``slots`` in one of ``states`` by place, and the place of each node."""
        places, number = self._index.topology(key)
        nodes = self._tasks.node[slots]
        counted = (nodes >= 0) & states[self._tasks.status[slots]]
        nodes = nodes[counted]
        if eligible is not None:
            nodes = nodes[eligible[nodes]]
        return count_by_place(nodes, places, number), places

    def _matching(self, numbers: tuple[int, ...]) -> Ints:
        """Slots of the pods that match all of these subjects."""
        slots = self._slots.get(numbers)
        if slots is None:
            mask = self._tasks.live.copy()
            for number in dict.fromkeys(numbers):
                members = self._relations.members(number)
                mask[: len(members)] &= members[: len(mask)]
                mask[len(members) :] = False
            slots = self._slots[numbers] = np.flatnonzero(mask).astype(np.int64)
        return slots

    def _of_classes(self, classes: tuple[int, ...]) -> Ints:
        slots = self._held_by.get(classes)
        if slots is None:
            has: Bools = np.zeros(len(self._session.cluster.classes), dtype=np.bool_)
            has[list(classes)] = True
            slots = np.flatnonzero(self._tasks.live & has[self._tasks.cls]).astype(np.int64)
            self._held_by[classes] = slots
        return slots

    def _meant(self, kind: str, cls: TaskClass) -> Iterator[_Held]:
        """Acting terms of others that speak of the class."""
        if cls.matched:
            terms = self._terms(kind)
            for number in cls.matched:
                yield from terms.get(number, ())

    def _terms(self, kind: str) -> dict[int, list[_Held]]:
        """Who has which acting term, by subject; only classes that say anything of others are looked at."""
        known = self._holders.get(kind)
        if known is None:
            found: dict[tuple[int, str, int], list[int]] = {}
            for cls in self._session.cluster.classes.related:
                assert cls.relations is not None
                for term, weight in _ACTING[kind](cls.relations):
                    key = (self._relations.number(term.subject), term.topology_key, weight)
                    found.setdefault(key, []).append(cls.index)
            known = self._holders[kind] = {}
            for (number, topology_key, weight), classes in found.items():
                known.setdefault(number, []).append((topology_key, weight, tuple(classes)))
        return known


def _anti(relations: Relations) -> list[tuple[PodTerm, int]]:
    return [(term, 0) for term in relations.anti_affinity]


def _preferred(relations: Relations) -> list[tuple[PodTerm, int]]:
    weights: dict[PodTerm, int] = {}
    for wish in relations.preferred:
        weights[wish.term] = weights.get(wish.term, 0) + wish.weight
    return list(weights.items())


_ACTING: dict[str, Callable[[Relations], list[tuple[PodTerm, int]]]] = {"anti": _anti, "preferred": _preferred}


def _scaled_among(raw: Ints, among: Bools, scale: Callable[[Ints], Floats]) -> Floats:
    """A score that is scaled over some of the nodes; 0 for the others."""
    score: Floats = np.zeros(raw.shape, dtype=np.float64)
    score[among] = scale(raw[among])
    return score
