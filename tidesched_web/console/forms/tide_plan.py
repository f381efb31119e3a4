from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _

from tidesched_web.changes.tree_document import unescaped
from tidesched_web.console.forms.meanwhile import Meanwhile
from tidesched_web.quota.tide import NO_DAY, WEEKDAYS

SET, ADD, TAKE = "set", "add", "take"
MIDNIGHT = "00:00"
_ENGLISH = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# Of the names of the weekdays in Chinese.
_LAST_CHARACTERS = ("一", "二", "三", "四", "五", "六", "日天")


@dataclass
class Line:
    number: str
    queue: str = ""
    card: str = ""
    act: str = ADD
    cards: str = ""
    error: str = ""


@dataclass
class Layer:
    number: str
    name: str = ""
    days: list[str] = field(default_factory=lambda: list(WEEKDAYS))
    start: str = "22:00"
    end: str = "07:00"
    # The moment at which a person has ended it, until its next start.
    ended: str = ""
    lines: list[Line] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    field_errors: dict[str, str] = field(default_factory=dict)

    @property
    def begun(self) -> bool:
        return bool(self.name) or any(line.queue or line.cards for line in self.lines)

    @property
    def ended_moment(self) -> dt.datetime | None:
        try:
            found = dt.datetime.fromisoformat(self.ended)
        except ValueError:
            return None
        return found if found.tzinfo else None

    def said(self, place: int) -> list[str]:
        where = self.name or _("layer %(n)s") % {"n": place}
        words = {"name": _("Layer"), "start": _("From"), "end": _("To"), "days": _("Days on which it begins")}
        fields = (f"{words[name]}: {text}" for name, text in self.field_errors.items())
        return [f"{where} · {text}" for text in (*fields, *(line.error for line in self.lines if line.error))] + [
            f"{where}: {text}" for text in self.errors
        ]


@dataclass
class PlanForm:
    name: str = ""
    position: str = "0"
    time_zone: str = "UTC"
    enabled: bool = False
    exceptions: str = ""
    version: int = 0
    # Of the draft that it edits.
    revision: int = 0
    layers: list[Layer] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    field_errors: dict[str, str] = field(default_factory=dict)
    meanwhile: Meanwhile | None = None

    @classmethod
    def empty(cls, time_zone: str) -> PlanForm:
        return cls(time_zone=time_zone, layers=[Layer("0", lines=[Line("0")])])

    @classmethod
    def of(cls, name: str, document: Mapping[str, Any], version: int) -> PlanForm:
        days = (f"{day} {counts}" for day, counts in document["exceptions"].items())
        return cls(
            name=name,
            position=str(document["position"]),
            time_zone=document["time_zone"],
            enabled=document["enabled"],
            exceptions="\n".join(days),
            version=version,
            layers=[_layer_of(str(number), layer) for number, layer in enumerate(document["layers"])],
        )

    @classmethod
    def read(cls, data: QueryDict) -> PlanForm:
        return cls(
            name=data.get("name", "").strip(),
            position=data.get("position", "0").strip() or "0",
            time_zone=data.get("time_zone", "UTC").strip(),
            enabled="enabled" in data,
            exceptions=data.get("exceptions", ""),
            version=version_sent(data),
            revision=version_sent(data, "revision"),
            layers=[_layer_read(data, number) for number in _numbers(data, "layer")],
        )

    def act(self, wanted: str) -> bool:
        act, _dash, place = wanted.partition(":")
        layer, _dash, line = place.partition(".")
        found = next((each for each in self.layers if each.number == layer), None)
        if act == "add_layer":
            self.layers.append(Layer(_free(each.number for each in self.layers), lines=[Line("0")]))
        elif act == "add_line" and found is not None:
            found.lines.append(Line(_free(each.number for each in found.lines)))
        elif act == "drop_layer" and found is not None:
            self.layers.remove(found)
        elif act == "drop_line" and found is not None:
            found.lines = [each for each in found.lines if each.number != line]
        else:
            return False
        return True

    def document(self) -> dict[str, Any]:
        """The plan's document; figures that are none stay texts, so that the services say what is wrong."""
        return {
            "enabled": self.enabled,
            "position": _number(self.position),
            "time_zone": self.time_zone,
            "exceptions": self._exceptions(),
            "layers": [self._layer(layer) for layer in self.layers],
        }

    def _exceptions(self) -> dict[str, str]:
        found = {}
        for row in self.exceptions.replace(",", "\n").replace("，", "\n").splitlines():
            day, *counts = row.replace(":", " ").replace("：", " ").split(maxsplit=1)[:2] or [""]
            if day:
                found[day] = _day_meant(counts[0].strip().lower()) if counts else NO_DAY
        return found

    def _layer(self, layer: Layer) -> dict[str, Any]:
        quota: dict[str, dict[str, Any]] = {}
        for line in layer.lines:
            if not (line.queue or line.cards):
                continue
            if line.card in quota.get(line.queue, {}):
                said = _("%(queue)s has two lines for one card type.") % {"queue": line.queue}
                layer.errors = [*dict.fromkeys([*layer.errors, said])]
            figure = _number(line.cards)
            if line.act == TAKE and isinstance(figure, int):
                figure = -figure
            quota.setdefault(line.queue, {})[line.card] = {SET if line.act == SET else ADD: figure}
        # A field for times knows no 24:00; a layer that ends at midnight ends with its day.
        end = "24:00" if layer.end in (MIDNIGHT, "0:00") else layer.end
        ended = {"ended_at": layer.ended} if layer.ended else {}
        return {"name": layer.name, "days": layer.days, "start": layer.start, "end": end, "quota": quota, **ended}

    @property
    def sound(self) -> bool:
        return not (self.errors or self.field_errors or any(layer.said(0) for layer in self.layers))

    @property
    def only(self) -> str:
        fields = [*self.field_errors]
        others = self.errors or any(layer.said(0) for layer in self.layers)
        return fields[0] if len(fields) == 1 and not others else ""

    @property
    def said(self) -> list[str]:
        words = {
            "name": _("Name of the plan"),
            "time_zone": _("Time zone"),
            "position": _("Position"),
            "exceptions": _("Exceptions"),
        }
        return [
            *self.errors,
            *(f"{words[name]}: {self.field_errors[name]}" for name in words if name in self.field_errors),
            *(text for place, layer in enumerate(self.layers, 1) for text in layer.said(place)),
        ]

    def refuse(self, errors: Sequence[Mapping[str, Any]], fallback: str) -> None:
        for error in errors:
            detail = str(error.get("detail") or fallback)
            pointer = str(error.get("field") or error.get("pointer") or "")
            steps = pointer.split("/")[1:]
            if "layers" in steps and steps[-1] != "layers":
                number = steps[steps.index("layers") + 1]
                if number.isdigit() and int(number) < len(self.layers):
                    _refuse_in(self.layers[int(number)], steps[steps.index("layers") + 2 :], detail)
                    continue
            known = [step for step in steps if step in ("name", "position", "time_zone", "exceptions")]
            if known:
                before = self.field_errors.get(known[-1])
                self.field_errors[known[-1]] = f"{before} {detail}" if before else detail
            else:
                self.errors.append(detail)
        if not errors:
            self.errors.append(fallback)


