"""What a session has bound and promised, read off the table of tasks; the objects are made when they are asked for."""

from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from scheduler_core.framework.session import Session
from scheduler_core.model.decision import Bind
from scheduler_core.model.later import Later
from scheduler_core.state.card_sets import cards_of_words

_POD = attrgetter("pod")


def placements(session: Session, status: int) -> Sequence[Bind]:
    """Tasks in one status with their places, by name. O(tasks) for one pass, the rest when it is read."""
    tasks, axes = session.tasks, session.axes
    # A slot that is free has the status of the pod that was there last.
    found = np.flatnonzero(tasks.live & (tasks.status == status))
    slots = found.tolist()
    if not slots:
        return ()
    # Slots go to other pods in later sessions: everything that is needed is taken along.
    keys = [tasks.keys[slot] for slot in slots]
    nodes, cards, words = tasks.node[found], tasks.card[found], tasks.indices.words[found]
    hooks = session.hooks.flat("bind_notes")
    notes = [{name: text for _, call in hooks for name, text in call(slot).items()} for slot in slots] if hooks else []

    def make() -> list[Bind]:
        node_names, card_names = axes.nodes, (*axes.cards, "")
        # Many hold the same set of cards.
        rows = list(map(tuple, words.tolist()))
        held = {row: cards_of_words(*row) for row in dict.fromkeys(rows)}
        columns = zip(keys, nodes.tolist(), cards.tolist(), rows, strict=True)
        binds = [Bind(key, node_names[n], card_names[c], held[row]) for key, n, c, row in columns]
        if notes:
            binds = [Bind(b.pod, b.node, b.card, b.card_indices, own) for b, own in zip(binds, notes, strict=True)]
        binds.sort(key=_POD)
        return binds

    return Later(len(slots), make)
