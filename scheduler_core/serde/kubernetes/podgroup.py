"""PodGroup (``scheduling.volcano.sh``), and what annotations say of a gang wherever it comes from."""

import difflib
from collections.abc import Mapping
from typing import Any

import msgspec

from scheduler_core.model.errors import BadInput
from scheduler_core.model.pod import ServiceType
from scheduler_core.model.podgroup import GangCondition, GangPhase, PodGroup
from scheduler_core.model.resources import Amount
from scheduler_core.serde.kubernetes import annotations as keys
from scheduler_core.serde.kubernetes.decode import Int32, decode, parse_time, time_at, told
from scheduler_core.serde.kubernetes.metadata import (
    RawMeta,
    RawOwner,
    created,
    namespace_of,
    owner_of,
    parse_bool,
    texts,
    whole_number,
    wrong_bool,
    wrong_mark,
)
from scheduler_core.serde.kubernetes.quantities import RawResources, read_card_counts, read_resources
from scheduler_core.serde.kubernetes.unsupported import RawTopology, of_group
from scheduler_core.serde.pointers import child

DEFAULT_QUEUE = "default"
_PHASES = {phase.value: phase for phase in GangPhase}
_SERVICE_TYPES = tuple(kind.value for kind in ServiceType)
MEMBERS = (1, 2**31 - 1)


class RawPodGroupSpec(msgspec.Struct, rename="camel"):
    min_member: Int32 | None = None
    min_task_member: dict[str, Int32] | None = None
    min_resources: RawResources | None = None
    queue: str | None = None
    priority_class_name: str | None = None
    network_topology: RawTopology | None = None
    sub_group_policy: list[Any] | None = None


class RawCondition(msgspec.Struct, rename="camel"):
    type: str
    status: str = "True"
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class RawPodGroupStatus(msgspec.Struct):
    phase: str | None = None
    conditions: list[RawCondition] | None = None


class RawPodGroup(msgspec.Struct):
    metadata: RawMeta
    spec: RawPodGroupSpec | None = None
    status: RawPodGroupStatus | None = None


class PodGroupRecord(msgspec.Struct, frozen=True):
    """A PodGroup as far as its own object describes it (without priority and what its owner says)."""

    group: PodGroup
    owner: RawOwner | None
    latest: float


class GangNotes(msgspec.Struct, frozen=True):
    """What the annotations of a gang say; ``wrong``: the first one that cannot be read."""

    service_type: str = ""
    card_request: dict[str, int] = {}
    preemptable: bool | None = None
    submitted: float | None = None
    wrong: BadInput | None = None

    @property
    def problem(self) -> str:
        """That in words; empty for none."""
        return "" if self.wrong is None else told(self.wrong)


def flowing(notes: Mapping[str, str]) -> dict[str, str]:
    """The annotations of a pod or a workload that its PodGroup gets."""
    return {key: text for key, text in notes.items() if key.startswith(keys.FLOWING_PREFIX)}


def read_notes(notes: Mapping[str, str], labels: Mapping[str, str]) -> GangNotes:
    """Read a gang's annotations; one that cannot be read does not stop the reading."""
    wrong: list[BadInput] = []
    service_type = notes.get(keys.SERVICE_TYPE, "")
    if service_type and service_type not in _SERVICE_TYPES:
        near = difflib.get_close_matches(service_type, _SERVICE_TYPES, n=1) or _SERVICE_TYPES
        fix = f"{keys.SERVICE_TYPE}: {' or '.join(near)}"
        wrong.append(wrong_mark(keys.SERVICE_TYPE, service_type, f"not one of {', '.join(_SERVICE_TYPES)}", fix))
        service_type = ServiceType.UNKNOWN.value
    card_request: dict[str, int] = {}
    submitted = None
    try:
        if keys.CARD_REQUEST in notes:
            card_request = read_card_counts(notes[keys.CARD_REQUEST], keys.CARD_REQUEST)
        whole_number(notes, keys.GROUP_MIN_MEMBER, MEMBERS, "a whole number above zero")
        if keys.SUBMITTED_AT in notes:
            submitted = parse_time(notes[keys.SUBMITTED_AT])
    except BadInput as error:
        wrong.append(error)
    except ValueError:
        fix = "write for example 2026-08-20T12:00:00Z"
        wrong.append(wrong_mark(keys.SUBMITTED_AT, notes[keys.SUBMITTED_AT], "not an RFC 3339 time", fix))
    preemptable = parse_bool(notes.get(keys.PREEMPTABLE, labels.get(keys.PREEMPTABLE)))
    first = wrong[0] if wrong else wrong_bool(notes, labels, keys.PREEMPTABLE)
    return GangNotes(service_type, card_request, preemptable, submitted, first)


def read_pod_group(obj: object) -> PodGroupRecord:
    """Decode one PodGroup. Raises BadInput: with the path below the object."""
    raw = decode(obj, RawPodGroup)
    meta, spec, status = raw.metadata, raw.spec or RawPodGroupSpec(), raw.status or RawPodGroupStatus()
    notes, labels = texts(meta.annotations), texts(meta.labels)
    said = read_notes(notes, labels)
    if said.wrong is not None:
        raise said.wrong
    owner = owner_of(meta)
    conditions = status.conditions or []
    times = [
        time_at(condition.last_transition_time, f".status.conditions[{i}].lastTransitionTime") or 0.0
        for i, condition in enumerate(conditions)
    ]
    born = created(meta)
    cpu, memory, scalars = read_resources(spec.min_resources, ".spec.minResources")
    group = PodGroup(
        namespace=namespace_of(meta),
        name=meta.name,
        uid=meta.uid,
        created=born,
        submitted=said.submitted,
        queue=spec.queue or DEFAULT_QUEUE,
        min_member=at_least(0, 1 if spec.min_member is None else spec.min_member, ".spec.minMember") or 1,
        min_task_member={
            role: at_least(0, count, child(".spec.minTaskMember", role))
            for role, count in sorted((spec.min_task_member or {}).items())
        },
        min_resources=Amount(cpu or 0, memory or 0) if spec.min_resources else None,
        min_scalars=scalars,
        card_request=said.card_request,
        priority_class=spec.priority_class_name or "",
        phase=_phase(status.phase),
        conditions=tuple(
            GangCondition(type=c.type, status=c.status, reason=c.reason or "", message=c.message or "")
            for c in conditions
        ),
        service_type=said.service_type,
        owner_kind=owner.kind if owner else "",
        owner_name=owner.name if owner else "",
        owner_uid=owner.uid if owner else "",
        preemptable=said.preemptable,
        unsupported=of_group(spec.network_topology, spec.sub_group_policy),
        annotations=notes,
    )
    return PodGroupRecord(group, owner, max(born, said.submitted or 0.0, *times))


def at_least(lowest: int, value: int, path: str) -> int:
    """``value``, if it is not below ``lowest``. Raises BadInput: ``bad_value``."""
    if value < lowest:
        raise BadInput("bad_value", f"{value} is below {lowest}", path=path, value=value, hint=f"{lowest} or more")
    return value


def _phase(text: str | None) -> GangPhase:
    if not text:
        return GangPhase.PENDING
    phase = _PHASES.get(text)
    if phase is None:
        raise BadInput(
            "bad_value", f"{text!r} is not a PodGroup phase", path=".status.phase", value=text,
            hint=f"one of {', '.join(_PHASES)}",
        )  # fmt: skip
    return phase
