"""Selectors, taints and tolerations, one node at a time."""

from __future__ import annotations


def tolerates(toleration, key, value, effect):
    """One toleration against one taint."""
    if toleration.effect and toleration.effect != effect:
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", key)
    return toleration.key == key and toleration.value == value


def matches(term, node):
    """All lines of a term hold; a term without lines matches nothing."""
    return bool(term) and all(
        holds(line, node.name if line.key == "metadata.name" else node.labels.get(line.key)) for line in term
    )


def holds(line, value):
    """One line of a selector, for an object with this value of the label (None = without it)."""
    match line.operator:
        case "In":
            return value in line.values
        case "NotIn":
            return value not in line.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    try:
        number = int(value)
    except (TypeError, ValueError):
        return False
    return number > int(line.values[0]) if line.operator == "Gt" else number < int(line.values[0])
