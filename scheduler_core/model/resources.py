"""Amounts of resources in canonical integer units. Units: CPU in milli-cores, memory in MiB, cards in milli-cards (1000
is one whole card), so that adding and taking away again restores the very same number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation

import msgspec

MILLI = 1000
MIB = 1024 * 1024
# Bounds that keep every product of an amount and a weight (<= 65535), and every sum over the nodes, inside int64.
MAX_CPU_MILLI = 10**12
MAX_MEMORY_MIB = 2**40
MAX_CARDS = 10**9
# In whole units; in thousandths it is inside int64 too, but not its product with a weight or its sum over 8,192 nodes.
MAX_COUNT = 2**50
# Beyond any of them; an exponent such as 1e999999 is not worth its million digits.
_MAX_DIGITS = 40

_SUFFIXES = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}


def in_mib(resource: str) -> bool:
    """True for resources that are amounts of bytes, kept in MiB: memory, storage of a node, huge pages of each size."""
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")


def in_fractions(resource: str) -> bool:
    """True for what a pod may ask fractions of, kept in thousandths: ``kubernetes.io/batch-cpu`` and other native
    resources that are no bytes. An API server takes extended resources in whole units only."""
    return "kubernetes.io/" in resource and not resource.endswith(("memory", "storage"))


def node_unit(resource: str) -> float:
    """What one unit of a row of the node table is in results: milli-cores, bytes, whole units or thousandths."""
    return MIB if in_mib(resource) else 1 / MILLI if in_fractions(resource) else 1


def thousandths(resource: str) -> int:
    """How many units of quotas, thousandths, are in one unit of a row of the node table, other than cpu and memory."""
    return 1 if in_fractions(resource) else MILLI


def quantity(resource: str, amount: int) -> str:
    """An amount of the node table, other than cpu and memory, as a manifest says it."""
    return f"{amount}{'Mi' if in_mib(resource) else 'm' if in_fractions(resource) else ''}"


def quota_unit(resource: str) -> float:
    """What one unit of an amount against a quota is in results: milli-cores, bytes, thousandths of all others."""
    return node_unit(resource) / (1 if resource in ("cpu", "memory") else thousandths(resource))


class TooLarge(ValueError):
    """An amount beyond what the tables count; ``most`` is the largest one, in canonical units."""

    def __init__(self, text: str, most: int) -> None:
        super().__init__(text)
        self.most = most


def parse_quantity(value: str | int | float) -> Decimal:
    """Read a Kubernetes quantity (``"100m"``, ``"2Gi"``, ``4``, ``"1e3"``) into its exact value. Raises ValueError: not
    a quantity, or negative; the text names the value and an example."""
    text = str(value).strip()
    number, suffix = text, ""
    for candidate in ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"):
        if text.endswith(candidate):
            number, suffix = text[:-2], candidate
            break
    else:
        if text and text[-1] in "numkMGTPE":
            number, suffix = text[:-1], text[-1]
    try:
        # Python also reads digits of other scripts and 1_000, which no API server takes.
        amount = Decimal(number if number.isascii() and "_" not in number else "")
    except InvalidOperation:
        raise ValueError(f"{text[:80]!r} is not a quantity; write for example '500m', '2' or '16Gi'") from None
    if not amount.is_finite():
        raise ValueError(f"{text[:80]!r} is not a finite quantity; write for example '500m', '2' or '16Gi'")
    if amount and amount.adjusted() > _MAX_DIGITS:
        amount = Decimal(1).scaleb(_MAX_DIGITS).copy_sign(amount)
    if amount and amount.adjusted() < -_MAX_DIGITS:
        amount = Decimal(1).scaleb(-_MAX_DIGITS).copy_sign(amount)
    amount *= _SUFFIXES[suffix]
    if amount < 0:
        raise ValueError(f"{value!r} is negative; a quantity is zero or more")
    return amount


def _bounded(amount: int, limit: int, value: object, shown: str) -> int:
    if amount > limit:
        raise TooLarge(f"{str(value)[:80]!r} is more than the largest amount that is counted, {shown}", limit)
    return amount


def parse_cpu_milli(value: str | int | float) -> int:
    """CPU quantity to milli-cores, rounded up."""
    return _bounded(math.ceil(parse_quantity(value) * MILLI), MAX_CPU_MILLI, value, "1000000000 cores")


def parse_memory_mib(value: str | int | float, *, capacity: bool = False) -> int:
    """Memory quantity (bytes) to MiB: requests are rounded up, capacity (``capacity=True``) down."""
    mib = parse_quantity(value) / MIB
    return _bounded(math.floor(mib) if capacity else math.ceil(mib), MAX_MEMORY_MIB, value, "1Ei")


def parse_count(value: str | int | float, *, capacity: bool = False) -> int:
    """A scalar (cards, pods) to whole units: requests are rounded up, capacity (``capacity=True``) down."""
    amount = parse_quantity(value)
    return _bounded(math.floor(amount) if capacity else math.ceil(amount), MAX_COUNT, value, str(MAX_COUNT))


def parse_extended(value: str | int | float) -> int:
    """What a pod asks of an extended resource, which an API server takes in whole units only."""
    amount = parse_quantity(value)
    if amount != amount.to_integral_value():
        raise ValueError(f"{value!r} is not a whole number; extended resources are counted in whole units")
    return parse_count(value)


def parse_thousandths(value: str | int | float, *, up: bool = False) -> int:
    """A scalar in thousandths: what a queue or a node says is rounded down, what a pod asks for is rounded ``up``."""
    amount = parse_quantity(value) * MILLI
    return _bounded(math.ceil(amount) if up else math.floor(amount), MAX_COUNT * MILLI, value, str(MAX_COUNT))


def cards_to_json(milli: int) -> int | float:
    """Milli-cards to the count that is shown: 2000 -> 2, 460 -> 0.46."""
    return milli // MILLI if milli % MILLI == 0 else milli / MILLI


class Amount(msgspec.Struct, frozen=True, gc=False):
    """CPU, memory and cards by card type. ``cpu_milli``: milli-cores. ``memory_mib``: MiB. ``cards``: milli-cards by
    card name; a name may be a choice ``A|B``. Zeros are left out."""

    cpu_milli: int = 0
    memory_mib: int = 0
    cards: dict[str, int] = {}

    def __add__(self, other: Amount) -> Amount:
        return self._combine(other, 1)

    def __sub__(self, other: Amount) -> Amount:
        """Difference; may hold negative parts (see :meth:`clamped`)."""
        return self._combine(other, -1)

    def __bool__(self) -> bool:
        return bool(self.cpu_milli or self.memory_mib or self.cards)

    def _combine(self, other: Amount, sign: int) -> Amount:
        cards = dict(self.cards)
        for name, milli in other.cards.items():
            total = cards.get(name, 0) + sign * milli
            if total:
                cards[name] = total
            else:
                cards.pop(name, None)
        return Amount(self.cpu_milli + sign * other.cpu_milli, self.memory_mib + sign * other.memory_mib, cards)

    def times(self, factor: int) -> Amount:
        """This amount for ``factor`` equal tasks."""
        return Amount(
            self.cpu_milli * factor, self.memory_mib * factor, {n: m * factor for n, m in self.cards.items() if factor}
        )

    def items(self) -> Iterator[tuple[str, int]]:
        """``("cpu", milli)``, ``("memory", MiB)``, then each card by name."""
        yield "cpu", self.cpu_milli
        yield "memory", self.memory_mib
        yield from sorted(self.cards.items())

    def to_json(self) -> dict[str, object]:
        """The form of the result document: bytes and card counts."""
        return {
            "cpu_milli": self.cpu_milli,
            "memory_bytes": self.memory_mib * MIB,
            "cards": {name: cards_to_json(milli) for name, milli in sorted(self.cards.items()) if milli},
        }

    @staticmethod
    def of_cards(cards: Mapping[str, int]) -> Amount:
        """Only cards, given in milli-cards."""
        return Amount(0, 0, {n: m for n, m in cards.items() if m})
