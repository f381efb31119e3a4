"""What a workspace holds, in a form in which two of them can be compared."""

from __future__ import annotations

import itertools

import numpy as np

from scheduler_core.model.podgroup import PodGroup
from scheduler_core.state.workspace import Workspace


def tables(workspace: Workspace) -> dict[str, object]:
    """Everything that a session starts from, without slot numbers."""
    tasks, cards, nodes = workspace.tasks, workspace.cards, workspace.nodes
    live = np.flatnonzero(tasks.live).tolist()
    gangs, members = workspace.gangs, workspace.members
    charge = workspace.classes.amounts
    queue = np.zeros(len(gangs.names), dtype=np.int32)
    return {
        "gangs": list(zip(gangs.names, gangs.lasting, [gangs.queue_names[q] for q in gangs.queue_ids.tolist()],
                          [gangs.kinds[number] for number in gangs.numbers.tolist()], strict=True)),
        "members": [[tasks.keys[t] for t in members.member[first:last].tolist()]
                    for first, last in itertools.pairwise(members.start.tolist())],
        "counts": members.counts[:, gangs.numbers].tolist(),
        "held": [members.held[gangs.numbers].tolist(), members.idle[gangs.numbers].tolist()],
        "use": members.use(charge, tasks, gangs.numbers, queue, 1).tolist(),
        "facts": [column.tolist() for column in gangs.facts._replace(declaration=queue)],
        "declared": [_declared(gangs.declarations[number]) if number >= 0 else None
                     for number in gangs.facts.declaration.tolist()],
        "allocatable": nodes.allocatable.tolist(),
        "used": nodes.used.tolist(),
        "releasing": nodes.releasing.tolist(),
        "now": nodes.now.tolist(),
        "future": nodes.future.tolist(),
        "cards": cards.used.tolist(),
        "leaving": cards.releasing.tolist(),
        "free": [cards.whole_now.tolist(), cards.best_now.tolist(), cards.left_future.tolist()],
        "tasks": sorted(
            (tasks.keys[t], int(tasks.status[t]), int(tasks.node[t]), int(tasks.card[t]), tasks.indices[t],
             int(tasks.gang[t]), int(tasks.place[t]), str(tasks.started[t]), int(tasks.priority[t]),
             bool(tasks.protected[t]), workspace.slot_of[tasks.keys[t]] == t)
            for t in live
        ),
    }  # fmt: skip


def _declared(group: PodGroup) -> object:
    return group.min_resources, sorted(group.card_request.items()), sorted(group.min_scalars.items())
