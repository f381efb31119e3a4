"""The hardware of the medium demo: the demo's sixty nodes and a second hall; 1,000 nodes of twenty card types."""

from functools import cache

import msgspec

from scheduler_core.model.cards import NodeCards
from scheduler_core.model.node import Node
from scheduler_core.simulator.demo_nodes import A100, A100_MIG_1G, A100_MIG_3G, GPU, H200, H800, H800_MPS, L40S
from scheduler_core.simulator.demo_nodes import RESOURCES as DEMO_RESOURCES

BOARDS = 8
_RACK = 8
# The racks of the second hall are counted from here on.
_FIRST_RACK = 101


class _Rows(msgspec.Struct, frozen=True):
    """Nodes of one kind. ``cards``: card types with how many a node has; ``replicas``: shares of a board by MPS."""

    prefix: str
    board: str
    memory_mb: int
    nodes: int
    cores: int
    memory_gib: int
    cards: tuple[tuple[str, int], ...]
    replicas: int = 0


def _whole(name: str, memory_mb: int, nodes: int, cores: int = 128, memory_gib: int = 1024) -> _Rows:
    board = f"NVIDIA-{name}"
    return _Rows(name.lower(), board, memory_mb, nodes, cores, memory_gib, ((board, BOARDS),))


H20 = "NVIDIA-H20"
H200_MIG_1G, H200_MIG_3G = f"{H200}/mig-1g.18gb-mixed", f"{H200}/mig-3g.71gb-mixed"
H20_MPS, L40S_MPS = f"{H20}/mps-96g*1/2", f"{L40S}/mps-45g*1/2"
# Of the eight boards of a MIG node four are cut into seven small slices each, four into two large ones.
_SMALL, _LARGE = 28, 8
_HALL = (
    _whole("H200", 144_384, 140, 192, 2048),
    _whole("H800", 81_920, 100, 128, 2048),
    _whole("H100", 81_920, 100, 128, 2048),
    _whole("H20", 98_304, 80, 192, 2048),
    _whole("A100", 81_920, 90),
    _whole("A800", 81_920, 60),
    _whole("L40S", 46_068, 70, 96, 768),
    _whole("L40", 46_068, 50, 96, 768),
    _whole("L20", 49_152, 50, 96, 768),
    _whole("A40", 46_068, 30, 96, 768),
    _whole("A10", 24_576, 40, 96, 768),
    _whole("V100", 32_768, 30, 96, 768),
    _whole("T4", 16_384, 30, 96, 768),
    _Rows("h800-mps", H800, 81_920, 20, 128, 2048, ((H800_MPS, 2 * BOARDS),), 2),
    _Rows("h20-mps", H20, 98_304, 5, 192, 2048, ((H20_MPS, 2 * BOARDS),), 2),
    _Rows("l40s-mps", L40S, 46_068, 5, 96, 768, ((L40S_MPS, 2 * BOARDS),), 2),
    _Rows("a100-mig", A100, 81_920, 30, 128, 1024, ((A100_MIG_1G, _SMALL), (A100_MIG_3G, _LARGE))),
    _Rows("h200-mig", H200, 144_384, 10, 192, 2048, ((H200_MIG_1G, _SMALL), (H200_MIG_3G, _LARGE))),
)
RESOURCES = DEMO_RESOURCES | {
    H200_MIG_1G: "nvidia.com/mig-1g.18gb",
    H200_MIG_3G: "nvidia.com/mig-3g.71gb",
    H20_MPS: f"{GPU}.shared",
    L40S_MPS: f"{GPU}.shared",
}


def resource_of(card: str) -> str:
    """The extended resource that a whole card, a slice or an MPS share is asked for by."""
    return RESOURCES.get(card, GPU)


@cache
def hall_nodes() -> tuple[Node, ...]:
    nodes: list[Node] = []
    for rows in _HALL:
        for number in range(1, rows.nodes + 1):
            name = f"hall2-{rows.prefix}-{number:03d}"
            labels = {
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/zone": f"rack-{len(nodes) // _RACK + _FIRST_RACK}",
                f"{GPU}.product": rows.board,
                f"{GPU}.count": str(BOARDS),
                f"{GPU}.memory": str(rows.memory_mb),
            }
            if rows.replicas:
                labels[f"{GPU}.replicas"] = str(rows.replicas)
            nodes.append(
                Node(
                    name=name,
                    labels=labels,
                    cpu_milli=rows.cores * 1000,
                    memory_mib=rows.memory_gib * 1024,
                    cards=tuple(NodeCards(card, resource_of(card), count) for card, count in sorted(rows.cards)),
                )
            )
    return tuple(sorted(nodes, key=lambda node: node.name))


@cache
def hall_cards() -> dict[str, int]:
    """Cards, slices and shares of the second hall, by card type."""
    found: dict[str, int] = {}
    for rows in _HALL:
        for card, count in rows.cards:
            found[card] = found.get(card, 0) + rows.nodes * count
    return dict(sorted(found.items()))
