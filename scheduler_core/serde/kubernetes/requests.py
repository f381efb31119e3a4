"""What a pod asks for in all, from what its containers ask for."""

from scheduler_core.model.resources import MILLI
from scheduler_core.serde.kubernetes.pod_spec import RawContainer, RawPodSpec, RawRequirements
from scheduler_core.serde.kubernetes.quantities import read_resources


def effective_request(spec: RawPodSpec, path: str) -> tuple[int, int, dict[str, int]]:
    """CPU, memory and extended resources that the pod needs at its peak.

    The containers and sidecars together, or one init container beside the sidecars started before it, whichever is
    more; or what the pod asks for as a whole; plus overhead.

    Raises:
        BadInput: ``bad_quantity`` with the place."""
    cpu = memory = 0
    scalars: dict[str, int] = {}
    containers = spec.containers or ()
    for i, container in enumerate(containers):
        c, m, s = _container(container, path, "containers", i)
        cpu, memory = cpu + c, memory + m
        for name, count in s.items():
            scalars[name] = scalars.get(name, 0) + count
    if spec.init_containers:
        cpu, memory, scalars = _with_init(spec.init_containers, path, cpu, memory, scalars)
    if spec.resources is not None:
        cpu, memory, scalars = _of_the_pod(spec.resources, f"{path}.resources", cpu, memory, scalars)
    if spec.overhead:
        c_over, m_over, s_over = read_resources(spec.overhead, f"{path}.overhead")
        cpu, memory = cpu + (c_over or 0), memory + (m_over or 0)
        for name, count in s_over.items():
            scalars[name] = scalars.get(name, 0) + count
    return cpu, memory, {name: count for name, count in scalars.items() if count} if scalars else scalars


def _of_the_pod(
    resources: RawRequirements, path: str, cpu: int, memory: int, scalars: dict[str, int]
) -> tuple[int, int, dict[str, int]]:
    """What ``spec.resources`` asks for the pod as a whole: it replaces what its containers ask for. A limit without a
    request counts where no container asks for the resource."""
    pod_cpu, pod_memory, pod_scalars = read_resources(resources.requests, f"{path}.requests")
    most_cpu, most_memory, most_scalars = read_resources(resources.limits, f"{path}.limits")
    return (
        (cpu or most_cpu or 0) if pod_cpu is None else pod_cpu,
        (memory or most_memory or 0) if pod_memory is None else pod_memory,
        {**most_scalars, **scalars, **pod_scalars},
    )


def _with_init(
    init: list[RawContainer], path: str, cpu: int, memory: int, scalars: dict[str, int]
) -> tuple[int, int, dict[str, int]]:
    side_cpu = side_memory = peak_cpu = peak_memory = 0
    side: dict[str, int] = {}
    peak: dict[str, int] = {}
    for i, container in enumerate(init):
        c, m, s = _container(container, path, "initContainers", i)
        with_c, with_m = side_cpu + c, side_memory + m
        with_s = {name: side.get(name, 0) + s.get(name, 0) for name in {**side, **s}}
        if container.restart_policy == "Always":
            side_cpu, side_memory, side = with_c, with_m, with_s
        peak_cpu, peak_memory = max(peak_cpu, with_c), max(peak_memory, with_m)
        peak = {name: max(peak.get(name, 0), with_s.get(name, 0)) for name in {**peak, **with_s}}
    names = {**scalars, **side, **peak}
    return (
        max(cpu + side_cpu, peak_cpu),
        max(memory + side_memory, peak_memory),
        {name: max(scalars.get(name, 0) + side.get(name, 0), peak.get(name, 0)) for name in names},
    )


def _container(container: RawContainer, path: str, field: str, index: int) -> tuple[int, int, dict[str, int]]:
    resources = container.resources
    if resources is None:
        return 0, 0, {}
    place = f"{path}.{field}[{index}].resources"
    cpu, memory, scalars = read_resources(resources.requests, f"{place}.requests")
    if resources.limits:
        # A limit without a request is the request, as the API server fills it in.
        limit_cpu, limit_memory, limit_scalars = read_resources(resources.limits, f"{place}.limits")
        cpu = limit_cpu if cpu is None else cpu
        memory = limit_memory if memory is None else memory
        scalars = {**limit_scalars, **scalars}
    return cpu or 0, memory or 0, scalars


def whole_cpus(spec: RawPodSpec) -> tuple[int, ...]:
    """CPUs that each container of a Guaranteed pod has to itself (0 for a fraction); empty for other pods. Guaranteed:
    every container has limits of cpu and memory, and requests nothing else than those."""
    counts = []
    for i, container in enumerate(spec.containers or ()):
        resources = container.resources or RawRequirements()
        cpu, memory, _ = read_resources(resources.limits, f".spec.containers[{i}].resources.limits")
        asked_cpu, asked_memory, _ = read_resources(resources.requests, f".spec.containers[{i}].resources.requests")
        if not cpu or not memory or asked_cpu not in (None, cpu) or asked_memory not in (None, memory):
            return ()
        counts.append(0 if cpu % MILLI else cpu // MILLI)
    return tuple(counts)
