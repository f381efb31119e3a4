import datetime as dt
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tidesched_web.common import reader_zone
from tidesched_web.common.card_names import card_label
from tidesched_web.common.sentences import listed
from tidesched_web.console import amounts
from tidesched_web.quota.tide import NO_DAY, WEEKDAYS
from tidesched_web.quota.tide_rules import WEEKDAY_NAMES

DAYS: Final = {**dict(zip(WEEKDAYS, WEEKDAY_NAMES, strict=True)), NO_DAY: gettext_lazy("no layer begins")}
Layer = Mapping[str, Any]
# What differs: its name, before and after; – is where a layer, or a part of it, is not there.
Line = tuple[str, str, str]
_NONE: Final = "–"


def day_words(days: Collection[str]) -> str:
    if len(days) == len(WEEKDAYS):
        return _("every day")
    return listed(str(DAYS[day]) for day in WEEKDAYS if day in days)


def layer_words(layer: Layer, number: int) -> str:
    acts = [f"{queue} {card_label(card)} {amount}" for (queue, card), amount in _amounts(layer).items()]
    words = [_named(layer, number), day_words(layer["days"]), f"{layer['start']}–{layer['end']}"]
    if layer.get("ended_at"):
        words.append(_("ended by hand at %(time)s until its next start") % {"time": _moment(layer)})
    return f"{', '.join(words)} ({listed(acts)})"


def layer_lines(before: Sequence[Layer], after: Sequence[Layer]) -> list[Line]:
    lines: list[Line] = []
    for was, now in _pairs(before, after):
        number = (after.index(now) if now is not None else before.index(was) if was is not None else 0) + 1
        if was is None and now is not None:
            lines.append((_("new layer %(name)s") % {"name": now["name"] or number}, _NONE, layer_words(now, number)))
        elif now is None and was is not None:
            lines.append((_("layer %(name)s goes") % {"name": was["name"] or number}, layer_words(was, number), _NONE))
        elif was is not None and now is not None and was != now:
            of = _("layer %(name)s") % {"name": now["name"]} if now["name"] else _("layer %(n)s") % {"n": number}
            lines += [(f"{of}: {part}", old, new) for part, old, new in _parts(was, now)]
    moved = [layer for layer in after if layer in before] != [layer for layer in before if layer in after]
    if moved:
        lines.append((_("order of the layers"), _order(before), _order(after)))
    return lines


def _pairs(before: Sequence[Layer], after: Sequence[Layer]) -> Iterator[tuple[Layer | None, Layer | None]]:
    """Each layer beside what it was: the same one, else the one of its name, else the next that is left."""
    left = [layer for layer in before if layer not in after]
    for now in after:
        if now in before:
            continue
        was = next((one for one in left if one["name"] and one["name"] == now["name"]), None)
        if was is None:
            names = {one["name"] for one in after}
            was = next((one for one in left if _is_like(one, now) and one["name"] not in names - {""}), None)
        if was is not None:
            left.remove(was)
        yield was, now
    for was in left:
        yield was, None


def _is_like(was: Layer, now: Layer) -> bool:
    hours = [was[name] == now[name] for name in ("days", "start", "end")]
    return all(hours) or was["quota"] == now["quota"]


def _parts(was: Layer, now: Layer) -> Iterator[Line]:
    if was["name"] != now["name"]:
        yield _("name"), was["name"] or _NONE, now["name"] or _NONE
    if set(was["days"]) != set(now["days"]):
        yield _("days"), day_words(was["days"]), day_words(now["days"])
    if (was["start"], was["end"]) != (now["start"], now["end"]):
        yield _("hours"), f"{was['start']}–{was['end']}", f"{now['start']}–{now['end']}"
    old, new = _amounts(was), _amounts(now)
    for queue, card in sorted({*old, *new}):
        figures = old.get((queue, card), _NONE), new.get((queue, card), _NONE)
        if figures[0] != figures[1]:
            yield f"{queue} {card_label(card)}", *figures
    if was.get("ended_at") != now.get("ended_at"):
        yield _("ended by hand"), _moment(was), _moment(now)


def _amounts(layer: Layer) -> dict[tuple[str, str], str]:
    return {
        (queue, card): amounts.tide_amount(amount)
        for queue, cards in layer["quota"].items()
        for card, amount in cards.items()
    }


def _moment(layer: Layer) -> str:
    ended = layer.get("ended_at")
    return reader_zone.named(dt.datetime.fromisoformat(ended)) if ended else _NONE


def _named(layer: Layer, number: int) -> str:
    return layer["name"] or _("layer %(n)s") % {"n": number}


def _order(layers: Sequence[Layer]) -> str:
    return listed(_named(layer, number) for number, layer in enumerate(layers, start=1))
