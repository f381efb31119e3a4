"""Resource lists (``requests``, ``allocatable``, ``capability``) in canonical units."""

import json
import math
from collections.abc import Callable, Mapping
from functools import lru_cache

from scheduler_core.model.errors import BadInput
from scheduler_core.model.resources import (
    MAX_CARDS,
    MILLI,
    TooLarge,
    in_fractions,
    in_mib,
    parse_count,
    parse_cpu_milli,
    parse_extended,
    parse_memory_mib,
    parse_thousandths,
)
from scheduler_core.serde.kubernetes.annotations import CARD_MILLI
from scheduler_core.serde.pointers import child

# A message quotes so much of an annotation; one may be 256 KiB long.
_SHOWN = 80
ATTACHABLE = "attachable-volumes-"
# Parts of the names of resources that count cards.
GPU_MARKS = ("/gpu", "/mig-", "/gpu.shared", "/npu", "/dcu", "/mlu", "/xpu")

RawQuantity = str | int | float
RawResources = dict[str, RawQuantity | None]

# The same few spellings occur in every pod of a workload.
_cpu = lru_cache(maxsize=1 << 14)(parse_cpu_milli)
_extended = lru_cache(maxsize=1 << 14)(parse_extended)
_count = lru_cache(maxsize=1 << 14)(parse_count)
_thousandths = lru_cache(maxsize=1 << 14)(parse_thousandths)


@lru_cache(maxsize=1 << 14)
def _request_mib(value: RawQuantity) -> int:
    return parse_memory_mib(value)


@lru_cache(maxsize=1 << 14)
def _up_to_thousandths(value: RawQuantity) -> int:
    return parse_thousandths(value, up=True)


@lru_cache(maxsize=1 << 14)
def _capacity_count(value: RawQuantity) -> int:
    return parse_count(value, capacity=True)


@lru_cache(maxsize=1 << 14)
def _capacity_mib(value: RawQuantity) -> int:
    return parse_memory_mib(value, capacity=True)


def _read(
    parse: Callable[[RawQuantity], int], value: RawQuantity, path: str, name: str, excess: list[str] | None = None
) -> int:
    try:
        return parse(value)
    except TooLarge as error:
        if excess is None:
            hint = "a smaller amount; nothing so large exists"
            raise BadInput("bad_quantity", str(error), path=child(path, name), value=value, hint=hint) from None
        excess.append(f"{child(path, name).lstrip('.')}: {error}")
        return error.most
    except ValueError as error:
        raise BadInput("bad_quantity", str(error), path=child(path, name), value=value, hint=_hint(name)) from None


def _hint(name: str) -> str:
    if name == "cpu":
        return "write for example 2 or 500m"
    if name == "memory" or name.startswith("hugepages-"):
        return "write for example 512Mi or 16Gi"
    if any(mark in name for mark in GPU_MARKS):
        return f'a whole number; for a share of one card the annotation {CARD_MILLI}: "500" on the pod (thousandths)'
    return "a whole number"


def is_scalar(name: str) -> bool:
    """True for what nodes have beside cpu, memory and pods: extended resources, storage and huge pages (in MiB). Not
    for names that only quotas use (``requests.nvidia.com/gpu``, ``count/pods``) and for volumes that can be attached,
    which are read apart."""
    if "/" in name:
        return not name.startswith(("requests.", "limits.", "count/"))
    return in_mib(name)


def read_resources(
    values: Mapping[str, RawQuantity | None] | None, path: str, *, capacity: bool = False, thousandths: bool = False,
    excess: list[str] | None = None,
) -> tuple[int | None, int | None, dict[str, int]]:  # fmt: skip
    """CPU (milli-cores), memory (MiB) and scalars of a resource list, in whole units or in thousandths of those
    :func:`in_fractions`; None where it says nothing. ``thousandths``: of all scalars. ``excess``: gets what is beyond
    the largest amount, which then replaces it; None = that is bad input too. Raises BadInput: ``bad_quantity`` with the
    place."""
    cpu = memory = None
    scalars: dict[str, int] = {}
    if not values:
        return cpu, memory, scalars
    mib = _capacity_mib if capacity else _request_mib
    for name, value in values.items():
        if value is None:
            continue
        if name == "cpu":
            cpu = _read(_cpu, value, path, name, excess)
        elif name == "memory":
            memory = _read(mib, value, path, name, excess)
        elif is_scalar(name):
            if in_mib(name):
                scalars[name] = _read(mib, value, path, name, excess) * (MILLI if thousandths else 1)
            else:
                if thousandths or in_fractions(name):
                    parse = _thousandths if thousandths or capacity else _up_to_thousandths
                else:
                    parse = _capacity_count if capacity else _count if "kubernetes.io/" in name else _extended
                scalars[name] = _read(parse, value, path, name, excess)
    return cpu, memory, scalars


def read_pod_limit(values: Mapping[str, RawQuantity | None] | None, path: str) -> int | None:
    value = values.get("pods") if values else None
    return None if value is None else _read(_capacity_count, value, path, "pods")


def read_volume_limits(values: Mapping[str, RawQuantity | None] | None, path: str) -> dict[str, int]:
    """The entries ``attachable-volumes-<driver>`` of a node's allocatable, by driver."""
    found = {}
    for name, value in (values or {}).items():
        if name.startswith(ATTACHABLE) and value is not None:
            found[name.removeprefix(ATTACHABLE)] = _read(_capacity_count, value, path, name)
    return found


def read_card_counts(text: str, key: str) -> dict[str, int]:
    """``{"NVIDIA-H200": 8, "A|B": 0.5}`` to milli-cards by card name. ``key``: of the annotation. Raises BadInput:
    ``bad_quantity``."""
    try:
        return _card_counts(text)
    except ValueError as error:
        path, hint = child(".metadata.annotations", key), f"{key}: '{{\"NVIDIA-H200\": 8}}'"
        raise BadInput("bad_quantity", str(error), path=path, value=_head(text), hint=hint) from None


def _card_counts(text: str) -> dict[str, int]:
    try:
        document = json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise ValueError(f"{_head(text)!r} is not JSON ({error.msg}, column {error.colno})") from None
    except RecursionError:
        raise ValueError(f"{_head(text)!r} is nested too deeply") from None
    if not isinstance(document, dict):
        raise ValueError(f"{_head(text)!r} is not a JSON object")
    cards: dict[str, int] = {}
    for name, count in document.items():
        if not name.isprintable():
            raise ValueError(f"{name!r} is no name of a card")
        if isinstance(count, bool) or not isinstance(count, int | float) or not math.isfinite(count):
            raise ValueError(f"{name}: {count!r} is not a number of cards")
        if count < 0:
            raise ValueError(f"{name}: {count!r} is negative; a number of cards is zero or more")
        if count > MAX_CARDS:
            raise ValueError(f"{name}: {count!r} is larger than the largest number that is counted ({MAX_CARDS})")
        milli = round(count * MILLI)
        if abs(milli - count * MILLI) > 1e-6:
            raise ValueError(f"{name}: {count!r} has more than three decimals; a card is shared in thousandths")
        key = "|".join(card_names(name))
        if key in cards:
            raise ValueError(f"{key} is there twice; which of the two numbers counts?")
        cards[key] = milli
    return cards


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object whose names are all different; a parser of its own would keep the last of two."""
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{_head(name)} is there twice; which of the two numbers counts?")
        found[name] = value
    return found


def _head(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def card_names(text: str) -> tuple[str, ...]:
    """``A|B`` to its names, each once, in the order in which they were written."""
    return tuple(dict.fromkeys(part.strip() for part in text.split("|") if part.strip()))
