"""Label selectors (``matchLabels``, ``matchExpressions``) of pods, namespaces and volumes."""

import msgspec

from scheduler_core.model.errors import BadInput
from scheduler_core.model.selector import LabelSelector, NodeSelectorRequirement
from scheduler_core.serde.kubernetes.metadata import Scalar, texts

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class RawExpression(msgspec.Struct):
    """One line of ``matchExpressions``."""

    key: str
    operator: str
    values: list[Scalar] | None = None


class RawLabelSelector(msgspec.Struct, rename="camel"):
    match_labels: dict[str, Scalar] | None = None
    match_expressions: list[RawExpression] | None = None


def label_selector(raw: RawLabelSelector | None, path: str) -> LabelSelector | None:
    """The selector as a conjunction in the order of keys; None where there is none (it matches nothing). Raises
    BadInput: ``bad_value`` for an operator that is none, or values that do not go with it."""
    if raw is None:
        return None
    lines = [NodeSelectorRequirement(key, "In", (value,)) for key, value in texts(raw.match_labels).items()]
    for i, line in enumerate(raw.match_expressions or ()):
        place = f"{path}.matchExpressions[{i}]"
        if line.operator not in _OPERATORS:
            raise BadInput(
                "bad_value", f"{line.operator!r} is not an operator of a label selector", path=f"{place}.operator",
                value=line.operator, hint=f"one of {', '.join(_OPERATORS)}",
            )  # fmt: skip
        values = tuple(sorted({_word(value) for value in line.values or ()}))
        if bool(values) != (line.operator in ("In", "NotIn")):
            needs = "at least one value" if line.operator in ("In", "NotIn") else "no values"
            raise BadInput("bad_value", f"{line.operator} takes {needs}", path=f"{place}.values")
        lines.append(NodeSelectorRequirement(line.key, line.operator, values))
    return tuple(sorted(set(lines), key=lambda line: (line.key, line.operator, line.values)))


def _word(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
