"""The end of a session: what the tables say becomes the result."""

from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from scheduler_core.framework.gang_outcomes import gang_outcomes
from scheduler_core.framework.session import Session
from scheduler_core.model.decision import Bind, QueueOutcome, Result
from scheduler_core.model.later import Later
from scheduler_core.model.reason import Reason
from scheduler_core.model.resources import Amount
from scheduler_core.state.card_sets import cards_of_words
from scheduler_core.state.queue_ledger import NO_LIMIT
from scheduler_core.state.status import ALLOCATED, PIPELINED

# What a session has bound and promised, read off the table of tasks; the objects are made when they are asked for.
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


def close(session: Session, reasons: dict[int, Reason], positions: dict[int, int], timings: dict[str, float]) -> Result:
    """Read the result off the tables; every list sorted by name. O(tasks + gangs) for a few passes over columns;
    outcomes and places become objects when they are looked at."""
    trace = session.trace
    evictions, reclaims = trace.told()
    return Result(
        findings=session.snapshot.findings,
        now=session.now,
        binds=placements(session, ALLOCATED),
        evictions=evictions,
        pipelined=placements(session, PIPELINED),
        podgroups=gang_outcomes(session, reasons, positions),
        queues=_queues(session),
        reclaims=reclaims,
        reasons=tuple(sorted(reasons.values(), key=lambda reason: reason.podgroup)),
        events=tuple(sorted(trace.events, key=lambda event: (event.kind, event.name, event.reason, event.message))),
        timings_ms=timings,
    )


def _queues(session: Session) -> Sequence[QueueOutcome]:
    """Outcomes of all queues; at once where plugins have a say, who look at tables that are gone later."""
    if any(session.hooks.flat(point) for point in ("queue_deserved", "queue_share")):
        return _make_queues(session)
    return Later(len(session.ledger), lambda: _make_queues(session))


def _make_queues(session: Session) -> tuple[QueueOutcome, ...]:
    ledger = session.ledger
    inqueue = _inqueue_amounts(session)
    outcomes = []
    for q, queue in enumerate(ledger.queues):
        quota = ledger.quota(q)
        deserved = session.hooks.first("queue_deserved", q)
        outcomes.append(
            QueueOutcome(
                name=queue.name, state=queue.state.value, quota=quota, allocated=ledger.amount(ledger.allocated[:, q]),
                inqueue=inqueue[q], elastic=ledger.amount(ledger.elastic[:, q]),
                deserved=quota if deserved is None else deserved, share=_share(session, q),
            )
        )  # fmt: skip
    return tuple(outcomes)


def _inqueue_amounts(session: Session) -> list[Amount]:
    """Promised to gangs and not in use yet, places that wait for room included; choices under the name ``A|B``."""
    ledger, axes = session.ledger, session.axes
    amounts = []
    for q in range(len(ledger)):
        amount = ledger.amount(np.maximum(ledger.inqueue[:, q] + ledger.pipelined[:, q], 0))
        for choice, milli in sorted(ledger.inqueue_choices[q].items()):
            amount = amount + Amount.of_cards({"|".join(axes.cards[card] for card in choice): milli})
        amounts.append(amount)
    return amounts


def _share(session: Session, queue: int) -> float:
    """Largest used part of a limit, rounded so that every processor prints the same."""
    ledger = session.ledger
    known: float | None = session.hooks.first("queue_share", queue)
    if known is not None:
        return round(known, 6)
    share = 0.0
    for row, limit in enumerate(ledger.capability[:, queue].tolist()):
        used = int(ledger.allocated[row, queue])
        if used > 0 and limit < NO_LIMIT:
            share = max(share, used / limit if limit else 1.0)
    return round(share, 6)
