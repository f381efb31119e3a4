"""The cells of a node's cards. A page of nodes has hundreds of them, so they are written here and not by a template."""

from __future__ import annotations

from collections.abc import Iterable

from django import template
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from tidesched_web.console.nodes import Slot

register = template.Library()
_GROUND = '<rect class="slot-ground" x="0.5" y="0.5" width="17" height="17" rx="3"/>'


@register.simple_tag
def slots(slug: str, cells: Iterable[Slot]) -> SafeString:
    """One cell for each card; a cell whose gang the reader sees leads to it."""
    gangs = reverse("console:gangs", args=[slug])
    return mark_safe("".join(_cell(gangs, cell) for cell in cells))  # noqa: S308 - names are escaped below


def _cell(gangs: str, cell: Slot) -> str:
    title = escape(cell.title())
    drawn = "".join(
        f'<rect class="seg-{escape(kind)}" x="0" width="18" y="{top:.1f}%" height="{height:.1f}%"/>'
        for kind, top, height in cell.pieces()
    )
    if cell.is_training:
        drawn += '<path class="slot-mark" d="M5 9h8"/>'
    if cell.leaving:
        drawn += '<path class="slot-leaving" d="M3 3l12 12M15 3l-12 12"/>'
    inside = f"<title>{title}</title>{_GROUND}{drawn}</svg>"
    if cell.gang_id:
        link = f'<a tabindex="-1" href="{gangs}{cell.gang_id}/" aria-label="{title}">'
        return f'{link}<svg viewBox="0 0 18 18" aria-hidden="true">{inside}</a>'
    return f'<svg viewBox="0 0 18 18" role="img" aria-label="{title}">{inside}'
