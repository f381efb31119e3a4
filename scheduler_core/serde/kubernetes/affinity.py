"""Node affinity and tolerations of a pod."""

import msgspec

from scheduler_core.model.errors import BadInput
from scheduler_core.model.pod import NodeSelectorRequirement, NodeSelectorTerm, PreferredNodeTerm, Toleration
from scheduler_core.serde.kubernetes.decode import Int32

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


class RawRequirement(msgspec.Struct):
    """One line of ``matchExpressions`` or ``matchFields``."""

    key: str
    operator: str
    values: list[str | int | float] | None = None


class RawTerm(msgspec.Struct, rename="camel"):
    match_expressions: list[RawRequirement] | None = None
    match_fields: list[RawRequirement] | None = None


class RawRequired(msgspec.Struct, rename="camel"):
    node_selector_terms: list[RawTerm] | None = None


class RawPreferred(msgspec.Struct):
    weight: Int32
    preference: RawTerm


class RawNodeAffinity(msgspec.Struct):
    required: RawRequired | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[RawPreferred] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class RawToleration(msgspec.Struct, gc=False):
    key: str | None = None
    operator: str | None = None
    value: str | int | float | None = None
    effect: str | None = None


def required_terms(affinity: RawNodeAffinity | None) -> tuple[NodeSelectorTerm, ...] | None:
    """The disjunction of required terms; None = no demand, empty = no node can match. An empty term matches no node in
    Kubernetes, so it is left out of the disjunction."""
    if affinity is None or affinity.required is None:
        return None
    path = ".spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    return node_terms(affinity.required, path)


def node_terms(raw: RawRequired, path: str) -> tuple[NodeSelectorTerm, ...]:
    """A disjunction of terms, those that are empty left out."""
    terms = (_term(term, f"{path}[{i}]") for i, term in enumerate(raw.node_selector_terms or ()))
    return tuple(term for term in terms if term)


def preferred_terms(affinity: RawNodeAffinity | None) -> tuple[PreferredNodeTerm, ...]:
    """The weighted preferences; an empty term prefers nothing and is left out."""
    if affinity is None or not affinity.preferred:
        return ()
    path = ".spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    terms = ((p.weight, _term(p.preference, f"{path}[{i}].preference")) for i, p in enumerate(affinity.preferred))
    return tuple(PreferredNodeTerm(weight, term) for weight, term in terms if term)


def _term(term: RawTerm, path: str) -> NodeSelectorTerm:
    lines: list[NodeSelectorRequirement] = []
    for field, requirements in (("matchExpressions", term.match_expressions), ("matchFields", term.match_fields)):
        for i, line in enumerate(requirements or ()):
            if line.operator not in _OPERATORS:
                raise BadInput(
                    "bad_value", f"{line.operator!r} is not an operator of a node selector",
                    path=f"{path}.{field}[{i}].operator", value=line.operator, hint=f"one of {', '.join(_OPERATORS)}",
                )  # fmt: skip
            lines.append(NodeSelectorRequirement(line.key, line.operator, tuple(map(str, line.values or ()))))
    return tuple(lines)


def tolerations(raw: list[RawToleration] | None) -> tuple[Toleration, ...]:
    if not raw:
        return ()
    return tuple(
        Toleration(t.key or "", t.operator or "Equal", "" if t.value is None else str(t.value), t.effect or "")
        for t in raw
    )
