"""Do the books add up? Every sum is counted again from the tasks and compared. Called after each action when asked for
(``run_session(check=True)``, the tests); O(tasks + cards + nodes)."""

import numpy as np

from scheduler_core.model.errors import BrokenInvariant
from scheduler_core.model.resources import MILLI
from scheduler_core.state.cluster import Cluster
from scheduler_core.state.status import ALLOCATED, HOLDS, PIPELINED, RELEASING, Ints


def check(cluster: Cluster, after: str = "") -> None:
    """Compare every table with the tasks. Raises BrokenInvariant: names the table, the place and both numbers."""
    _check_nodes(cluster, after)
    _check_gangs(cluster, after)
    _check_ledger(cluster, after)
    _check_room(cluster, after)


def _check_nodes(cluster: Cluster, after: str) -> None:
    tasks, nodes, cards = cluster.tasks, cluster.nodes, cluster.cards
    used, releasing, pipelined = (np.zeros_like(nodes.used) for _ in range(3))
    card_used, card_releasing, card_pipelined = (np.zeros_like(cards.used) for _ in range(3))
    for task in np.flatnonzero(tasks.live & (tasks.node >= 0)).tolist():
        status, node, cls = int(tasks.status[task]), int(tasks.node[task]), cluster.class_of(task)
        card = int(tasks.card[task])
        first = cards.start_list[card][node] if card >= 0 else 0
        rows = [first + i for i in tasks.indices[task]] if card >= 0 else []
        each = cls.share or MILLI
        if status == PIPELINED:
            pipelined[:, node] += cls.request
            card_pipelined[rows] += each
        elif HOLDS[status]:
            used[:, node] += cls.request
            card_used[rows] += each
            if status == RELEASING:
                releasing[:, node] += cls.request
                card_releasing[rows] += each
    _same("node used", used, nodes.used, after)
    _same("node releasing", releasing, nodes.releasing, after)
    _same("node pipelined", pipelined, nodes.pipelined, after)
    _same("card used", card_used, cards.used, after)
    _same("card releasing", card_releasing, cards.releasing, after)
    _same("card pipelined", card_pipelined, cards.pipelined, after)
    idle = nodes.allocatable - used
    _same("node future", idle + releasing - pipelined, nodes.future, after)
    _same("node now", np.minimum(idle, idle + releasing - pipelined), nodes.now, after)


def _check_gangs(cluster: Cluster, after: str) -> None:
    tasks, gangs = cluster.tasks, cluster.gangs
    counts = np.zeros_like(gangs.counts)
    members = np.flatnonzero(tasks.live & (tasks.gang >= 0))
    np.add.at(counts, (tasks.status[members], tasks.gang[members]), 1)
    _same("members by status", counts, gangs.counts, after)


def _check_ledger(cluster: Cluster, after: str) -> None:
    ledger = cluster.ledger
    allocated, pipelined = ledger.sums(cluster.tasks, cluster.gangs.queue.astype(np.int64), cluster.charge)
    _same("queue allocated", allocated, ledger.allocated, after)
    _same("queue pipelined", pipelined, ledger.pipelined, after)


def _check_room(cluster: Cluster, after: str) -> None:
    """What this session placed must have room, now or once what leaves has left."""
    tasks, cards = cluster.tasks, cluster.cards
    for task in np.flatnonzero(tasks.live & ((tasks.status == ALLOCATED) | (tasks.status == PIPELINED))).tolist():
        node, card = int(tasks.node[task]), int(tasks.card[task])
        name = tasks.keys[task]
        free = cluster.nodes.future if tasks.status[task] == PIPELINED else cluster.nodes.now
        if (free[list(cluster.class_of(task).rows), node] < 0).any():
            raise BrokenInvariant(f"{after}: node {cluster.axes.nodes[node]} has no room for {name}")
        if card < 0:
            continue
        left = cards.free_future(card, node)
        if any(left[i] < 0 for i in tasks.indices[task]):
            raise BrokenInvariant(f"{after}: a card of {cluster.axes.nodes[node]} is given out twice, to {name} too")


def _same(what: str, counted: Ints, kept: Ints, after: str) -> None:
    if not np.array_equal(counted, kept):
        at = tuple(int(i) for i in np.argwhere(counted != kept)[0])
        raise BrokenInvariant(f"{after}: {what} at {at} is {int(kept[at])}, the tasks say {int(counted[at])}")
