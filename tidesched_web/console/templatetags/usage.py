"""The usage bar as SVG, and the lines of a row of the quota tree: made here, since a large page has hundreds."""

from __future__ import annotations

from django import template
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from tidesched_web.console import amounts
from tidesched_web.console.bars import UsageBar
from tidesched_web.console.card_names import card_label
from tidesched_web.console.quota_tree_rows import CardLine, Row
from tidesched_web.console.templatetags.console import icon

register = template.Library()


@register.simple_tag
def usage_svg(bar: UsageBar) -> SafeString:
    """The bar; without a quota the words that say so."""
    if bar.empty:
        return format_html('<span class="text-secondary">{}</span>', bar.empty)
    parts = [f'<svg class="usage-bar" role="img" aria-label="{escape(bar.label)}">']
    parts.append('<rect class="track" width="100%" height="14" rx="2"/>')
    parts += [
        f'<rect class="seg seg-{escape(part.kind)}" x="{part.x:.3f}%" width="{part.width:.3f}%" y="0" height="14">'
        f"<title>{escape(part.label)}</title></rect>"
        for part in bar.segments
    ]
    for kind, place in (("tick", bar.tick), ("hardware", bar.hardware)):
        if place is not None:
            parts.append(f'<line class="{kind}" x1="{place:.3f}%" x2="{place:.3f}%" y1="-3" y2="17"/>')
    parts.append("</svg>")
    return mark_safe("".join(parts))  # noqa: S308 - every text in it is escaped above


@register.simple_tag
def tree_lines(row: Row) -> SafeString:
    """One line for each card type of a row: its name, the bar, what is in use, what is handed on."""
    warn = icon("alert-triangle") if row.over else ""
    return mark_safe("".join(_line(row, line, warn) for line in row.lines))  # noqa: S308 - `_line` escapes


def _line(row: Row, line: CardLine, warn: str) -> str:
    figures = ""
    if not line.bar.empty:
        extra = f'<span class="text-secondary">, {escape(line.bar.extra)}</span>' if line.bar.extra else ""
        figures = f"{escape(line.bar.text)}{extra}"
    handed = ""
    if line.given is not None and row.kind != "line":
        given = amounts.number(line.given)
        text = (
            _("no limit, %(given)s handed on") % {"given": given}
            if line.limit is None
            else _("%(given)s of %(limit)s handed on") % {"given": given, "limit": amounts.number(line.limit)}
        )
        handed = f"{warn if line.over else ''}{escape(text)}"
    name = escape(line.card)
    return (
        f'<div class="tree-line"><span class="label"><span class="card-type" title="{name}">'
        f"{escape(card_label(line.card))}</span></span>{usage_svg(line.bar)}"
        f'<span class="figures">{figures}</span>'
        f'<span class="handed{" over" if line.over else ""}">{handed}</span></div>'
    )
