"""Plugin ``card-model``: tasks go to the card models that they name, and stay off rare cards that they do not name.

Extension points: predicate, node_order, job_problem. A pod names models by the annotation ``tidesched.io/card-model``
(``A`` or ``A|B``); ``tidesched.io/card-model-mode`` is ``required`` (the default: only nodes with one of them) or
``preferred`` (nodes with one of them score 100 x ``weight``, in the order of the names halved from one to the next).
A node with a card of ``rareCards`` takes only pods that name one of the rare cards that it has: here, by
``volcano.sh/card.name``, or by a node selector or node affinity (required or preferred, operator ``In``) on a label
``<vendor>/<device>.product`` or ``tidesched.io/card-model`` of the nodes. A slice of a card belongs to the model that
it is cut from.
Source: document 001 (card-type scheduling), contracts 4. There a wish becomes a node affinity and a filter keeps
ordinary pods away; here both ways count as a wish, so that pods need not be rewritten."""

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import numpy as np

from scheduler_core.framework.forms import Form, Term
from scheduler_core.framework.kernels.terms import STATIC
from scheduler_core.framework.node_scores import ScoredByTerms
from scheduler_core.framework.plugin import Argument, number
from scheduler_core.framework.session import Session
from scheduler_core.model.node_refusal import NodeRefusal
from scheduler_core.state.status import Bools, Floats
from scheduler_core.state.task_class import TaskClass

MODEL = "tidesched.io/card-model"
MODE = "tidesched.io/card-model-mode"
_REQUIRED, _PREFERRED = "required", "preferred"
# How the label of a node that names its cards ends.
PRODUCT_LABEL = ".product"


class CardModel(ScoredByTerms):
    name: ClassVar[str] = "card-model"
    arguments: ClassVar[tuple[Argument, ...]] = (
        Argument(name="rareCards", type="list", default=[], doc="card types whose nodes take only pods that name them"),
        number("weight", 1, (0, 1_000_000), "weight of a preferred model among the node scores"),
    )

    def open(self, session: Session) -> None:
        super().open(session)
        count = session.cards.count > 0
        self._nodes_with: dict[str, Bools] = {}
        for card, name in enumerate(session.axes.cards):
            for spelling in dict.fromkeys((name, _model(name))):
                known = self._nodes_with.get(spelling)
                self._nodes_with[spelling] = count[card] if known is None else known | count[card]
        self._rare = tuple(dict.fromkeys(self.values["rareCards"]))
        self._with_rare = self._any(self._rare)
        self._scores: dict[str, Floats] = {}

    def job_problem(self, gang: int) -> str | None:
        for cls in self.session.classes_of(gang):
            mode = cls.marks.get(MODE, _REQUIRED)
            if mode not in (_REQUIRED, _PREFERRED):
                return f"{MODE} is {_REQUIRED} or {_PREFERRED}, not {mode!r}"
        return None

    def predicate(self, cls: TaskClass) -> Iterator[tuple[str, Bools]]:
        """Nodes with a model that is required, and nodes without rare cards that the class does not name."""
        models = _models(cls)
        if models and cls.marks.get(MODE, _REQUIRED) == _REQUIRED:
            yield NodeRefusal.CARD_MODEL, self._any(models)
        if self._rare:
            named = {*models, *cls.names, *map(_model, cls.names), *_models_by_label(cls)}
            yield NodeRefusal.RARE_CARD, ~self._with_rare | self._any([card for card in self._rare if card in named])

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        """100 x weight x 0.5^index for the first preferred model that the node has."""
        return [Term(STATIC, of_class=self._score)] if point == "node_order" else None

    def _score(self, cls: TaskClass) -> Floats:
        wish = cls.marks.get(MODEL, "") if cls.marks.get(MODE) == _PREFERRED else ""
        score = self._scores.get(wish)
        if score is None:
            score = np.zeros(len(self.session.nodes), dtype=np.float64)
            models = _models(cls) if wish else ()
            for place in range(len(models) - 1, -1, -1):
                score[self._any(models[place : place + 1])] = 100.0 * 0.5**place * float(self.values["weight"])
            self._scores[wish] = score
        return score

    def _any(self, models: Iterable[str]) -> Bools:
        """bool (N,): nodes that have one of the models."""
        mask: Bools = np.zeros(len(self.session.nodes), dtype=np.bool_)
        for model in models:
            if model in self._nodes_with:
                mask |= self._nodes_with[model]
        return mask


def _models(cls: TaskClass) -> tuple[str, ...]:
    return tuple(part.strip() for part in cls.marks.get(MODEL, "").split("|") if part.strip())


def _models_by_label(cls: TaskClass) -> Iterator[str]:
    """Values that the pods ask of labels which say what cards a node has."""
    for key, value in cls.selector:
        if _names_cards(key):
            yield value
    for term in (*(cls.required or ()), *(wish.term for wish in cls.preferred)):
        for requirement in term:
            if requirement.operator == "In" and _names_cards(requirement.key):
                yield from requirement.values


def _names_cards(label: str) -> bool:
    return label == MODEL or ("/" in label and label.endswith(PRODUCT_LABEL))


def _model(card: str) -> str:
    """The model that a card, or a slice of one, is of."""
    return card.partition("/")[0]
