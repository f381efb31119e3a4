from collections.abc import Mapping
from functools import lru_cache

from django.utils.formats import number_format
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from tidesched_web.common.card_names import card_label
from tidesched_web.common.sentences import listed
from tidesched_web.console.by_language import by_language

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def number(value: float) -> str:
    places = 2 if abs(value) < 1 else 1
    return _written(round(float(value), places), places, get_language())


class Counted(int):
    def __str__(self) -> str:
        return number(int(self))


@lru_cache(maxsize=8192)
def _written(rounded: float, places: int, _language: str | None) -> str:
    """A large page writes thousands of numbers, most of them small counts."""
    if rounded.is_integer():
        return number_format(int(rounded), use_l10n=True, force_grouping=True)
    return number_format(rounded, decimal_pos=places, use_l10n=True, force_grouping=True)


@by_language
def cards(milli: int) -> str:
    places = len(f"{milli % 1000:03d}".rstrip("0"))
    return number_format(milli / 1000, decimal_pos=places, use_l10n=True, force_grouping=True)


def cards_text(cards: Mapping[str, float]) -> str:
    return listed(f"{number(amount)} × {card_label(name)}" for name, amount in sorted(cards.items()))


def duration(seconds: float) -> str:
    seconds = max(0, seconds)
    return _duration(round(seconds) if seconds >= 1 else seconds)


@by_language
def _duration(seconds: float) -> str:
    if seconds < 1 and seconds > 0:
        milli = seconds * 1000
        return _("%(n)s ms") % {"n": number(round(milli) if milli >= 10 else round(milli, 1))}
    whole = round(seconds)
    if whole < MINUTE:
        return _("%(n)s s") % {"n": whole}
    if whole < HOUR:
        minutes, rest = divmod(whole, MINUTE)
        if minutes < 10 and rest:
            return _("%(m)s min %(s)s s") % {"m": minutes, "s": rest}
        return _("%(m)s min") % {"m": minutes}
    if whole < DAY:
        hours, rest = divmod(whole, HOUR)
        if rest // MINUTE:
            return _("%(h)s h %(m)s min") % {"h": hours, "m": rest // MINUTE}
        return _("%(h)s h") % {"h": hours}
    days, rest = divmod(whole, DAY)
    if rest // HOUR:
        return _("%(d)s d %(h)s h") % {"d": days, "h": rest // HOUR}
    return _("%(d)s d") % {"d": days}


def ago(seconds: float) -> str:
    if seconds < 1:
        return _("just now")
    return _("%(duration)s ago") % {"duration": duration(round(seconds))}


def card_hours(card_seconds: float) -> str:
    hours = number(card_seconds / HOUR)
    return ngettext("%(n)s card-hour", "%(n)s card-hours", 1 if hours == "1" else 2) % {"n": hours}


def work(card_seconds: float) -> str:
    if card_seconds >= HOUR:
        return card_hours(card_seconds)
    minutes = number(card_seconds / MINUTE)
    return ngettext("%(n)s card-minute", "%(n)s card-minutes", 1 if minutes == "1" else 2) % {"n": minutes}


def tide_amount(amount: Mapping[str, int]) -> str:
    ((act, figure),) = amount.items()
    text = number(abs(figure))
    return f"=\u00a0{text}" if act == "set" else f"{'−' if figure < 0 else '+'}{text}"
