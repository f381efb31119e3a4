"""The search for victims over a whole session: one table of units for an action, one search state for equal claimants.

What may leave is tabled once and repaired for the gangs that change; what a class of tasks could gain on each node is
kept per kind of claimant (:mod:`scheduler_core.actions.support.search_state`). A storm of claimants then pays for what
it moves."""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from scheduler_core.actions.support.search_state import State, Verdicts
from scheduler_core.actions.support.victims import Victims
from scheduler_core.algorithms.protection import PROTECTED_NAMESPACE, system_rule
from scheduler_core.algorithms.victims import Unit
from scheduler_core.algorithms.victims_choice import Choice, new_choice
from scheduler_core.algorithms.victims_field import Tasks, free_cards, load_all, load_unit, make_pieces
from scheduler_core.algorithms.victims_room import (
    FIRST,
    FREES_CPU,
    FREES_MILLI,
    GANG,
    LAST,
    LEVEL,
    NEVER,
    SPARE,
    TASK,
    UNIT_COLUMNS,
    UNIT_TASK,
    WORK,
    Ask,
    Field,
)
from scheduler_core.framework.session import Session
from scheduler_core.model.podgroup import EvictedPolicy, PodGroup
from scheduler_core.model.resources import MILLI
from scheduler_core.state.status import ALLOCATED, CHARGED, RUNNING, Bools, Index, Ints
from scheduler_core.state.task_class import TaskClass


class GangColumns(msgspec.Struct, frozen=True, gc=False):
    """What PodGroups say, as columns: priority, never to be taken, no PodEvicted policy, namespace of the system.
    ``rank`` is the place of the priority among ``priorities``."""

    groups: Sequence[PodGroup]
    priorities: Ints
    rank: Ints
    kept: Bools
    lenient: Bools
    system: Bools


