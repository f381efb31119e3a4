"""What the pods of a node take of it, counted anew for nodes where something changed."""

from typing import NamedTuple

import numpy as np

from scheduler_core.algorithms.compiled import compiled, compiled_loop
from scheduler_core.model.cards import WORD_BITS
from scheduler_core.model.resources import MILLI
from scheduler_core.state.card_table import CardTable
from scheduler_core.state.node_table import NodeTable
from scheduler_core.state.status import RELEASING, Bools, Index, Ints
from scheduler_core.state.task_class import ClassColumns
from scheduler_core.state.task_table import Codes, TaskTable


class Pods(NamedTuple):
    """Of each task slot: see :class:`TaskTable`; ``wanted`` int64 (slots, W), the cards that its pod says it holds."""

    status: Codes
    cls: Index
    card: Index
    words: Ints
    wanted: Ints


class Room(NamedTuple):
    """Arrays of the node table and the card table that are written; ``number`` is the card table's ``count``."""

    start: Index
    number: Index
    card_used: Ints
    card_releasing: Ints
    whole_now: Ints
    whole_future: Ints
    best_now: Ints
    best_future: Ints
    left_now: Ints
    left_future: Ints
    allocatable: Ints
    used: Ints
    releasing: Ints
    now: Ints
    future: Ints


def recount(
    nodes: NodeTable, cards: CardTable, tasks: TaskTable, wanted: Ints, classes: ClassColumns, at: list[int],
    slots: list[list[int]],
) -> None:  # fmt: skip
    """Count nodes again from the pods on them, and say which cards each of these holds.

    A pod that says which cards it holds gets these, unless that cannot be true; the others get places in the order of
    names, whole cards the first free ones, a share the card that it fills best. Where no room is left the emptiest
    cards are over-committed.

    Args:
        wanted: int64 (slots, W), cards as the pods say, as bits; 0 = unknown.
        at: positions of nodes. slots: the task slots on each of them, by name."""
    if not at:
        return
    start = np.zeros(len(at) + 1, dtype=np.int64)
    start[1:] = np.cumsum([len(each) for each in slots])
    flat = np.array([slot for each in slots for slot in each], dtype=np.int64)
    pods = Pods(tasks.status, tasks.cls, tasks.card, tasks.indices.words, wanted)
    chosen = np.zeros(max(1, int(cards.count.max(initial=1))), dtype=np.bool_)
    _recount(np.array(at, dtype=np.int64), start, flat, pods, classes, room_of(nodes, cards), chosen)


def room_of(nodes: NodeTable, cards: CardTable) -> Room:
    return Room(
        cards.start, cards.count, cards.used, cards.releasing, cards.whole_now, cards.whole_future, cards.best_now,
        cards.best_future, cards.left_now, cards.left_future, nodes.allocatable, nodes.used, nodes.releasing, nodes.now,
        nodes.future,
    )  # fmt: skip


@compiled
def _recount(at: Ints, start: Ints, slots: Ints, pods: Pods, classes: ClassColumns, room: Room, chosen: Bools) -> None:
    loose = np.zeros(len(slots), dtype=np.bool_)
    for i in range(len(at)):
        node = at[i]
        first, last = start[i], start[i + 1]
        _count_plain(node, slots[first:last], pods, classes, room)
        for card in range(room.number.shape[0]):
            begin = room.start[card, node]
            room.card_used[begin : begin + room.number[card, node]] = 0
            room.card_releasing[begin : begin + room.number[card, node]] = 0
        for j in range(first, last):
            slot = slots[j]
            cls = pods.cls[slot]
            if classes.milli[cls] > 0:
                pods.card[slot] = _first_option(cls, node, classes, room)
                pods.words[slot, :] = 0
                loose[j] = pods.card[slot] >= 0 and not _hold(slot, node, pods, classes, room, chosen)
        for j in range(first, last):
            if loose[j]:
                _find(slots[j], node, pods, classes, room, chosen)
        for card in range(room.number.shape[0]):
            if room.number[card, node] > 0:
                _sum_cards(card, node, room)


@compiled_loop
def _count_plain(node: int, slots: Ints, pods: Pods, classes: ClassColumns, room: Room) -> None:
    """Resources of the node, cards not included."""
    for row in range(room.used.shape[0]):
        used = releasing = 0
        for slot in slots:
            amount = classes.request[pods.cls[slot], row]
            used += amount
            if pods.status[slot] == RELEASING:
                releasing += amount
        room.used[row, node], room.releasing[row, node] = used, releasing
        idle = room.allocatable[row, node] - used
        room.future[row, node] = idle + releasing
        room.now[row, node] = min(idle, idle + releasing)


