import datetime as dt
from collections.abc import Mapping
from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from tidesched_web.common.sentences import list_comma, listed
from tidesched_web.console import amounts
from tidesched_web.console.by_language import by_language
from tidesched_web.console.resource_words import resource_amount
from tidesched_web.workloads.models import Gang

register = template.Library()
register.filter("resource_amount", resource_amount)


@register.filter
def count(value: float | None) -> str | SafeString:
    if value is None:
        return format_html('<span title="{}">–</span>', _("not known"))
    return amounts.number(value)


@register.filter
def counted(value: int) -> amounts.Counted:
    return amounts.Counted(value)


@register.filter
def plain(value: float) -> str:
    return f"{value:g}"


register.filter("tide_amount", amounts.tide_amount)


@register.filter
def each_amount(named: Mapping[str, Any] | None) -> str:
    return listed(f"{name}: {value}" for name, value in (named or {}).items())


@register.filter
def milli(value: int | None) -> str | SafeString:
    return count(None if value is None else value / 1000)


@register.filter
def exact_cards(value: int) -> str:
    return amounts.cards(value)


@by_language
def _unbroken(*value: tuple[str, float]) -> SafeString:
    """A line never breaks between a number and its card; what is cut of the card may stand on the next one."""
    each = (amounts.cards_text({name: amount}).split(" ", 3) for name, amount in sorted(value))
    parts = ((" ".join(words[:3]), "".join(f" {word}" for word in words[3:])) for words in each)
    return format_html_join(list_comma(), '<span class="nowrap">{}</span>{}', parts)


@register.filter
def cards(value: Mapping[str, float] | None) -> str | SafeString:
    if value is None:
        why = _("Of a gang of another tenant: shown to that tenant only.")
        return format_html('<abbr class="text-secondary" title="{}">–</abbr>', why)
    return _unbroken(*value.items()) if value else format_html('<span class="text-secondary">{}</span>', _("no cards"))


@register.filter
def gang_cards(gang: Gang) -> str | SafeString:
    resource, requested = gang.reason_numbers.get("resource"), gang.reason_numbers.get("requested")
    if not gang.cards and gang.needs and requested and resource not in (None, "cpu", "memory"):
        return cards({resource: requested})
    return cards(gang.cards)


@register.filter
def duration(seconds: float | None) -> str | SafeString:
    return count(None) if seconds is None else amounts.duration(seconds)


@register.filter
def work(card_seconds: float | None) -> str | SafeString:
    return count(None) if card_seconds is None else amounts.work(card_seconds)


@register.filter
def card_hours(card_seconds: float | None) -> str | SafeString:
    return count(None) if card_seconds is None else amounts.card_hours(card_seconds)


@register.filter
def gib(mib: int | None) -> str | SafeString:
    return _("no limit") if mib is None else f"{amounts.number(mib / 1024)} GiB"


@register.filter
def cores(milli_cores: int | None) -> str | SafeString:
    return _("no limit") if milli_cores is None else amounts.number(milli_cores / 1000)


@register.simple_tag
def between(start: dt.datetime | None, end: dt.datetime | None) -> str | SafeString:
    return duration((end - start).total_seconds() if start and end else None)


@register.filter
def milliseconds(value: float | None) -> str | SafeString:
    return count(None) if value is None else amounts.duration(value / 1000)
