"""Plugin ``fragmentation``: of the nodes that fit, the one where the least of what is left becomes useless.

Extension points: node_order, card_choice. Score = ``weight`` x 100 / (1 + e^growth), growth = by how many whole cards
the expected fragmentation of the node grows with the task, expected over the mix of tasks that the snapshot holds; cut
to a whole number as in the source. Among equals the node that gets fullest in cpu, memory and cards. A share goes to
the card that gives the best score.
Source: FGD, Weng et al., USENIX ATC 2023 (performance 3). On single cards, and over what will be left once all that
leaves has left. Departs from the paper's program: memory counts like cpu where a usual task would not fit, the mix is
that of the waiting and running tasks of the snapshot, a node may have cards of several types, and equal scores do not
just go to the first name (on the openb trace that is worth 0.3 points of allocation)."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from scheduler_core.algorithms.fragmentation import Mix
from scheduler_core.framework.forms import Form, Term
from scheduler_core.framework.kernels.terms import FRAGMENTS
from scheduler_core.framework.node_scores import ScoredByTerms
from scheduler_core.framework.plugin import Argument, number
from scheduler_core.framework.session import Session
from scheduler_core.model.resources import MILLI
from scheduler_core.state.axes import CPU, MEMORY
from scheduler_core.state.status import FAILED, FOREIGN, SUCCEEDED, Ints
from scheduler_core.state.task_class import TaskClass


class Fragmentation(ScoredByTerms):
    name: ClassVar[str] = "fragmentation"
    arguments: ClassVar[tuple[Argument, ...]] = (
        number("weight", 1, (0, 1_000_000), "weight among the node scores"),
        number("popularity", 95, (1, 100), "percent of the tasks that the mix represents, the commonest shapes first"),
    )

    def open(self, session: Session) -> None:
        """The most of cpu, memory and milli-cards that any node has."""
        super().open(session)
        nodes, cards = session.nodes.allocatable, session.cards.count.sum(axis=0) * MILLI
        most = [nodes[CPU].max(initial=1), nodes[MEMORY].max(initial=1), cards.max(initial=1)]
        self._most: Ints = np.array(most, dtype=np.int64)

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        if point == "node_order":
            mix = _mix(self.session, int(self.values["popularity"]))
            return [Term(FRAGMENTS, float(self.values["weight"]), fragments=(mix, self._most))]
        return [] if point == "card_choice" else None

    def card_choice(self, cls: TaskClass, card: int, node: int) -> tuple[int, ...] | None:
        """The card for a share; None for anything else, or where that card has no room yet."""
        number = self.by_terms.card(cls, card, node) if cls.share else -1
        return None if number < 0 else (number,)


def _mix(session: Session, popularity: int) -> Mix:
    """The commonest shapes among the live tasks, until they make up ``popularity`` percent of them."""
    tasks, classes = session.tasks, session.cluster.classes.classes
    ended = np.isin(tasks.status, (SUCCEEDED, FAILED, FOREIGN))
    counts = np.bincount(tasks.cls[tasks.live & ~ended], minlength=len(classes)).tolist()
    shapes: dict[tuple[int, int, int, int, tuple[int, ...]], int] = {}
    for cls, count in zip(classes, counts, strict=True):
        if count and not cls.missing:
            number = cls.whole or (1 if cls.share else 0)
            need = cls.share or (MILLI if cls.whole else 0)
            shape = (cls.cpu_milli, cls.memory_mib, need, number, cls.cards)
            shapes[shape] = shapes.get(shape, 0) + count
    order = sorted(shapes.items(), key=lambda item: (item[1], item[0]), reverse=True)
    enough, kept, reached = sum(shapes.values()) * popularity / 100, 0, 0
    while reached < enough:
        reached += order[kept][1]
        kept += 1
    order = order[:kept]
    kinds: dict[tuple[int, tuple[int, ...]], int] = {}
    kind = [kinds.setdefault((need, cards), len(kinds)) if need else -1 for (_, _, need, _, cards), _ in order]
    serves = np.zeros((len(kinds), max(1, len(session.axes.cards))), dtype=np.bool_)
    for row, (_, cards) in enumerate(kinds):
        serves[row, list(cards)] = True
    column = np.array([shape[:4] for shape, _ in order], dtype=np.int64).reshape(kept, 4).T.copy()
    share = np.array([count / reached for _, count in order], dtype=np.float64)
    needs = np.array([need for need, _ in kinds], dtype=np.int64)
    scratch: Ints = np.zeros((2, len(kinds)), dtype=np.int64)
    return Mix(column[0], column[1], np.array(kind, dtype=np.int64), column[3], share, needs, serves, *scratch)
