"""Sessions over the simulated cluster: time passes, a session decides, the cluster carries it out."""

from collections.abc import Callable
from typing import Protocol

from scheduler_core.model.decision import Result
from scheduler_core.model.memory import Memory
from scheduler_core.model.policy import Policy
from scheduler_core.scheduler import run_session
from scheduler_core.simulator.errors import WorldError
from scheduler_core.simulator.scenario import Scenario, advance
from scheduler_core.simulator.snapshot import SnapshotView
from scheduler_core.simulator.world import World
from scheduler_core.state.workspace import Workspace


class Observer(Protocol):
    """An observer of the sessions; the world reports the rest to it."""

    def decided(self, result: Result) -> None:
        """A session has decided; nothing is carried out yet."""

    def stepped(self) -> None:
        """The session's decisions are carried out (or there was nothing to decide)."""


class SessionLoop:
    """A session every ``session_seconds`` of virtual time.

    A session is skipped, and still counted, when it could only repeat the last one: nothing in the world changed since,
    that one decided nothing, and nothing is reserved, so no clock is running either.

    Attributes:
        sessions: how many there were, the skipped ones included. skipped: those.
        refused: decisions that the cluster refused."""

    def __init__(
        self, world: World, scenario: Scenario, policy: Policy, *, session_seconds: float, seed: int,
        reasons: bool = True,
    ) -> None:  # fmt: skip
        self._world, self._scenario, self._policy = world, scenario, policy
        self._session_seconds, self._seed, self._reasons = session_seconds, seed, reasons
        self._view = SnapshotView(world)
        self._observers: list[Observer] = []
        self._memory: Memory | None = None
        self._workspace = Workspace()
        self._settled: int | None = None
        self.sessions = self.skipped = self.refused = 0

    def observe(self, observer: Observer) -> None:
        self._observers.append(observer)

    def step(self) -> None:
        """Let the time of one session pass, then decide and carry out."""
        world = self._world
        advance(world, self._scenario, world.t + self._session_seconds)
        self.sessions += 1
        if self._settled == world.changes:
            self.skipped += 1
        else:
            before = world.changes
            result, self._memory = run_session(
                self._view.take(), self._policy, now=world.t, seed=self._seed, memory=self._memory,
                workspace=self._workspace, reasons=self._reasons,
            )  # fmt: skip
            for observer in self._observers:
                observer.decided(result)
            self._apply(result)
            idle = world.changes == before and not result.pipelined and not self._memory.reservations
            self._settled = world.changes if idle else None
        for observer in self._observers:
            observer.stepped()

    def _apply(self, result: Result) -> None:
        world = self._world
        for eviction in result.evictions:
            self._attempt(world.evict, eviction.pod)
        for bind in result.binds:
            self._attempt(world.bind, bind.pod, bind.node, bind.card, bind.card_indices)
        for outcome in result.podgroups:
            group = world.pod_groups.get(outcome.name)
            # The replay reads no conditions; a phase is all that its controllers wait for.
            if group is not None and group.phase is not outcome.phase:
                world.set_group_status(outcome.name, outcome.phase)

    def _attempt(self, write: Callable[..., None], *arguments: object) -> None:
        try:
            write(*arguments)
        except WorldError:
            self.refused += 1
