"""Single devices of nodes that are shared by memory and cores, as arrays over all devices. Source: volcano-semantics
4.12 (deviceshare); the annotations of Volcano's device plugins."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from scheduler_core.model.node import Node

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

GPU_MEMORY, GPU_NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
VGPU_NUMBER, VGPU_MEMORY = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory"
VGPU_PERCENTAGE, VGPU_CORES = "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores"
GPU_INDEX, UNHEALTHY = "volcano.sh/gpu-index", "volcano.sh/gpu-unhealthy-ids"
VGPU_REGISTER, VGPU_ASSIGNED = "volcano.sh/node-vgpu-register", "volcano.sh/vgpu-ids-new"
ALL_CORES = 100


class Wish(msgspec.Struct, frozen=True):
    """What a pod asks of single devices. ``count``: devices. ``alone``: they must be idle and serve no other task then.
    ``memory``: on each, as the device counts it. ``percent``: of its memory instead, 0 = not asked for. ``cores``:
    percent of its cores; 100 = alone."""

    count: int
    alone: bool = False
    memory: int = 0
    percent: int = 0
    cores: int = 0


class Holding(msgspec.Struct, frozen=True):
    """One device that a pod holds: its row in the table, and how much of it."""

    row: int
    memory: int
    cores: int


def wish_of(scalars: Mapping[str, int], *, sharing: bool, numbers: bool, virtual: bool) -> Wish | None:
    """What the extended resources of a pod ask of devices, as far as each kind is switched on."""
    if sharing and scalars.get(GPU_MEMORY):
        return Wish(1, memory=scalars[GPU_MEMORY])
    if numbers and scalars.get(GPU_NUMBER):
        return Wish(scalars[GPU_NUMBER], alone=True, percent=100)
    if virtual and (scalars.get(VGPU_NUMBER) or scalars.get(VGPU_MEMORY)):
        memory, percent = scalars.get(VGPU_MEMORY, 0), scalars.get(VGPU_PERCENTAGE, 0)
        if not memory and not percent:
            percent = 100
        return Wish(
            scalars.get(VGPU_NUMBER, 0) or 1, memory=memory, percent=0 if memory else percent,
            cores=min(scalars.get(VGPU_CORES, 0), ALL_CORES),
        )  # fmt: skip
    return None


class DeviceTable:
    """Devices by row, node after node.

    Attributes:
        node, index, memory, most: int64 (rows,), node, number on the node, memory, pods that may share it.
        uuid: name of each device for its agent. rows_of: first row and number of rows of a node.
        pods, held, cores: int64 (2, rows), pods on it, memory and percent of cores in use: now, and in the end."""

    def __init__(self, nodes: Sequence[Node], *, virtual: bool) -> None:
        rows: list[tuple[int, int, int, int, str]] = []
        self.rows_of: dict[int, tuple[int, int]] = {}
        for n, node in enumerate(nodes):
            found = _registered(node) if virtual else _counted(node)
            if found:
                self.rows_of[n] = (len(rows), len(found))
                rows += [(n, i, memory, most, uuid) for i, memory, most, uuid in found]
        columns: Ints = np.array([row[:4] for row in rows], dtype=np.int64).reshape(len(rows), 4).T
        self.node: Ints = columns[0]
        self.index: Ints = columns[1]
        self.memory: Ints = columns[2]
        self.most: Ints = columns[3]
        self.uuid = [row[4] for row in rows]
        self.pods: Ints = np.zeros((2, len(rows)), dtype=np.int64)
        self.held: Ints = np.zeros((2, len(rows)), dtype=np.int64)
        self.cores: Ints = np.zeros((2, len(rows)), dtype=np.int64)

    def hold(self, holdings: Sequence[Holding], sign: int, *, leaving: bool = False) -> None:
        """Add a pod's devices, or take them away; who leaves counts for now only."""
        for one in holdings:
            for when in (0,) if leaving else (0, 1):
                self.pods[when, one.row] += sign
                self.held[when, one.row] += sign * one.memory
                self.cores[when, one.row] += sign * one.cores

    def need(self, wish: Wish) -> Ints:
        """int64 (rows,), how much of each device's memory the wish takes."""
        if wish.percent:
            part: Ints = self.memory * wish.percent // 100
            return part
        return np.full(len(self.memory), wish.memory, dtype=np.int64)

    def fits(self, wish: Wish, when: int) -> Bools:
        """bool (rows,), devices that have room; ``when``: 0 now, 1 once who leaves has left."""
        pods, cores = self.pods[when], self.cores[when]
        mask: Bools = (pods < self.most) & (self.memory - self.held[when] >= self.need(wish))
        mask &= cores + wish.cores <= ALL_CORES
        if wish.alone or wish.cores == ALL_CORES:
            mask &= pods == 0
        if not wish.cores:
            mask &= cores < ALL_CORES
        return mask

    def nodes_with_room(self, wish: Wish, when: int, count: int) -> Bools:
        """bool (N,), nodes with enough devices that have room."""
        fitting = np.bincount(self.node[self.fits(wish, when)], minlength=count)
        mask: Bools = fitting >= wish.count
        return mask

    def choose(self, wish: Wish, node: int, policy: str, when: int = 1) -> tuple[Holding, ...] | None:
        """The devices that a pod gets on a node: the fullest (``binpack``), the emptiest (``spread``), the ``last``, or
        the first."""
        first, count = self.rows_of.get(node, (0, 0))
        fits, need = self.fits(wish, when), self.need(wish)
        rows = [row for row in range(first, first + count) if fits[row]]
        if len(rows) < wish.count:
            return None
        used = self.held[when]
        if policy == "binpack":
            rows.sort(key=lambda row: (-int(used[row]), row))
        elif policy == "last":
            rows.reverse()
        elif policy == "spread":
            rows.sort(key=lambda row: (int(self.pods[when, row]), int(used[row]), row))
        return tuple(Holding(row, int(need[row]), wish.cores) for row in rows[: wish.count])


