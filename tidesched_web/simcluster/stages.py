import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from scheduler_core.simulator.demo import DemoScenario, demo_world
from scheduler_core.simulator.demo_tenancy import PRIORITY_CLASSES as DEMO_CLASSES
from scheduler_core.simulator.demo_tenancy import QUEUES as DEMO_QUEUES
from scheduler_core.simulator.medium import MediumScenario, medium_world
from scheduler_core.simulator.medium_tenancy import queues as medium_queues
from scheduler_core.simulator.scenario import Scenario
from scheduler_core.simulator.world import World
from tidesched_web.simcluster.resources import PRIORITY_CLASSES, QUEUES
from tidesched_web.simcluster.store import Store


@dataclass(frozen=True)
class Stage:
    """Until TideSched has pushed all of ``queues`` and ``classes`` the clock is stopped and no one arrives."""

    fresh: Callable[[], World]
    scenario: Callable[[World], Scenario | None]
    name: str = ""
    queues: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    def ready(self, store: Store) -> bool:
        needed = [(PRIORITY_CLASSES, name) for name in self.classes] + [(QUEUES, name) for name in self.queues]
        return all(store.get(kind, "", name) is not None for kind, name in needed)


def demo_stage(seed: int) -> Stage:
    """Sixty nodes, twenty queues, and a day of tide, lap after lap."""
    return Stage(
        name="demo",
        fresh=lambda: demo_world(seed),
        scenario=lambda world: DemoScenario(_past_the_last_act(world), seed=seed),
        queues=tuple(queue.name for queue in DEMO_QUEUES),
        classes=tuple(item.name for item in DEMO_CLASSES),
    )


def medium_stage(seed: int) -> Stage:
    """A thousand nodes, 500 queues and 10,000 pods that run already, with the demo's day among them."""
    return Stage(
        name="medium",
        fresh=lambda: medium_world(seed),
        scenario=lambda world: MediumScenario(_past_the_last_act(world), seed=seed),
        queues=tuple(queue.name for queue in (*DEMO_QUEUES, *medium_queues())),
        classes=tuple(item.name for item in DEMO_CLASSES),
    )


def empty_stage(seed: int, start: float | None) -> Stage:
    return Stage(
        name="empty",
        fresh=lambda: World(seed=seed, start=time.time() if start is None else start),
        scenario=lambda _world: None,
    )


def _past_the_last_act(world: World) -> World:
    """A scenario finds its next act by the time alone; one that it did at this very moment must not come again."""
    if world.workloads:
        world.advance(math.nextafter(world.t, math.inf))
    return world