@compiled_loop
def _first_option(cls: int, node: int, classes: ClassColumns, room: Room) -> int:
    """The first card type of the request that the node has, -1 when it has none."""
    for option in range(classes.option_start[cls], classes.option_start[cls + 1]):
        if room.number[classes.option[option], node] > 0:
            return int(classes.option[option])
    return -1


@compiled_loop
def _hold(slot: int, node: int, pods: Pods, classes: ClassColumns, room: Room, chosen: Bools) -> bool:
    """Take the cards that the pod says it holds; False when that cannot be true."""
    cls, card = pods.cls[slot], pods.card[slot]
    count, begin = room.number[card, node], room.start[card, node]
    share = classes.share[cls]
    each, needed = (share, 1) if share > 0 else (MILLI, classes.whole[cls])
    chosen[:] = False
    found = 0
    for word in range(pods.wanted.shape[1]):
        bits = pods.wanted[slot, word]
        for bit in range(WORD_BITS):
            if bits >> bit == 0:
                break
            if bits >> bit & 1:
                i = word * WORD_BITS + bit
                if i >= count or MILLI - room.card_used[begin + i] < each:
                    return False
                chosen[i] = True
                found += 1
    if found != needed or found == 0:
        return False
    _use(slot, node, each, pods, room, chosen)
    return True


@compiled_loop
def _find(slot: int, node: int, pods: Pods, classes: ClassColumns, room: Room, chosen: Bools) -> None:
    """Choose cards for a pod that does not say which it holds."""
    cls = pods.cls[slot]
    share, whole = classes.share[cls], classes.whole[cls]
    each = share if share > 0 else MILLI
    for option in range(classes.option_start[cls], classes.option_start[cls + 1]):
        card = classes.option[option]
        if room.number[card, node] > 0 and _choose(card, node, whole, share, room, chosen):
            pods.card[slot] = card
            _use(slot, node, each, pods, room, chosen)
            return
    card = pods.card[slot]
    count, begin = room.number[card, node], room.start[card, node]
    chosen[:] = False
    for _ in range(min(count, 1 if share > 0 else whole)):
        best = -1
        for i in range(count):
            if not chosen[i] and (best < 0 or room.card_used[begin + i] < room.card_used[begin + best]):
                best = i
        chosen[best] = True
    _use(slot, node, each, pods, room, chosen)


@compiled_loop
def _choose(card: int, node: int, whole: int, share: int, room: Room, chosen: Bools) -> bool:
    """The same choice as :func:`scheduler_core.state.card_table.choose_cards`."""
    count, begin = room.number[card, node], room.start[card, node]
    chosen[:] = False
    if share > 0:
        best = -1
        for i in range(count):
            free = MILLI - room.card_used[begin + i]
            if free >= share and (best < 0 or free < MILLI - room.card_used[begin + best]):
                best = i
        if best >= 0:
            chosen[best] = True
        return best >= 0
    found = 0
    for i in range(count):
        if found < whole and room.card_used[begin + i] <= 0:
            chosen[i] = True
            found += 1
    return found == whole


@compiled_loop
def _use(slot: int, node: int, each: int, pods: Pods, room: Room, chosen: Bools) -> None:
    begin = room.start[pods.card[slot], node]
    for i in range(room.number[pods.card[slot], node]):
        if chosen[i]:
            room.card_used[begin + i] += each
            if pods.status[slot] == RELEASING:
                room.card_releasing[begin + i] += each
            pods.words[slot, i // WORD_BITS] |= np.int64(1) << (i % WORD_BITS)


@compiled_loop
def _sum_cards(card: int, node: int, room: Room) -> None:
    """What is left of one card type on one node."""
    whole_now = whole_future = best_now = best_future = left_now = left_future = 0
    begin = room.start[card, node]
    for row in range(begin, begin + room.number[card, node]):
        now = MILLI - room.card_used[row]
        future = now + room.card_releasing[row]
        whole_now += now >= MILLI
        whole_future += future >= MILLI
        best_now, best_future = max(best_now, now), max(best_future, future)
        left_now += max(now, 0)
        left_future += max(future, 0)
    room.whole_now[card, node], room.whole_future[card, node] = whole_now, whole_future
    room.best_now[card, node], room.best_future[card, node] = best_now, best_future
    room.left_now[card, node], room.left_future[card, node] = left_now, left_future
