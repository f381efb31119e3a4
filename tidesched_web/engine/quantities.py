from scheduler_core.model.resources import parse_cpu_milli, parse_memory_mib, quantity


def cpu_milli(text: str | int | float) -> int:
    """``500m`` as 500, ``8`` as 8000. Raises ValueError."""
    return parse_cpu_milli(text)


def memory_mib(text: str | int | float) -> int:
    """``64Gi`` as 65536, rounded down. Raises ValueError."""
    return parse_memory_mib(text, capacity=True)


def scalar(resource: str, amount: int) -> str:
    """An amount of pods, other than cpu and memory, as a manifest says it."""
    return quantity(resource, amount)
