"""Which queue, and so which card types, a task of a trace goes to."""

import random
import re
from collections import Counter
from collections.abc import Iterable

import msgspec

from scheduler_core.model.errors import BadInput
from scheduler_core.model.node import Node
from scheduler_core.model.queue import PriorityClass, Queue
from scheduler_core.model.resources import MILLI
from scheduler_core.simulator.traces.openb_pods import TraceTask

INFERENCE_PRIORITY, TRAINING_PRIORITY = 80_000, 20_000
# A day: longer lives count no more, a replay ends before they do.
_DAY = 86_400.0
# No card type is left out altogether, however much the tasks that name it bring.
_LEAST = 0.02
PRIORITY_CLASSES = tuple(
    PriorityClass(name=name, value=value)
    for name, value in (("pc-high", 80_000), ("pc-low", 20_000), ("pc-medium", 60_000), ("pc-normal", 40_000))
)


def queues_by_model(nodes: Iterable[Node]) -> tuple[Queue, ...]:
    """One inference and one training queue for each card type, each with all cards of that type as its quota."""
    cards: dict[str, int] = {}
    for node in nodes:
        for group in node.cards:
            cards[group.card] = cards.get(group.card, 0) + group.count * MILLI
    queues = []
    for model, milli in sorted(cards.items()):
        suffix = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")
        for service_type in ("inference", "training"):
            training = service_type == "training"
            queues.append(
                Queue(
                    name=f"{service_type}-{suffix}", priority=TRAINING_PRIORITY if training else INFERENCE_PRIORITY,
                    reclaimable=training, card_quota={model: milli}, service_type=service_type,
                )
            )  # fmt: skip
    return tuple(sorted(queues, key=lambda queue: queue.name))


class Assignment(msgspec.Struct, frozen=True):
    """A task's queue and the card types that it names there, the preferred one first."""

    queue: str
    cards: tuple[str, ...]


class QueueDraw:
    """Draws a queue for each task that may go to several, so that the load of card types follows their cards.

    A task could take a card type that its trace line names (any, where it names none) and of which some empty node
    could hold it; where no node can, all the types that it names count, and it will wait with that as its reason.
    The weight of a card type is its share of all card-seconds, by cards, less what tasks bring that name just this one,
    times the part of its cards that such tasks alone could fill: nodes with little cpu to a card get fewer of the tasks
    that ask for much.
    The task then names just those of its types that the drawn queue has a quota for."""

    def __init__(
        self, nodes: Iterable[Node], queues: Iterable[Queue], tasks: Iterable[TraceTask], rng: random.Random
    ) -> None:
        nodes, queues, tasks = tuple(nodes), tuple(queues), tuple(tasks)
        self._rng = rng
        self._queues = {
            service_type: tuple(q for q in queues if q.service_type == service_type and q.card_quota)
            for service_type in ("inference", "training")
        }
        for service_type, found in self._queues.items():
            if not found:
                raise BadInput(
                    "no_queue",
                    f"no queue of service type {service_type} with a card quota",
                    path="queues",
                    value=service_type,
                    hint="annotate one with tidesched.io/service-type and volcano.sh/card.quota",
                )
        # The distinct shapes of nodes and how many have it; a trace has thousands of nodes of few shapes.
        counted = Counter((n.cpu_milli, n.memory_mib, g.card, g.count) for n in nodes for g in n.cards)
        self._shapes = sorted(counted.items())
        self._models = sorted({card for (_, _, card, _), _ in self._shapes})
        self._weights = {kind: self._card_weights(kind, nodes, tasks) for kind in self._queues}
        self._choices: dict[tuple[str, int, int, int, tuple[str, ...]], tuple[list[Assignment], list[float]]] = {}

    def draw(self, task: TraceTask) -> Assignment:
        """The queue of ``task``. O(queues) for the first task of a shape."""
        key = (task.service_type, task.cpu_milli, task.memory_mib, task.card_milli, task.models)
        if key not in self._choices:
            self._choices[key] = self._weigh(task)
        assignments, weights = self._choices[key]
        if len(assignments) == 1:
            return assignments[0]
        return self._rng.choices(assignments, weights)[0]

    def _card_weights(
        self, service_type: str, nodes: tuple[Node, ...], tasks: tuple[TraceTask, ...]
    ) -> dict[str, float]:
        cards: dict[str, int] = {}
        for node in nodes:
            for group in node.cards:
                cards[group.card] = cards.get(group.card, 0) + group.count
        named: dict[str, float] = {}
        load = 0.0
        for task in tasks:
            if task.service_type == service_type:
                work = task.card_milli * min(task.life, _DAY)
                load += work
                if len(task.models) == 1:
                    named[task.models[0]] = named.get(task.models[0], 0.0) + work
        total = sum(cards.values())
        shares = {model: (load or 1.0) * count / total for model, count in sorted(cards.items())}
        return {model: max(share - named.get(model, 0.0), _LEAST * share) for model, share in shares.items()}

    def _weigh(self, task: TraceTask) -> tuple[list[Assignment], list[float]]:
        card_weights = self._weights[task.service_type]
        wanted = task.models or tuple(self._models)
        fitting = tuple(model for model in wanted if self._fits(task, model)) or wanted
        assignments: list[Assignment] = []
        weights: list[float] = []
        for queue in self._queues[task.service_type]:
            quota = queue.card_quota or {}
            usable = tuple(model for model in fitting if quota.get(model, 0) >= max(1, task.card_milli))
            if usable:
                assignments.append(Assignment(queue.name, usable if task.card_milli else ()))
                weights.append(sum(card_weights.get(model, 0.0) * self._fill(task, model) for model in usable))
        if not assignments:
            # No queue may use these cards: it waits in the first queue, and its reason says so.
            first = self._queues[task.service_type][0]
            return [Assignment(first.name, fitting if task.card_milli else ())], [1.0]
        return assignments, weights

    def _fits(self, task: TraceTask, model: str) -> bool:
        return any(_number(task, shape) for shape, _ in self._shapes if shape[2] == model)

    def _fill(self, task: TraceTask, model: str) -> float:
        """The part of a model's cards that tasks like this one could fill; 1 where they could not run at all."""
        of_model = [(shape, nodes) for shape, nodes in self._shapes if shape[2] == model]
        cards = sum(shape[3] * nodes for shape, nodes in of_model)
        filled = sum(_number(task, shape) * nodes for shape, nodes in of_model) * max(1, -(-task.card_milli // MILLI))
        return min(1.0, filled / cards) if filled else 1.0


def _number(task: TraceTask, shape: tuple[int, int, str, int]) -> int:
    """How many such tasks an empty node of a shape (cpu, memory, card type, cards) holds, one card each at least."""
    cpu, memory, _, cards = shape
    most = cards // max(1, -(-task.card_milli // MILLI)) if task.card_milli else cards
    if task.cpu_milli:
        most = min(most, cpu // task.cpu_milli)
    return min(most, memory // task.memory_mib) if task.memory_mib else most
