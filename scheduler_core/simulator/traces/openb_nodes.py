"""Nodes of the openb trace: ``sn,cpu_milli,memory_mib,gpu,model``. Source: Alibaba cluster-trace-gpu-v2023, published
with the FGD paper (USENIX ATC 2023)."""

from pathlib import Path

from scheduler_core.model.cards import NodeCards
from scheduler_core.model.errors import BadInput
from scheduler_core.model.node import Node
from scheduler_core.simulator.traces.table import read_rows

GPU_RESOURCE = "nvidia.com/gpu"
PRODUCT_LABEL = "nvidia.com/gpu.product"
_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")


def read_nodes(path: Path) -> tuple[Node, ...]:
    """The nodes, by name; ``model`` is the name of their card type. Raises BadInput: a broken line, a name that is
    there twice, or no node at all."""
    nodes: dict[str, Node] = {}
    for row in read_rows(path, _COLUMNS):
        name, model, count = row.text("sn"), row.text("model"), row.whole("gpu")
        if not name:
            raise row.error("sn", "is empty", hint="every node has a name")
        if name in nodes:
            raise row.error("sn", "is there twice", hint="every node has a name of its own")
        if count and not model:
            raise row.error("model", f"is empty on a node with {count} cards", hint="the name of the card type")
        nodes[name] = Node(
            name=name, labels={PRODUCT_LABEL: model} if count else {}, cpu_milli=row.whole("cpu_milli"),
            memory_mib=row.whole("memory_mib"), cards=(NodeCards(model, GPU_RESOURCE, count),) if count else (),
        )  # fmt: skip
    if not nodes:
        raise BadInput("bad_csv", "no nodes", file=str(path), hint="one line for each node below the header")
    return tuple(nodes[name] for name in sorted(nodes))
