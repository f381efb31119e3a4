"""What agents on the nodes report beside the Node object: NUMA cells and measured use."""

import msgspec


class NumaTopology(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A Numatopology object; its name is the node's.

    Attributes:
        policy: topology manager policy of the kubelet: ``none``, ``best-effort``, ``restricted``, ``single-numa-node``.
        static_cpus: the kubelet gives whole CPUs away (CPU manager policy ``static``).
        cells: NUMA cell of each CPU, by CPU number. cores, sockets: likewise.
        free: CPU numbers that are not given to any container. reserved_milli: CPU set aside for the system."""

    name: str
    policy: str = "none"
    static_cpus: bool = False
    cells: dict[int, int] = {}
    cores: dict[int, int] = {}
    sockets: dict[int, int] = {}
    free: tuple[int, ...] = ()
    reserved_milli: int = 0


class NodeMetrics(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A NodeMetrics object: what was measured on a node. ``at``: seconds since the epoch. ``cpu_milli``,
    ``memory_mib``: use."""

    name: str
    at: float
    cpu_milli: int
    memory_mib: int


class Namespace(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    name: str
    labels: dict[str, str] = {}
