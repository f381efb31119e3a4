"""What a gang's leaving would have made room for, as a record says it: figures by node, and the sentence with them."""

from collections.abc import Sequence

from scheduler_core.algorithms.victims_alone import (
    FITS,
    MOST_NODES,
    N_FITS,
    N_FREE,
    N_FREES,
    N_NEEDS,
    N_NODE,
    N_WHAT,
    NODE_COLUMNS,
    NODES,
    NOTE,
    UNCOUNTED,
    WANTED,
)
from scheduler_core.model.decision import Alone, NodeRoom
from scheduler_core.model.resources import MIB, MILLI, in_mib, node_unit
from scheduler_core.model.rules import Rule
from scheduler_core.state.axes import FIRST_SCALAR, Axes

_ROWS = ("cpu", "memory", "pods")


def alone_of(note: Sequence[int], axes: Axes) -> Alone:
    """A note of ``algorithms.victims_alone`` with names."""
    first, nodes = NOTE - MOST_NODES * NODE_COLUMNS, []
    for place in range(min(note[NODES], MOST_NODES)):
        row = note[first + place * NODE_COLUMNS : first + (place + 1) * NODE_COLUMNS]
        if row[N_WHAT] != UNCOUNTED:
            nodes.append(_node(row, axes))
    return Alone(fits=note[FITS], wanted=note[WANTED], nodes=tuple(nodes), more_nodes=note[NODES] - len(nodes))


def rule_of_room(alone: Alone) -> str:
    """The sentence, with the figures of the best node."""
    if alone.fits >= alone.wanted:
        return Rule.NOT_REACHED.text()
    if not alone.nodes:
        return Rule.TOO_LITTLE.text()
    best = alone.nodes[0]
    said = {
        "node": best.node,
        "what": best.resource,
        "frees": _figure(best.resource, best.frees),
        "free": _figure(best.resource, best.free),
        "needs": _figure(best.resource, best.needs),
    }
    if alone.fits:
        return Rule.FEWER_PODS.text(fits=alone.fits, wanted=alone.wanted, **said)
    return Rule.SHORT_ON_NODE.text(short=_figure(best.resource, best.short), **said)


def _node(row: Sequence[int], axes: Axes) -> NodeRoom:
    what, place = row[N_WHAT], -row[N_WHAT] - 1
    short = 0 if row[N_FITS] else max(0, row[N_NEEDS] - row[N_FREE] - row[N_FREES])
    amounts: list[float] = [row[N_FREE], row[N_FREES], row[N_NEEDS], short]
    if what >= 0:
        resource, amounts = axes.cards[what], [amount / MILLI for amount in amounts]
    else:
        resource = _ROWS[place] if place < FIRST_SCALAR else axes.scalars[place - FIRST_SCALAR]
        amounts = [amount * node_unit(resource) for amount in amounts]
    free, frees, needs, short_of = amounts
    return NodeRoom(
        node=axes.nodes[row[N_NODE]], resource=resource, free=free, frees=frees, needs=needs, fits=row[N_FITS],
        short=short_of,
    )  # fmt: skip


def _figure(resource: str, amount: float) -> str:
    """Cards as counts, CPU in cores, bytes in MiB or GiB, other resources as they are counted."""
    if in_mib(resource):
        mib = amount / MIB
        return f"{mib / 1024:.4g} GiB" if mib >= 1024 else f"{mib:.4g} MiB"
    return f"{amount / MILLI:g}" if resource == "cpu" else f"{amount:.15g}"
