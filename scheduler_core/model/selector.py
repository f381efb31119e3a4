"""Selectors over labels, of nodes and of pods."""

from collections.abc import Mapping

import msgspec


class NodeSelectorRequirement(msgspec.Struct, frozen=True, gc=False):
    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, value: str | None) -> bool:
        """Whether an object with this value of the label (None = without it) meets the requirement."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        number = _integer(value)
        if number is None:
            return False
        bound = _integer(self.values[0] if self.values else None)
        return bound is not None and (number > bound if self.operator == "Gt" else number < bound)


# A term is a conjunction, a tuple of terms a disjunction. matchFields use the key ``metadata.name``.
NodeSelectorTerm = tuple[NodeSelectorRequirement, ...]
# A conjunction over labels of pods, volumes or namespaces: empty matches every object.
LabelSelector = tuple[NodeSelectorRequirement, ...]


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether an object with these labels meets every requirement."""
    return all(line.holds(labels.get(line.key)) for line in selector)


def _integer(value: str | None) -> int | None:
    try:
        return None if value is None else int(value)
    except ValueError:
        return None
