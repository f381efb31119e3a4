"""The hardware of the demo: sixty nodes of four card types, some cut into MIG slices, some shared by MPS."""

from scheduler_core.model.cards import NodeCards
from scheduler_core.model.node import Node

H200, H800, A100, L40S = "NVIDIA-H200", "NVIDIA-H800", "NVIDIA-A100", "NVIDIA-L40S"
H800_MPS = f"{H800}/mps-80g*1/2"
A100_MIG_1G, A100_MIG_3G = f"{A100}/mig-1g.10gb-mixed", f"{A100}/mig-3g.40gb-mixed"
GPU = "nvidia.com/gpu"
_MEMORY_MB = {H200: 144_384, H800: 81_920, A100: 81_920, L40S: 46_068}
_BOARDS = 8
_RACK = 8
RESOURCES = {
    H200: GPU,
    H800: GPU,
    A100: GPU,
    L40S: GPU,
    H800_MPS: f"{GPU}.shared",
    A100_MIG_1G: "nvidia.com/mig-1g.10gb",
    A100_MIG_3G: "nvidia.com/mig-3g.40gb",
}
# Of the eight boards of a MIG node four are cut into seven small slices each, four into two large ones.
_MIG = ((A100_MIG_1G, 28), (A100_MIG_3G, 8))
_GROUPS: tuple[tuple[str, str, int, int, int, tuple[tuple[str, int], ...]], ...] = (
    # prefix, board, nodes, cores, memory GiB, cards
    ("h200", H200, 20, 192, 2048, ((H200, _BOARDS),)),
    ("h800", H800, 14, 128, 2048, ((H800, _BOARDS),)),
    ("h800-mps", H800, 4, 128, 2048, ((H800_MPS, 2 * _BOARDS),)),
    ("a100", A100, 10, 128, 1024, ((A100, _BOARDS),)),
    ("a100-mig", A100, 4, 128, 1024, _MIG),
    ("l40s", L40S, 8, 96, 768, ((L40S, _BOARDS),)),
)


def demo_nodes() -> tuple[Node, ...]:
    nodes: list[Node] = []
    for prefix, board, count, cores, memory_gib, cards in _GROUPS:
        for number in range(1, count + 1):
            labels = {
                "kubernetes.io/hostname": f"{prefix}-{number:02d}",
                "topology.kubernetes.io/zone": f"rack-{(len(nodes) // _RACK) + 1:02d}",
                f"{GPU}.product": board,
                f"{GPU}.count": str(_BOARDS),
                f"{GPU}.memory": str(_MEMORY_MB[board]),
            }
            if cards[0][0] == H800_MPS:
                labels[f"{GPU}.replicas"] = "2"
            nodes.append(
                Node(
                    name=f"{prefix}-{number:02d}",
                    labels=labels,
                    cpu_milli=cores * 1000,
                    memory_mib=memory_gib * 1024,
                    cards=tuple(NodeCards(card, RESOURCES[card], amount) for card, amount in sorted(cards)),
                )
            )
    return tuple(sorted(nodes, key=lambda node: node.name))
