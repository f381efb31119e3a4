"""Affinity and anti-affinity between pods, and topology spread constraints."""

from collections.abc import Mapping

import msgspec

from scheduler_core.model.errors import BadInput
from scheduler_core.model.relations import PodSubject, PodTerm, PreferredPodTerm, Relations, SpreadConstraint
from scheduler_core.model.selector import LabelSelector, NodeSelectorRequirement
from scheduler_core.serde.kubernetes.decode import Int32
from scheduler_core.serde.kubernetes.selectors import RawLabelSelector, label_selector

_POLICIES = ("Honor", "Ignore")
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
MAX_WEIGHT = 100


class RawPodTerm(msgspec.Struct, rename="camel"):
    topology_key: str
    label_selector: RawLabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: RawLabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class RawWeightedTerm(msgspec.Struct, rename="camel"):
    weight: Int32
    pod_affinity_term: RawPodTerm


class RawPodAffinity(msgspec.Struct):
    required: list[RawPodTerm] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[RawWeightedTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class RawSpread(msgspec.Struct, rename="camel"):
    max_skew: Int32
    topology_key: str
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: RawLabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


def relations(
    affinity: RawPodAffinity | None, anti_affinity: RawPodAffinity | None, spread: list[RawSpread] | None,
    namespace: str, labels: Mapping[str, str],
) -> Relations | None:  # fmt: skip
    """What a pod with these labels says of others; None = nothing. Raises BadInput: ``bad_value`` with the path below
    the pod."""
    found = Relations(
        affinity=_required(affinity, "podAffinity", namespace, labels),
        anti_affinity=_required(anti_affinity, "podAntiAffinity", namespace, labels),
        preferred=(
            *_preferred(affinity, "podAffinity", 1, namespace, labels),
            *_preferred(anti_affinity, "podAntiAffinity", -1, namespace, labels),
        ),
        spread=tuple(
            _constraint(entry, f".spec.topologySpreadConstraints[{i}]", namespace, labels)
            for i, entry in enumerate(spread or ())
        ),
    )
    return found if found.affinity or found.anti_affinity or found.preferred or found.spread else None


def _required(raw: RawPodAffinity | None, field: str, namespace: str, labels: Mapping[str, str]) -> tuple[PodTerm, ...]:
    path = f".spec.affinity.{field}.requiredDuringSchedulingIgnoredDuringExecution"
    terms = (raw.required if raw else None) or ()
    return tuple(_term(term, f"{path}[{i}]", namespace, labels) for i, term in enumerate(terms))


def _preferred(
    raw: RawPodAffinity | None, field: str, sign: int, namespace: str, labels: Mapping[str, str]
) -> tuple[PreferredPodTerm, ...]:
    path = f".spec.affinity.{field}.preferredDuringSchedulingIgnoredDuringExecution"
    found = []
    for i, wish in enumerate((raw.preferred if raw else None) or ()):
        if not 1 <= wish.weight <= MAX_WEIGHT:
            raise BadInput(
                "bad_value", f"{wish.weight} is not a weight of a preferred term", path=f"{path}[{i}].weight",
                value=wish.weight, hint=f"1 to {MAX_WEIGHT}",
            )  # fmt: skip
        term = _term(wish.pod_affinity_term, f"{path}[{i}].podAffinityTerm", namespace, labels)
        found.append(PreferredPodTerm(sign * wish.weight, term))
    return tuple(found)


def _term(raw: RawPodTerm, path: str, namespace: str, labels: Mapping[str, str]) -> PodTerm:
    _needs_key(raw.topology_key, path)
    selector = label_selector(raw.label_selector, f"{path}.labelSelector")
    selector = _like_own(selector, raw.match_label_keys, "In", labels)
    selector = _like_own(selector, raw.mismatch_label_keys, "NotIn", labels)
    further = label_selector(raw.namespace_selector, f"{path}.namespaceSelector")
    named = tuple(sorted(set(raw.namespaces or ())))
    subject = PodSubject(named if named or further is not None else (namespace,), further, selector)
    return PodTerm(subject, raw.topology_key)


def _constraint(raw: RawSpread, path: str, namespace: str, labels: Mapping[str, str]) -> SpreadConstraint:
    _needs_key(raw.topology_key, path)
    for field, number in (("maxSkew", raw.max_skew), ("minDomains", raw.min_domains)):
        if number is not None and number < 1:
            raise BadInput("bad_value", f"{number} is below 1", path=f"{path}.{field}", value=number, hint="1 or more")
    for field, word, known in (
        ("whenUnsatisfiable", raw.when_unsatisfiable, _UNSATISFIABLE),
        ("nodeAffinityPolicy", raw.node_affinity_policy or "Honor", _POLICIES),
        ("nodeTaintsPolicy", raw.node_taints_policy or "Ignore", _POLICIES),
    ):
        if word not in known:
            raise BadInput(
                "bad_value", f"{word!r} is not a value of {field}", path=f"{path}.{field}", value=word,
                hint=f"one of {', '.join(known)}",
            )  # fmt: skip
    selector = label_selector(raw.label_selector, f"{path}.labelSelector")
    return SpreadConstraint(
        subject=PodSubject((namespace,), None, _like_own(selector, raw.match_label_keys, "In", labels)),
        topology_key=raw.topology_key,
        max_skew=raw.max_skew,
        hard=raw.when_unsatisfiable == "DoNotSchedule",
        min_domains=raw.min_domains or 1,
        honor_affinity=raw.node_affinity_policy != "Ignore",
        honor_taints=raw.node_taints_policy == "Honor",
    )


def _like_own(
    selector: LabelSelector | None, names: list[str] | None, operator: str, labels: Mapping[str, str]
) -> LabelSelector | None:
    """``matchLabelKeys``: the pod's own values join the selector; a label that it does not have is passed over."""
    if selector is None or not names:
        return selector
    own = {NodeSelectorRequirement(name, operator, (labels[name],)) for name in names if name in labels}
    return tuple(sorted({*selector, *own}, key=lambda line: (line.key, line.operator, line.values)))


def _needs_key(key: str, path: str) -> None:
    if not key:
        raise BadInput("bad_value", "the topology key is empty", path=f"{path}.topologyKey", value=key)
