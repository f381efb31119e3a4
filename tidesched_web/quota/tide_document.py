import datetime as dt
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from tidesched_web.common.calendar_bounds import OutOfCalendar, in_calendar
from tidesched_web.common.hints import MOST_UNKNOWN, Hints, Shown, cut
from tidesched_web.common.sentences import listed
from tidesched_web.common.time_zones import meant_zone, time_zones
from tidesched_web.quota.tide import NO_DAY, WEEKDAYS, clock, minutes

# A plan's name is a line of text: no control characters.
PLAN_NAME: Final = r"[^/\x00-\x1f\x7f-\x9f]{1,120}"
FIELDS: Final = ("enabled", "position", "time_zone", "exceptions", "layers")
LAYER_FIELDS: Final = ("name", "days", "start", "end", "quota", "ended_at")
ACTS: Final = ("set", "add")
MOST_LAYERS: Final = 50
MOST_EXCEPTIONS: Final = 400
MOST_CARDS: Final = 10_000_000
LONGEST_ZONE: Final = 64


@dataclass(frozen=True)
class PlanFault:
    """What is wrong; ``field`` is a JSON pointer into the plan's document."""

    field: str
    code: str
    detail: str


class _Refused(ValueError):
    def __init__(self, field: str, detail: str, code: str = "invalid") -> None:
        super().__init__(detail)
        self.fault = PlanFault(field, code, detail)


def _zone(value: Any, hints: Hints) -> str:
    name = value if isinstance(value, str) else ""
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # a path, a folder, no such zone
        known = "" if name not in time_zones() else name
        if not known:
            near = meant_zone(name) if hints.take() else None
            hint = " " + _("Did you mean “%(near)s”?") % {"near": near} if near else ""
            said = _("There is no time zone “%(name)s”.") % {"name": Shown(value)}
            code = "unknown_time_zone" if isinstance(value, str) and len(value) <= LONGEST_ZONE else "invalid"
            raise _Refused("/time_zone", said + hint, code) from None
    return name


def _known(fields: Mapping[str, Any], known: Collection[str], at: str, hints: Hints) -> None:
    for name in fields:
        if name not in known:
            said = _("There is no field %(name)r.") % {"name": Shown(name)}
            hint = _nearest(str(name), known, hints) or " " + _("Known: %(known)s.") % {"known": listed(known)}
            raise _Refused(f"{at}/{_escaped(cut(str(name)))}", said + hint, "unknown_field")