class VictimSearch:
    """Units of all gangs of a session, and search states by kind of claimant."""

    def __init__(self, session: Session, victims: Victims) -> None:
        self._session, self._victims = session, victims
        tasks, gangs, cards = session.tasks, session.gangs, session.cards
        self._columns = columns = _gang_columns(session)
        self.lenient = columns.lenient
        queues, classes = session.ledger.queues, session.cluster.classes
        reclaimable = np.array([queue.reclaimable for queue in queues] + [False], dtype=np.bool_)
        priority = np.array([queue.priority for queue in queues] + [0], dtype=np.int64)
        self.barred: Bools = ~reclaimable[gangs.queue] | columns.kept | columns.system
        self.barred |= gangs.counts[ALLOCATED] > 0
        self.barred[victims.resting()] = True
        self._queue_priorities, place = np.unique(priority, return_inverse=True)
        self.level_of: Ints = place[gangs.queue] * max(1, len(columns.priorities)) + columns.rank
        spare = np.where(columns.lenient, np.maximum(gangs.ready_count - gangs.min_member, 0), 0)
        alone, self.whole, units = self._number(spare)
        kinds = np.array([(c.milli, c.cpu_milli, c.share or MILLI) for c in classes.classes], dtype=np.int64)
        there = np.flatnonzero(tasks.live & CHARGED[tasks.status] & (tasks.gang >= 0))
        columns_of_tasks = Tasks(
            there, tasks.gang, tasks.node, tasks.cls, tasks.card, alone, tasks.indices.words, self._began(there),
            tasks.protected, kinds.reshape(-1, 3),
        )  # fmt: skip
        pieces, start, unit_piece = make_pieces(
            columns_of_tasks, float(session.now), len(session.nodes), self.whole, units
        )
        requests = np.stack([cls.request for cls in classes.classes])
        card_at = np.stack([cards.start, cards.count], axis=2).astype(np.int64)
        self.field = Field(
            pieces, start, units, unit_piece, requests, session.nodes.future, card_at, np.zeros_like(cards.used)
        )
        load_all(self.field, tasks.status, CHARGED, RUNNING, self.barred, self.level_of)
        self._place = -1
        self._states: dict[object, State | None] = {}
        self.choices: dict[int, Choice] = {}
        # How often a candidate was barred on the way, so that what was found before has to be looked for again.
        self.bars = 0

    def _number(self, spare: Ints) -> tuple[Index, Ints, Ints]:
        """Number the units in the order of their names: (unit of each single member, of each whole gang, the table)."""
        session, gangs = self._session, self._session.gangs
        alone: Index = np.full(len(session.tasks), -1, dtype=np.int32)
        more: Ints = np.zeros(len(gangs) + 1, dtype=np.int64)
        singles: list[tuple[int, int]] = []
        for gang in np.flatnonzero((spare > 0) & ~self.barred).tolist():
            members = [t for t in gangs.with_status(gang, RUNNING) if not session.tasks.protected[t]]
            more[gang + 1] = len(members)
            singles += [(gang, task) for task in members]
        whole: Ints = np.arange(len(gangs), dtype=np.int64) + np.cumsum(more)[:-1]
        units: Ints = np.zeros((len(gangs) + len(singles), UNIT_COLUMNS), dtype=np.int64)
        units[:, UNIT_TASK], units[:, LEVEL] = -1, NEVER
        units[whole, GANG], units[whole, SPARE] = np.arange(len(gangs)), spare
        places = dict[int, int]()
        for gang, task in singles:
            unit = places[gang] = places.get(gang, int(whole[gang])) + 1
            alone[task] = unit
            units[unit, GANG], units[unit, UNIT_TASK], units[unit, SPARE] = gang, task, spare[gang]
        return alone, whole, units

    def _began(self, there: Ints) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """float64 (tasks,): when the work of each task in place began; its creation where no start is known."""
        tasks = self._session.tasks
        unknown = there[np.isnan(tasks.started[there])]
        if not unknown.size:
            return tasks.started
        began = tasks.started.copy()
        for task in unknown.tolist():
            began[task] = tasks.pod(task).created
        return began

    def refresh(self) -> None:
        """Bring the free cards up to what has moved since the last question, O(changed nodes)."""
        log, cards = self._session.nodes.log, self._session.cards
        if self._place == len(log):
            return
        nodes = np.arange(len(self._session.nodes)) if self._place < 0 else np.array(log[self._place :], dtype=np.int64)
        self._place = len(log)
        free_cards(self.field.card_at, nodes, cards.used, cards.releasing, cards.pipelined, self.field.card_free)

    def rank_of(self, gangs: Ints) -> Ints:
        """int64: the level of gangs, as a place in the order of levels."""
        return self.level_of[gangs]

    def work_of_gangs(self, gangs: Ints) -> Ints:
        """int64: work that is lost when whole gangs leave."""
        lost: Ints = self.field.units[self.whole[gangs], WORK]
        return lost

    def rule(self, gang: int, queue: int) -> str | None:
        """The hard rule that keeps a gang from a reclaimer in a queue."""
        return self._victims.rule(gang, queue)

    def forget(self, gang: int) -> None:
        """The gang has changed: bring its units up to date."""
        session, unit = self._session, int(self.whole[gang])
        if session.gangs.count(gang, ALLOCATED):
            self.barred[gang] = True
        if self._columns.lenient[gang]:
            self.field.units[unit, SPARE] = max(0, session.gangs.ready(gang) - session.gangs.least[gang])
        load_unit(self.field, unit, session.tasks.status, CHARGED, RUNNING, self.barred, self.level_of)

    def bar(self, gang: int) -> None:
        """A rule was found that keeps the gang for the rest of the action."""
        self.barred[gang] = True
        self.bars += 1
        self.forget(gang)
        self._states.clear()

    def tasks_of(self, unit: int) -> list[int]:
        """The tasks of a unit, those of a whole gang that have left before included."""
        field = self.field
        found: list[int] = field.pieces[
            field.unit_piece[field.units[unit, FIRST] : field.units[unit, LAST]], TASK
        ].tolist()
        return found

    def unit(self, number: int) -> Unit:
        session, field = self._session, self.field
        gang, single, _, work, spare, _, _, milli, cpu = field.units[number].tolist()
        name = label = session.gangs.names[gang]
        if single < 0:
            found = [task for task in session.gangs.members(gang) if CHARGED[session.tasks.status[task]]]
            members = tuple(sorted(found, key=session.tasks.keys.__getitem__))
            spare = 0
        else:
            members, label = (single,), f"{name} {session.tasks.keys[single]}"
        return Unit(label, name, self.level(int(self.level_of[gang])), work, milli or cpu, members, spare)

    def rank_of_level(self, level: tuple[int, int]) -> int:
        queue = int(np.searchsorted(self._queue_priorities, level[0]))
        return queue * len(self._columns.priorities) + int(np.searchsorted(self._columns.priorities, level[1]))

    def level(self, rank: int) -> tuple[int, int]:
        queue, gang = divmod(rank, len(self._columns.priorities))
        return int(self._queue_priorities[queue]), int(self._columns.priorities[gang])

    def protected(self, units: list[Unit]) -> bool:
        """True when a pod among the units belongs to the system; its gang is out of the question from now on."""
        session, found = self._session, False
        for unit in units:
            if any(system_rule(session.tasks.pod(task)) is not None for task in unit.members):
                self.bar(int(session.tasks.gang[unit.members[0]]))
                found = True
        return found

    def state(
        self, key: object, cls: TaskClass, useful: Bools, limits: list[int], queue: int,
        ask: Callable[[Bools], Verdicts],
    ) -> State | None:  # fmt: skip
        """The search state for a kind of claimant, None when there is no node for it; also where no gang may be taken,
        to say why.

        Args:
            key: what makes claimants alike; None = this one is like no other.
            useful: bool (N,), where the tasks may go. limits: tasks that the quota allows, by card option.
            queue: the reclaimer's, which takes from others only.
            ask: the plugins' answer about candidate gangs, bool (G,)."""
        made = State(self, self._session, cls, useful, limits, queue, ask) if useful.any() else None
        if key is not None:
            self._states[key] = made
        return made

    def known(self, key: object) -> tuple[bool, State | None]:
        """Whether there is a state for this kind of claimant, and the state."""
        return (True, self._states[key]) if key is not None and key in self._states else (False, None)

    def unshare(self, key: object) -> None:
        """The state depends on more than its key says."""
        self._states.pop(key, None)

    def ask(self, cls: TaskClass, nodes: Bools, ok: Bools) -> Ask:
        """What equal tasks look for, in arrays."""
        amounts: Ints = np.array([cls.rows, cls.request[list(cls.rows)]], dtype=np.int64).reshape(2, len(cls.rows))
        size, need = (FREES_MILLI, cls.milli) if cls.milli else (FREES_CPU, max(1, cls.cpu_milli))
        view = self._session.candidates.view(cls)
        blocked: Bools = view.curable & ~view.allowed
        cards = np.array(cls.cards, dtype=np.int64)
        return Ask(amounts, cards, nodes, blocked, ok, cls.whole, cls.share, size, need)

    def choice(self, options: int) -> Choice:
        """Scratch room for a request with so many card options."""
        if options not in self.choices:
            self.choices[options] = new_choice(self.field, options, len(self._session.gangs))
        return self.choices[options]


def _gang_columns(session: Session) -> GangColumns:
    """The columns of the session's gangs, kept while the PodGroups are the very same."""
    groups, masks = session.gangs.groups, session.cluster.workspace.masks
    known = masks.get("gang columns")
    if isinstance(known, GangColumns) and known.groups is groups:
        return known
    priority: Ints = np.fromiter((group.priority for group in groups), dtype=np.int64, count=len(groups))
    priorities, rank = np.unique(priority, return_inverse=True)
    made = GangColumns(
        groups,
        priorities,
        rank.astype(np.int64),
        np.fromiter((group.preemptable is False or bool(group.spared) for group in groups), np.bool_, len(groups)),
        np.fromiter((group.evicted_policy is EvictedPolicy.NONE for group in groups), np.bool_, len(groups)),
        np.fromiter((group.namespace == PROTECTED_NAMESPACE for group in groups), np.bool_, len(groups)),
    )
    masks["gang columns"] = made
    return made
