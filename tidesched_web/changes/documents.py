"""Canonical: equal intent gives equal documents: defaults filled in, what is not set absent, memory in whole MiB."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tidesched_web.changes.tree_document import Document, kind_of, parts_of, pointer
from tidesched_web.common.errors import MOST_ERRORS
from tidesched_web.common.hints import MOST_UNKNOWN, Hints, Shown, cut
from tidesched_web.common.sentences import listed
from tidesched_web.quota import names, tide_document
from tidesched_web.quota.names import Rule

MIB: Final = 2**20
# Card types of one quota. Each figure is planned, kept and shown, so one body could hold a worker for minutes.
MOST_CARD_TYPES: Final = 1_000
DEFAULT_PRIORITY: Final = {"inference": 80000, "training": 20000}
SERVICE_TYPES: Final = ("inference", "training")
OPEN, CLOSED = "Open", "Closed"
RULES: Final = "rules/cluster"
# Not a field but an act: the value of a live priority class cannot be edited, only replaced.
REPLACE: Final = "replace"
_CARD = re.compile(r"\S{1,120}")
_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?([eE][0-9]+|[munkKMGTPE]i?)?")
_INT64 = 2**62
MOST_ALIASES: Final = 20


@dataclass(frozen=True)
class Fault:
    """``field`` is a JSON pointer; ``remedy`` and ``plans`` are for who sees everything."""

    object: str
    field: str
    code: str
    detail: str
    requested: float | None = None
    limit: float | None = None
    in_use: float | None = None
    sibling: str | None = None
    remedy: str = ""
    remedy_names: tuple[str, ...] = ()
    of_all: bool = False
    plans: str = ""

    def as_json(self) -> dict[str, Any]:
        """As in a plan's ``errors``; ``pointer`` leads into a change's request."""
        return {
            "pointer": pointer("edits", self.object) + self.field,
            "object": self.object,
            "field": self.field,
            "code": self.code,
            "detail": self.detail,
            "requested": self.requested,
            "limit": self.limit,
            "in_use": self.in_use,
            "sibling": self.sibling.partition("/")[2] if self.sibling else None,
            "sibling_object": self.sibling,
        }


class Faults:
    """What is wrong with one change: the first `MOST_ERRORS` in full, and how many ``more`` there are."""

    def __init__(self) -> None:
        self.kept: list[Fault] = []
        self.more = 0

    def add(self, found: Iterable[Fault]) -> None:
        for fault in found:
            if len(self.kept) < MOST_ERRORS:
                self.kept.append(fault)
            else:
                self.more += 1


class _Refused(ValueError):
    def __init__(self, detail: str, at: str = "", code: str = "invalid") -> None:
        super().__init__(detail)
        self.detail, self.at, self.code = detail, at, code


class _NoField(_Refused):
    def __init__(self, name: str, known: Iterable[str], at: str) -> None:
        super().__init__("", at, "unknown_field")
        self.name, self.known = name, list(known)


Check = Callable[[Any], Any]


def _text(most: int) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, str) or len(value) > most or "\x00" in value:
            raise _Refused(_("This has to be a text of at most %(most)d characters.") % {"most": most})
        return value.strip()

    return check


def _whole(least: int, most: int = _INT64) -> Check:
    def check(value: Any) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON knows only one kind of number
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            top = _("at most %(most)d") % {"most": most} if most < _INT64 else _("no more than the cluster can count")
            said = _("%(value)r is no whole number of at least %(least)d and %(top)s.")
            raise _Refused(said % {"value": Shown(value), "least": least, "top": top})
        return value

    return check


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Refused(_("This has to be true or false."))
    return value


def _one_of(*allowed: str) -> Check:
    def check(value: Any) -> str:
        if value not in allowed:
            said = _("%(value)r is none of %(allowed)s.")
            raise _Refused(said % {"value": Shown(value), "allowed": listed(allowed)})
        return str(value)

    return check


def _memory(value: Any) -> int:
    return int(_whole(0)(value)) // MIB * MIB


def _map_of(check: Check, most: int) -> Check:
    def checked(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise _Refused(_("This has to be a map."))
        if len(value) > most:
            raise _Refused(_("At most %(most)d entries; here are %(count)d.") % {"most": most, "count": len(value)})
        found = {}
        for name in sorted(value):
            try:
                found[name] = check(value[name])
            except _Refused as refused:
                raise _Refused(refused.detail, pointer(name) + refused.at, refused.code) from None
        return found

    return checked


def _quantity(value: Any) -> str:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not _QUANTITY.fullmatch(text):
        raise _Refused(_("%(value)r is no quantity of Kubernetes, such as 8, 500m or 64Gi.") % {"value": Shown(value)})
    return text


def _names(value: Any) -> list[str]:
    if not isinstance(value, list) or len(value) > MOST_ALIASES:
        raise _Refused(_("This has to be a list of at most %(most)d names.") % {"most": MOST_ALIASES})
    for number, name in enumerate(value):
        if not isinstance(name, str) or "\x00" in name or not _CARD.fullmatch(name):
            said = _("%(name)r is no name for this: %(rule)s.")
            rule = _("a card name has no blanks and at most 120 characters")
            raise _Refused(said % {"name": Shown(name), "rule": rule}, pointer(str(number)), "invalid_name")
    return sorted(set(value))


_PERCENT = _whole(1, 10_000)
_CARDS = _map_of(_whole(0, 10_000_000), MOST_CARD_TYPES)


def _quota(value: Any) -> dict[str, Any]:
    """A tenant's or project's limits per service type. No cards = no limit; once there is one, an absent one is 0."""
    if not isinstance(value, Mapping):
        raise _Refused(_("This has to be a map."))
    checks: dict[str, Check] = {"card_quota": _CARDS, "cpu_milli": _whole(0), "memory_bytes": _memory}
    found: dict[str, Any] = {}
    for service_type in sorted(value):
        if service_type not in SERVICE_TYPES:
            raise _NoField(service_type, SERVICE_TYPES, pointer(cut(service_type)))
        if not isinstance(value[service_type], Mapping):
            raise _Refused(_("This has to be a map."), pointer(service_type))
        limits = {}
        for name, figure in sorted(value[service_type].items()):
            if name not in checks:
                raise _NoField(name, checks, pointer(service_type, cut(name)))
            try:
                limits[name] = checks[name](figure)
            except _Refused as refused:
                raise _Refused(refused.detail, pointer(service_type, name) + refused.at, refused.code) from None
        if limits.get("card_quota") == {}:
            del limits["card_quota"]
        if limits:
            found[service_type] = limits
    return found


def _unknown(name: str, known: Collection[str], hints: Hints) -> str:
    near = hints.near(name, known)
    if near:
        return _("There is no field %(name)r. Did you mean %(near)r?") % {"name": Shown(name), "near": near}
    return _("There is no field %(name)r. Known: %(known)s.") % {"name": Shown(name), "known": listed(known)}


@dataclass(frozen=True)
class _Field:
    check: Check
    default: Any = None  # None = absent
    required: bool = False


_FIELDS: Final[Mapping[str, Mapping[str, _Field]]] = {
    # Of the cluster as a whole: how much of its hardware quotas may promise, and whether a second person has to agree.
    "rules": {
        "approval_required": _Field(_truth, False),
        "overcommit_inference_percent": _Field(_PERCENT, 100),
        "overcommit_training_percent": _Field(_PERCENT, 100),
    },
    "card-type": {
        "resource": _Field(_text(120)),
        "kind": _Field(_one_of("whole", "mig", "mps"), "whole"),
        "parent": _Field(_text(120)),
        "aliases": _Field(_names),
    },
    "tenant": {
        "name": _Field(_text(120)),
        "description": _Field(_text(4000)),
        "approval_required": _Field(_truth, False),
        "quota": _Field(_quota, {}),
    },
    "project": {"name": _Field(_text(120)), "quota": _Field(_quota, {})},
    "business-line": {"name": _Field(_text(120))},
    "priority-class": {
        "value": _Field(_whole(-(2**31), 1_000_000_000), required=True),
        "global_default": _Field(_truth, False),
        "preemption_policy": _Field(_one_of("PreemptLowerPriority", "Never"), "PreemptLowerPriority"),
        "description": _Field(_text(4000)),
    },
    "queue": {
        "service_type": _Field(_one_of(*SERVICE_TYPES), required=True),
        "tenant": _Field(_text(63)),
        "project": _Field(_text(63)),
        "business_line": _Field(_text(63)),
        "weight": _Field(_whole(1, 65535), 1),
        "priority": _Field(_whole(0, 2**31 - 1)),
        "reclaimable": _Field(_truth),
        "cpu_milli": _Field(_whole(0)),
        "memory_bytes": _Field(_memory),
        "parent": _Field(_text(253)),
        "deserved": _Field(_map_of(_quantity, MOST_CARD_TYPES)),
        "guarantee": _Field(_map_of(_quantity, MOST_CARD_TYPES)),
        "state": _Field(_one_of(OPEN, CLOSED), OPEN),
        "card_quota": _Field(_CARDS, {}),
    },
    "grant": {},
    # Its fields are looked at by `quota.tide_document`.
    "tide-plan": {name: _Field(lambda value: value) for name in tide_document.FIELDS},
}
# Maps and texts that say nothing when they are empty.
_DROPPED_EMPTY: Final = frozenset(
    {"description", "resource", "parent", "aliases", "deserved", "guarantee", "tenant", "project", "business_line"}
)


# What the parts of a key may be, and how that is said; texts are translated where one is needed, not for each object.
_NAMES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "rules": (Rule("cluster", gettext_lazy("there is only %(key)s")),),
    "card-type": (Rule(_CARD.pattern, gettext_lazy("a card name has no blanks and at most 120 characters")),),
    "priority-class": (names.SUBDOMAIN,),
    "queue": (names.QUEUE,),
    "grant": (names.LABEL, names.QUEUE),
    "tide-plan": (
        Rule(tide_document.PLAN_NAME, gettext_lazy("at most 120 characters, no '/' and no control characters")),
    ),
}
_SLUG: Final = Rule("[-a-zA-Z0-9_]{1,63}", gettext_lazy("letters, digits, '-' and '_', at most 63"))


def fields_of(kind: str) -> tuple[str, ...]:
    return tuple(_FIELDS[kind])


def canonical(key: str, document: Mapping[str, Any], hints: Hints | None = None) -> tuple[Document, list[Fault]]:
    kind, hints = kind_of(key), hints or Hints()
    faults = list(_name_faults(key))
    if kind == "tide-plan":
        plan, found = tide_document.canonical(document, hints)
        return dict(sorted(plan.items())), [
            *faults,
            *(Fault(key, fault.field, fault.code, fault.detail) for fault in found),
        ]
    faults += _unknown_fields(key, document, hints)
    result: Document = {}
    for name in sorted(_FIELDS[kind].keys() & document.keys()):
        try:
            value = _FIELDS[kind][name].check(document[name])
        except _Refused as refused:
            said = _unknown(refused.name, refused.known, hints) if isinstance(refused, _NoField) else refused.detail
            faults.append(Fault(key, pointer(name) + refused.at, refused.code, said))
            continue
        if value not in ("", {}, [], None) or name not in _DROPPED_EMPTY:
            result[name] = value
    for name, field in _FIELDS[kind].items():
        if field.required and name not in document:
            faults.append(Fault(key, pointer(name), "required", _("%(field)s is needed.") % {"field": name}))
        if name not in document and field.default is not None:
            result[name] = field.default.copy() if isinstance(field.default, (dict, list)) else field.default
    _fill_in(key, kind, result)
    return dict(sorted(result.items())), faults


def _unknown_fields(key: str, document: Mapping[str, Any], hints: Hints) -> Iterator[Fault]:
    known = _FIELDS[kind_of(key)]
    unknown = sorted(document.keys() - known.keys())
    for name in unknown[:MOST_UNKNOWN]:
        yield Fault(key, pointer(cut(name)), "unknown_field", _unknown(name, known, hints))
    more = len(unknown) - MOST_UNKNOWN
    if more > 0:
        yield Fault(key, "", "unknown_field", _("%(count)d more fields are not known.") % {"count": more})


def _fill_in(key: str, kind: str, document: Document) -> None:
    if kind in ("tenant", "project", "business-line") and not document.get("name"):
        document["name"] = parts_of(key)[-1]
    if kind == "queue" and "service_type" in document:
        service_type = document["service_type"]
        document.setdefault("priority", DEFAULT_PRIORITY[service_type])
        document.setdefault("reclaimable", service_type == "training")


def _name_faults(key: str) -> Iterator[Fault]:
    kind, parts = kind_of(key), parts_of(key)
    for part, rule in zip(parts, _NAMES.get(kind) or (_SLUG,) * len(parts), strict=True):
        if not re.fullmatch(rule.form, part):
            words = str(rule.words) % {"key": RULES}
            said = _("%(name)r is no name for this: %(rule)s.") % {"name": part, "rule": words}
            yield Fault(key, "", "invalid_name", said)