def _refuse_in(layer: Layer, steps: Sequence[str], detail: str) -> None:
    if steps and steps[0] in ("name", "start", "end", "days"):
        layer.field_errors[steps[0]] = detail
        return
    names = [unescaped(step) for step in steps[1:]]
    if steps and steps[0] == "quota" and names:
        for line in layer.lines:
            if line.queue == names[0] and (len(names) == 1 or line.card == names[1]):
                line.error = detail
                return
    layer.errors.append(detail)


def version_sent(data: QueryDict, name: str = "version") -> int:
    """The version that the page was opened with; 0, which none has, where it says none."""
    version = data.get(name, "")
    return int(version) if version.isascii() and version.isdigit() and len(version) < 18 else 0


def _numbers(data: QueryDict, name: str) -> list[str]:
    return [number for number in dict.fromkeys(data.getlist(name)) if number.isalnum() and len(number) < 20][:60]


def _layer_read(data: QueryDict, number: str) -> Layer:
    at = f"l{number}"
    return Layer(
        number,
        name=data.get(f"{at}-name", "").strip(),
        days=[day for day in WEEKDAYS if day in data.getlist(f"{at}-days")],
        start=data.get(f"{at}-start", "")[:5],
        end=data.get(f"{at}-end", "")[:5],
        ended=data.get(f"{at}-ended", "")[:40],
        lines=[
            Line(
                line,
                queue=data.get(f"{at}-x{line}-queue", ""),
                card=data.get(f"{at}-x{line}-card", ""),
                act=data.get(f"{at}-x{line}-act", ADD),
                cards=data.get(f"{at}-x{line}-cards", "").strip(),
            )
            for line in _numbers(data, f"{at}-line")
        ],
    )


def _layer_of(number: str, layer: Mapping[str, Any]) -> Layer:
    lines = [
        (queue, card, *next(iter(amount.items())))
        for queue, cards in layer["quota"].items()
        for card, amount in cards.items()
    ]
    return Layer(
        number,
        name=layer["name"],
        days=list(layer["days"]),
        start=layer["start"],
        end=MIDNIGHT if layer["end"] == "24:00" else layer["end"],
        ended=layer.get("ended_at", ""),
        lines=[
            Line(str(place), queue, card, TAKE if act == ADD and cards < 0 else act, str(abs(cards)))
            for place, (queue, card, act, cards) in enumerate(lines)
        ],
    )


def _number(text: str) -> int | str:
    plain = text.replace("−", "-")
    try:
        return int(plain)
    except ValueError:
        return text


def _free(numbers: Any) -> str:
    taken = [int(number) for number in numbers if number.isdigit()]
    return str(max(taken, default=-1) + 1)


def _day_meant(text: str) -> str:
    for number, day in enumerate(WEEKDAYS):
        last = _LAST_CHARACTERS[number]
        chinese = {f"{word}{character}" for word in ("周", "星期", "礼拜") for character in last}
        if text in {day, _ENGLISH[number]} | chinese:
            return day
    return NO_DAY if text in ("无", "不生效", "不开始") else text


def local_days(exceptions: Mapping[str, str]) -> list[tuple[dt.date, str]]:
    return sorted((dt.date.fromisoformat(day), counts) for day, counts in exceptions.items())