def _escaped(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")


def _whole(value: Any, at: str, least: int, most: int) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        said = _("%(value)r is no whole number from %(least)d to %(most)d.")
        raise _Refused(at, said % {"value": Shown(value), "least": least, "most": most})
    return value


class _Reading:
    def __init__(self, hints: Hints) -> None:
        self.faults: list[PlanFault] = []
        self.hints = hints

    def read(self, part: Callable[..., Any], *given: Any, otherwise: Any = None, **named: Any) -> Any:
        try:
            return part(*given, **named)
        except _Refused as refused:
            self.faults.append(refused.fault)
            return otherwise


def _exceptions(value: Any, reading: _Reading) -> dict[str, str]:
    at = "/exceptions"
    if not isinstance(value, Mapping) or len(value) > MOST_EXCEPTIONS:
        raise _Refused(at, _("This has to be a map from dates to the weekday that each counts as."))
    found: dict[str, str] = {}
    for day in sorted(value, key=str):
        read = reading.read(_exception, day, value[day], f"{at}/{_escaped(str(day))}")
        if read is not None:
            found[read] = value[day]
    return found


def _exception(day: Any, counts: Any, place: str) -> str:
    try:
        date = day if isinstance(day, dt.date) else dt.date.fromisoformat(str(day))
    except ValueError:
        raise _Refused(place, _("%(day)r is no date such as 2026-10-01.") % {"day": Shown(day)}) from None
    if counts not in (*WEEKDAYS, NO_DAY):
        said = _("%(day)s: a date counts as one of %(days)s, or as none.")
        raise _Refused(place, said % {"day": day, "days": listed(WEEKDAYS)})
    return date.isoformat()


def _time(value: Any, at: str, *, end: bool) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON knows only one kind of number
    # A YAML reader of another make takes 22:00 for the number 1320.
    found = value if isinstance(value, int) and not isinstance(value, bool) else minutes(value)
    if found is None or not 0 <= found <= 24 * 60 or (found == 24 * 60 and not end):
        said = (
            _("“%(value)s” is no time of day: write hours and minutes from 00:00 to 24:00, such as 07:00.")
            if end
            else _("“%(value)s” is no time of day: write hours and minutes from 00:00 to 23:59, such as 22:00.")
        )
        raise _Refused(at, said % {"value": "" if value is None else Shown(value)})
    return clock(found)


def _days(value: Any, at: str) -> list[str]:
    if not isinstance(value, list | tuple) or not value:
        raise _Refused(at, _("Choose at least one day."))
    for day in value:
        if day not in WEEKDAYS:
            said = _("%(day)r is none of %(days)s.")
            raise _Refused(at, said % {"day": Shown(day), "days": listed(WEEKDAYS)})
    return [day for day in WEEKDAYS if day in value]


def _amount(value: Any, at: str) -> dict[str, int]:
    if not isinstance(value, Mapping) or len(value) != 1 or next(iter(value)) not in ACTS:
        raise _Refused(at, _('Write {"set": 8} or {"add": 4}; a number below zero is taken away.'))
    act, figure = next(iter(value.items()))
    return {act: _whole(figure, f"{at}/{act}", 0 if act == "set" else -MOST_CARDS, MOST_CARDS)}


def _layer(value: Any, at: str, reading: _Reading) -> dict[str, Any] | None:
    before = len(reading.faults)
    if not isinstance(value, Mapping):
        raise _Refused(at, _("This has to be a map."))
    reading.read(_known, value, LAYER_FIELDS, at, reading.hints)
    name = value.get("name", "")
    if not isinstance(name, str) or len(name) > 120 or "\x00" in name:
        said = _("This has to be a text of at most %(most)d characters.") % {"most": 120}
        reading.faults.append(PlanFault(f"{at}/name", "invalid", said))
    start = reading.read(_time, value.get("start"), f"{at}/start", end=False)
    end = reading.read(_time, value.get("end"), f"{at}/end", end=True)
    if start is not None and start == end:
        said = _("A layer that ends when it begins never opens; 00:00 to 24:00 is the whole day.")
        reading.faults.append(PlanFault(f"{at}/end", "never_opens", said))
    days = reading.read(_days, value.get("days"), f"{at}/days")
    quota = reading.read(_quota, value.get("quota"), f"{at}/quota", reading)
    ended = reading.read(_ended, value.get("ended_at"), f"{at}/ended_at")
    if len(reading.faults) > before:
        return None
    found = {"name": name.strip(), "days": days, "start": start, "end": end, "quota": quota}
    return found | ({"ended_at": ended} if ended else {})


def _ended(value: Any, at: str) -> str | None:
    """The moment at which a person has ended the layer, to the second; None where it was not ended."""
    if value is None:
        return None
    try:
        moment = value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        moment = None
    if moment is None or moment.tzinfo is None:
        said = _("“%(value)s” is no moment with its time zone, such as 2026-11-20T22:00:00Z.")
        raise _Refused(at, said % {"value": Shown(value)})
    try:
        return in_calendar(moment, str(value)).replace(microsecond=0).isoformat()
    except OutOfCalendar as error:
        raise _Refused(at, str(error), "out_of_years") from None


def _quota(value: Any, at: str, reading: _Reading) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not value:
        raise _Refused(at, _("Say for at least one queue what changes."))
    found: dict[str, Any] = {}
    for queue in sorted(value, key=str):
        place = f"{at}/{_escaped(str(queue))}"
        cards = value[queue]
        if not isinstance(cards, Mapping) or not cards:
            said = _("Say for at least one card type what changes.")
            reading.faults.append(PlanFault(place, "invalid", said))
            continue
        found[str(queue)] = {
            str(card): reading.read(_amount, cards[card], f"{place}/{_escaped(str(card))}")
            for card in sorted(cards, key=str)
        }
    return found


def canonical(document: Mapping[str, Any], hints: Hints | None = None) -> tuple[dict[str, Any], list[PlanFault]]:
    """The canonical form, and all that is wrong with it (then the field keeps its default)."""
    found: dict[str, Any] = {"enabled": False, "position": 0, "time_zone": "UTC", "exceptions": {}, "layers": []}
    reading = _Reading(hints or Hints())
    unknown = sorted((name for name in document if name not in FIELDS), key=str)
    for name in unknown[:MOST_UNKNOWN]:
        reading.read(_known, {name: None}, FIELDS, "", reading.hints)
    if len(unknown) > MOST_UNKNOWN:
        said = _("%(count)d more fields are not known.") % {"count": len(unknown) - MOST_UNKNOWN}
        reading.faults.append(PlanFault("", "unknown_field", said))
    for name in sorted(found.keys() & document.keys()):
        found[name] = reading.read(_field, name, document[name], reading, otherwise=found[name])
    return found, reading.faults


def _field(name: str, value: Any, reading: _Reading) -> Any:
    if name == "enabled":
        if not isinstance(value, bool):
            raise _Refused("/enabled", _("This has to be true or false."))
        return value
    if name == "position":
        return _whole(value, "/position", 0, 1_000_000)
    if name == "time_zone":
        return _zone(value, reading.hints)
    return _exceptions(value, reading) if name == "exceptions" else _layers(value, reading)


def _layers(value: Any, reading: _Reading) -> list[dict[str, Any]]:
    if not isinstance(value, list) or len(value) > MOST_LAYERS:
        raise _Refused("/layers", _("This has to be a list of at most %(most)d layers.") % {"most": MOST_LAYERS})
    layers = (reading.read(_layer, layer, f"/layers/{number}", reading) for number, layer in enumerate(value))
    return [layer for layer in layers if layer is not None]


def unknown_names(
    document: Mapping[str, Any], queues: Collection[str], cards: Collection[str], hints: Hints | None = None
) -> Iterator[PlanFault]:
    hints = hints or Hints()
    for number, layer in enumerate(document["layers"]):
        for queue, amounts in layer["quota"].items():
            at = f"/layers/{number}/quota/{_escaped(queue)}"
            if queue not in queues:
                said = _("There is no queue %(name)r.") % {"name": Shown(queue)}
                yield PlanFault(at, "unknown_queue", said + _nearest(queue, queues, hints))
            for card in amounts:
                if card not in cards:
                    said = _("There is no card type %(name)r.") % {"name": Shown(card)}
                    yield PlanFault(f"{at}/{_escaped(card)}", "unknown_card", said + _nearest(card, cards, hints))


def _nearest(name: str, known: Collection[str] | Callable[[], Collection[str]], hints: Hints) -> str:
    near = hints.near(name, known)
    return " " + _("Did you mean %(near)r?") % {"near": near} if near else ""
