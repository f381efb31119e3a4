"""The usage bar as SVG, and the lines of a row of the quota tree: made here, since a large page has hundreds."""

from functools import cache, lru_cache
from html import escape  # Django's own also takes lazy texts, at several times the price
from typing import NamedTuple

from django import template
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from tidesched_web.common.card_names import card_label
from tidesched_web.console import amounts
from tidesched_web.console.bars import UsageBar
from tidesched_web.console.quota_tree_rows import CardLine, Row
from tidesched_web.console.templatetags.looks import icon

register = template.Library()
_TRACK = '<rect class="track" width="100%" height="14" rx="2"/>'


@register.simple_tag
def usage_svg(bar: UsageBar) -> SafeString:
    if bar.empty:
        return format_html('<span class="text-secondary">{}</span>', bar.empty)
    parts = [f'<svg class="usage-bar" role="img" aria-label="{escape(bar.label)}">{_TRACK}']
    parts += [
        f'<rect class="seg seg-{kind}" x="{x:.3f}%" width="{width:.3f}%" y="0" height="14">'
        f"<title>{escape(label)}</title></rect>"
        for kind, x, width, label in bar.segments
    ]
    for kind, place in (("tick", bar.tick), ("hardware", bar.hardware)):
        if place is not None:
            parts.append(f'<line class="{kind}" x1="{place:.3f}%" x2="{place:.3f}%" y1="-3" y2="17"/>')
    parts.append("</svg>")
    return mark_safe("".join(parts))  # noqa: S308 - every text in it is escaped above


@register.simple_tag
def tree_open(row: Row) -> SafeString:
    folds = ""
    if row.kind != "queue":
        folds = f' aria-expanded="{"true" if row.opened else "false"}"'
        folds += "" if row.opened else f' data-branch="{escape(row.branch)}"'
    return mark_safe(  # noqa: S308 - keys are service types, letters and numbers
        f'<tr role="row" class="tree-row level-{row.level}" data-key="{row.key}" data-parent="{row.parent}"'
        f' aria-level="{row.level}" tabindex="-1"{folds}>'
    )


@register.simple_tag
def tree_about(row: Row) -> str:
    return _about(row.kind if row.name else "service", row.queues, get_language())


@lru_cache(maxsize=4096)
def _about(kind: str, queues: int, _language: str | None) -> str:
    counted = ngettext("%(n)s queue", "%(n)s queues", queues) % {"n": amounts.number(queues)}
    kinds = {"tenant": _("tenant"), "project": _("project"), "line": _("business line")}
    return f"{kinds[kind]} · {counted}" if kind in kinds else counted


@register.simple_tag
def more_cards(number: int) -> str:
    return _more_cards(number, get_language())


@lru_cache(maxsize=512)
def _more_cards(number: int, _language: str | None) -> str:
    return ngettext("%(n)s more card type", "%(n)s more card types", number) % {"n": number}


@register.simple_tag
def tree_lines(row: Row) -> SafeString:
    warn = icon("alert-triangle") if row.over else ""
    words = _words(get_language())
    return mark_safe("".join(_line(row, line, warn, words) for line in row.lines))  # noqa: S308 - `_line` escapes


class _Words(NamedTuple):
    assigned: str
    without_limit: str


@cache
def _words(_language: str | None) -> _Words:
    return _Words(_("%(given)s of %(limit)s assigned"), _("no limit, %(given)s assigned"))


@lru_cache(maxsize=4096)
def _name(card: str, _language: str | None) -> str:
    name = escape(card)
    return f'<span class="label"><span class="card-type" title="{name}">{escape(card_label(card))}</span></span>'


@lru_cache(maxsize=4096)
def _base(base: int, _language: str | None) -> str:
    return render_to_string("components/base_quota.html", {"base": base}).strip()


def _line(row: Row, line: CardLine, warn: str, words: _Words) -> str:
    figures, bar = "", line.bar
    if not bar.empty:
        extra = f'<span class="text-secondary"> · {escape(bar.extra)}</span>' if bar.extra else ""
        figures = f"{escape(bar.text)}{extra}"
    mark = "" if line.base is None else f" {_base(line.base, get_language())}"
    handed = ""
    if line.given is not None and row.kind != "line":
        given = amounts.number(line.given)
        text = (
            words.without_limit % {"given": given}
            if line.limit is None
            else words.assigned % {"given": given, "limit": amounts.number(line.limit)}
        )
        # The sum of the base stands beside the sum that holds now.
        handed = f"{warn if line.over else ''}{escape(text)}{mark}"
    else:
        figures += mark
    return (
        f'<div class="tree-line">{_name(line.card, get_language())}{usage_svg(bar)}'
        f'<span class="figures">{figures}</span>'
        f'<span class="handed{" over" if line.over else ""}">{handed}</span></div>'
    )
