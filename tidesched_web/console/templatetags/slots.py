"""The cells of a node's cards. A page of nodes has hundreds of them, so they are written here and not by a template."""

from collections.abc import Iterable
from html import escape  # Django's own also takes lazy texts, at several times the price

from django import template
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from tidesched_web.console.nodes import Slot, pieces

register = template.Library()
_GROUND = '<rect class="slot-ground" x="0.5" y="0.5" width="17" height="17" rx="3"/>'


@register.simple_tag
def slots(slug: str, cells: Iterable[Slot]) -> SafeString:
    gangs = reverse("console:gangs", args=[slug])
    drawn = (
        _cell(f"{gangs}{cell.gang_id}/" if cell.gang_id else "", cell.title(), cell.parts, leaving=cell.leaving)
        for cell in cells
    )
    return mark_safe("".join(drawn))  # noqa: S308 - names are escaped below


def _cell(link: str, title: str, parts: list[tuple[str, int]], *, leaving: bool) -> str:
    title = escape(title)
    drawn = "".join(
        f'<rect class="seg-{escape(kind)}" x="0" width="18" y="{top:.1f}%" height="{height:.1f}%"/>'
        for kind, top, height in pieces(parts)
    )
    if any(kind == "training" for kind, _size in parts):  # so that colour is not the only sign
        drawn += '<path class="slot-mark" d="M5 9h8"/>'
    if leaving:
        drawn += '<path class="slot-leaving" d="M3 3l12 12M15 3l-12 12"/>'
    inside = f"<title>{title}</title>{_GROUND}{drawn}</svg>"
    if link:
        opening = f'<a tabindex="-1" href="{link}" aria-label="{title}">'
        return f'{opening}<svg viewBox="0 0 18 18" aria-hidden="true">{inside}</a>'
    return f'<svg viewBox="0 0 18 18" role="img" aria-label="{title}">{inside}'
