"""A statement can always be taken back to the very same tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from scheduler_core.framework.statement import Statement
from scheduler_core.state import invariants
from scheduler_core.state.card_table import choose_cards
from scheduler_core.state.cluster import Cluster
from scheduler_core.state.status import CHARGED, TaskStatus
from scheduler_core.state.workspace import Workspace
from tests.core.small_cluster import gang, inference, node, service, snapshot, training


def cluster() -> Cluster:
    made = Cluster(
        snapshot(
            [node("n1", 4), node("n2", 2)],
            [inference(), training()],
            gang("job", 2, 2, "training", on=["n1", "n2"]),
            gang("share", 2, 0.5, "training", on=["n1", "n1"]),
            gang("wait", 2, 1, "training"),
            service("svc", 3, 0.4),
        ),
        Workspace(),
    )
    made.load_ledger()
    return made


def picture(of: Cluster) -> list[list[int]]:
    """Every number that a statement may change."""
    tables = (
        of.nodes.used, of.nodes.releasing, of.nodes.pipelined, of.nodes.now, of.nodes.future,
        of.cards.used, of.cards.releasing, of.cards.pipelined, of.cards.whole_now, of.cards.whole_future,
        of.cards.best_now, of.cards.best_future, of.cards.left_now, of.cards.left_future,
        of.ledger.allocated, of.ledger.pipelined, of.gangs.counts,
        of.tasks.status, of.tasks.node, of.tasks.card,
    )  # fmt: skip
    return [np.asarray(table).ravel().tolist() for table in tables]


class StatementMachine(RuleBasedStateMachine):
    """Random operations, checkpoints and rollbacks; the books always add up and undo restores everything."""

    @initialize()
    def start(self):
        self.cluster = cluster()
        self.statement = Statement(self.cluster)
        self.marks = [(0, picture(self.cluster))]

    def tasks(self, *statuses):
        table = self.cluster.tasks
        return [t for t in range(len(table)) if table.live[t] and table.status[t] in statuses]

    @rule(pick=st.integers(0, 99))
    def evict(self, pick):
        table = self.cluster.tasks
        found = [t for t in range(len(table)) if table.live[t] and CHARGED[table.status[t]]]
        if found:
            self.statement.evict(found[pick % len(found)])

    @rule(pick=st.integers(0, 99), node=st.integers(0, 1), later=st.booleans())
    def place(self, pick, node, later):
        found = self.tasks(TaskStatus.PENDING)
        if not found:
            return
        task = found[pick % len(found)]
        cls = self.cluster.class_of(task)
        free = self.cluster.cards.free_future(0, node) if later else self.cluster.cards.free_now(0, node)
        chosen = choose_cards(free, cls.whole, cls.share)
        if chosen is not None:
            (self.statement.pipeline if later else self.statement.allocate)(task, node, 0, chosen)

    @rule(pick=st.integers(0, 99))
    def hold(self, pick):
        found = self.tasks(TaskStatus.ALLOCATED)
        if found:
            self.statement.hold(found[pick % len(found)])

    @rule(pick=st.integers(0, 99))
    def unpipeline(self, pick):
        found = self.tasks(TaskStatus.PIPELINED)
        if found:
            self.statement.unpipeline(found[pick % len(found)])

    @rule()
    def mark(self):
        self.marks.append((self.statement.checkpoint(), picture(self.cluster)))

    @rule(pick=st.integers(0, 99))
    def go_back(self, pick):
        place = pick % len(self.marks)
        point, before = self.marks[place]
        done = list(self.statement.operations[point:])
        after = picture(self.cluster)
        self.statement.rollback(point)
        assert picture(self.cluster) == before
        self.statement.repeat(done)
        assert picture(self.cluster) == after
        self.statement.rollback(point)
        del self.marks[place + 1 :]

    @invariant()
    def adds_up(self):
        if hasattr(self, "cluster"):
            invariants.check(self.cluster, "statement")

    def teardown(self):
        if hasattr(self, "cluster"):
            self.statement.discard()
            assert picture(self.cluster) == self.marks[0][1]


TestStatement = StatementMachine.TestCase
TestStatement.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def test_an_operation_wants_the_right_status():
    made = cluster()
    statement = Statement(made)
    waiting = next(t for t in range(len(made.tasks)) if made.tasks.keys[t] == "ns/wait-0")
    with pytest.raises(ValueError, match="PENDING"):
        statement.evict(waiting)
    with pytest.raises(ValueError, match="expected PIPELINED"):
        statement.unpipeline(waiting)


def test_a_closed_statement_takes_nothing_more():
    made = cluster()
    statement = Statement(made)
    statement.commit()
    running = next(t for t in range(len(made.tasks)) if made.tasks.keys[t] == "ns/job-0")
    with pytest.raises(ValueError, match="closed"):
        statement.evict(running)


def test_a_wrong_number_is_noticed():
    from scheduler_core.model.errors import BrokenInvariant

    made = cluster()
    made.nodes.used[0, 0] += 1
    with pytest.raises(BrokenInvariant, match="node used"):
        invariants.check(made)
