"""``python -m scheduler_core.cli.warm``: compile what a session compiles, before the first one is due. Run once where
the engine is installed, with the ``NUMBA_CACHE_DIR`` of the processes that are to find the code there."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from scheduler_core.algorithms.compiled import compilable, compiled_functions
from scheduler_core.model.cards import CardRequest, NodeCards
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod, PodPhase
from scheduler_core.model.podgroup import GangPhase, PodGroup
from scheduler_core.model.queue import Queue
from scheduler_core.model.snapshot import Snapshot
from scheduler_core.scheduler import run_session
from scheduler_core.serde.policy import parse_policy
from scheduler_core.serde.policy.founding import FOUNDING_POLICY

_CARD, _RESOURCE = "card", "nvidia.com/gpu"
TELL_SECONDS = 30.0


@contextmanager
def progress(say: Callable[[str], None], *, every: float = TELL_SECONDS) -> Iterator[None]:
    """Say every few seconds how far the compiler is, as long as it works: a first start takes minutes."""
    over = threading.Event()

    def tell() -> None:
        for turn in count(1):
            if over.wait(every):
                return
            seconds = round(turn * every)
            own = sum(name.startswith("scheduler_core.") for name in set(heard))  # Numba compiles some of its own too
            say(f"compiling the scheduler: {own} of at most {compilable()} functions, {seconds} s")

    teller = threading.Thread(target=tell, daemon=True)
    with compiled_functions() as heard:
        teller.start()
        try:
            yield
        finally:
            over.set()
            teller.join()


def warm() -> None:
    """Run a session of the founding policy in which gangs are admitted, placed, and taken back from."""
    policy = parse_policy(FOUNDING_POLICY)
    run_session(_snapshot(), policy, now=100.0)


def _snapshot() -> Snapshot:
    """Two nodes whose cards training holds but for one each; inference asks for one, and for more than are free. An
    admitted gang that finds no place fills the quota of training, and one that could start is kept out by it."""
    nodes = tuple(
        Node(name=name, cpu_milli=64_000, memory_mib=1 << 20, pods=110, cards=(NodeCards(_CARD, _RESOURCE, 4),))
        for name in ("n", "o")
    )
    quota = {_CARD: 8000}
    queues = (
        Queue(name="inference", priority=2, reclaimable=False, service_type="inference", card_quota=quota),
        Queue(name="training", priority=1, service_type="training", card_quota=quota),
    )
    gangs = (
        _gang("a", "inference", 1, 1), _gang("b", "inference", 1, 2), _gang("c", "training", 1, 3, node="n"),
        _gang("d", "training", 1, 3, node="o"), _gang("e", "training", 1, 2, admitted=True),
        _gang("f", "training", 1, 1),
    )  # fmt: skip
    return Snapshot(
        nodes=nodes,
        queues=queues,
        pod_groups=tuple(group for group, _ in gangs),
        pods=tuple(pod for _, pod in gangs),
        latest=100.0,
    )


def _gang(
    name: str, queue: str, least: int, cards: int, node: str = "", admitted: bool = False
) -> tuple[PodGroup, Pod]:
    group = PodGroup(
        namespace="warm",
        name=name,
        queue=queue,
        min_member=least,
        phase=GangPhase.RUNNING if node else GangPhase.INQUEUE if admitted else GangPhase.PENDING,
    )
    pod = Pod(
        namespace="warm", name=f"{name}-w-0", scheduler="volcano", group=name, cpu_milli=1000, memory_mib=1024,
        card=CardRequest((_CARD,), _RESOURCE, cards * 1000), node=node,
        phase=PodPhase.RUNNING if node else PodPhase.PENDING,
    )  # fmt: skip
    return group, pod


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    with progress(_say):
        warm()