def assigned(table: DeviceTable, node: int, annotations: Mapping[str, str], wish: Wish) -> tuple[Holding, ...] | None:
    """The devices that a pod in place says it holds; None where it says nothing that can be true."""
    first, count = table.rows_of.get(node, (0, 0))
    rows = range(first, first + count)
    if VGPU_ASSIGNED in annotations:
        by_uuid = {table.uuid[row]: row for row in rows}
        found = []
        for part in annotations[VGPU_ASSIGNED].replace(";", ":").split(":"):
            fields = part.split(",")
            if len(fields) >= 4 and fields[0] in by_uuid and fields[2].isdecimal() and fields[3].isdecimal():
                found.append(Holding(by_uuid[fields[0]], int(fields[2]), int(fields[3])))
        return tuple(found) or None
    if GPU_INDEX in annotations:
        by_index = {int(table.index[row]): row for row in rows}
        numbers = [int(part) for part in annotations[GPU_INDEX].split(",") if part.strip().isdecimal()]
        need = table.need(wish)
        held = [by_index[number] for number in numbers if number in by_index]
        return tuple(Holding(row, int(need[row]), wish.cores) for row in held) or None
    return None


def _counted(node: Node) -> list[tuple[int, int, int, str]]:
    """Cards of a node whose agent counts ``gpu-number`` cards with ``gpu-memory`` in all."""
    number, memory = node.scalars.get(GPU_NUMBER, 0), node.scalars.get(GPU_MEMORY, 0)
    unhealthy = {part.strip() for part in node.annotations.get(UNHEALTHY, "").split(",")}
    each = memory // number if number else 0
    return [(i, each, 1 << 30, str(i)) for i in range(number) if str(i) not in unhealthy]


def _registered(node: Node) -> list[tuple[int, int, int, str]]:
    """Cards of a node's annotation: ``uuid,most,memory,type,healthy,…:`` for each."""
    found = []
    for i, part in enumerate(node.annotations.get(VGPU_REGISTER, "").split(":")):
        fields = part.split(",")
        if len(fields) >= 5 and fields[1].isdecimal() and fields[2].isdecimal() and fields[4].lower() in ("true", "1"):
            found.append((i, int(fields[2]), int(fields[1]), fields[0]))
    return found
