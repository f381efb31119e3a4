"""Scores of nodes by the terms of a plugin, for whoever asks for them outside the allocate loop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler_core.framework.extension_points import Where
from scheduler_core.framework.forms import Form
from scheduler_core.framework.kernels import tables
from scheduler_core.framework.kernels.columns import Classes, Log, Views
from scheduler_core.framework.kernels.fragments import bring_up, wished_card
from scheduler_core.framework.kernels.scores import Scores, score_nodes
from scheduler_core.framework.plugin import Plugin
from scheduler_core.framework.session import Session
from scheduler_core.state.status import Floats
from scheduler_core.state.task_class import TaskClass


class NodeScores:
    """What the terms of one plugin come to."""

    def __init__(self, session: Session, terms: Sequence[Form]) -> None:
        self._session, self._terms = session, terms
        self._nodes = tables.node_columns(session)
        self._classes: dict[int, Classes] = {}
        self._scores: dict[int, Scores] = {}
        self._views: Views | None = None
        self._seen = -1

    def of(self, cls: TaskClass, where: Where) -> Floats:
        """float64: the score of the nodes at ``where``, O(nodes there x terms)."""
        classes, scores = self._columns(cls)
        if self._views is None:
            self._views = tables.new_views(classes, len(self._session.nodes), 0)
        at = np.arange(len(self._session.nodes), dtype=np.int32)[where]
        self._views.where[: len(at)] = at
        cards = tables.card_columns(self._session)
        self._bring_up(scores)
        score_nodes(self._nodes, cards, classes, scores, self._views, 0, len(at))
        return self._views.value[: len(at)].copy()

    def card(self, cls: TaskClass, card: int, node: int) -> int:
        """The card of the node, by its number among those of the type, where a share wastes least; -1 = none."""
        classes, scores = self._columns(cls)
        cards = tables.card_columns(self._session)
        self._bring_up(scores)
        return wished_card(self._nodes, cards, classes, scores.fragments, 0, cls.cards.index(card), node)

    def _columns(self, cls: TaskClass) -> tuple[Classes, Scores]:
        classes, scores = self._classes.get(cls.index), self._scores.get(cls.index)
        if classes is None:
            classes = self._classes[cls.index] = tables.class_columns(self._session, [cls], [None])
        if scores is None or self._session.candidates.volatile(cls):
            known = next(iter(self._scores.values()), None)
            scores = tables.score_columns(self._session, [self._terms], [cls], [[]])
            if known is not None:
                # What was scored last is told by the class's place, which is the same for each one here.
                own, shared = scores.fragments, known.fragments
                scores = scores._replace(fragments=own._replace(before=shared.before, place=shared.place))
            self._scores[cls.index] = scores
        return classes, scores

    def _bring_up(self, scores: Scores) -> None:
        log = self._session.nodes.log
        if len(scores.fragments.before) and self._seen != len(log):
            changed = np.array(log[max(0, self._seen) :], dtype=np.int32)
            scores.fragments.place[0] = min(0, self._seen)
            cards = tables.card_columns(self._session)
            bring_up(self._nodes, cards, scores.fragments, Log(changed, np.array([len(changed)], dtype=np.int64)))
            self._seen = len(log)


class ScoredByTerms(Plugin):
    """A plugin whose ``node_order`` is the sum of its terms."""

    def open(self, session: Session) -> None:
        """Nothing is known yet."""
        super().open(session)
        self._by_terms: NodeScores | None = None

    @property
    def by_terms(self) -> NodeScores:
        """The terms, as a function."""
        if self._by_terms is None:
            self._by_terms = NodeScores(self.session, self.compiled_form("node_order") or ())
        return self._by_terms

    def node_order(self, cls: TaskClass, where: Where) -> Floats:
        """Score of the nodes at ``where``; float64."""
        return self.by_terms.of(cls, where)
