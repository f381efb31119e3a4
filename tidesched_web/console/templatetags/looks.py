from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from django import template
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

from tidesched_web.changes.models import QuotaChange
from tidesched_web.clusters.models import Cluster
from tidesched_web.common.card_names import card_label
from tidesched_web.console.by_language import by_language
from tidesched_web.console.states import LEFT_WAITING, SCHEDULED, look
from tidesched_web.workloads.models import Gang

register = template.Library()
# So many letters at the end of a name are never cut: what tells the runs of one job apart stands there.
TAIL = 11


@register.simple_tag
@cache
def icon(name: str, css: str = "") -> SafeString:
    return format_html(
        '<svg class="icon {}" width="18" height="18" fill="none" stroke="currentColor" stroke-width="2"'
        ' stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><use href="{}#{}"></use></svg>',
        css,
        static("vendor/icons.svg"),
        name,
    )


@register.inclusion_tag("components/empty.html")
def empty_state(symbol: str, title: str, text: str, url: str = "", action: str = "") -> dict[str, str]:
    return {"symbol": symbol, "title": title, "text": text, "url": url, "action": action}


@register.inclusion_tag("components/place.html")
def place(here: str, *above: str) -> dict[str, Any]:
    """Where a page stands; ``above`` are words and addresses in turn."""
    return {"here": here, "trail": list(zip(above[::2], above[1::2], strict=True))}


@register.inclusion_tag("components/place.html", takes_context=True)
def breadcrumb(context: dict[str, Any], here: str, parent: str = "", view: str = "") -> dict[str, Any]:
    """Of a page of a cluster; ``view``: the parent's address, or its name in the console."""
    cluster: Cluster | None = context.get("cluster")
    above = [cluster.name, reverse("console:cluster_overview", args=[cluster.slug])] if cluster else []
    if parent:
        above += [parent, view if view.startswith("/") or cluster is None else reverse(view, args=[cluster.slug])]
    return place(here, *above)


@register.simple_tag
def link_button(
    symbol: str, label: str, view: str, *args: object, kind: str = "", gap: int = 1, **query: object
) -> SafeString:
    """A link that looks like a button, to a page by its name; ``query`` are parameters of the address."""
    css = "dropdown-item" if kind == "item" else f"btn btn-{kind}" if kind else "btn"
    url = reverse(view, args=args) + ("?" + urlencode(query, safe="/", quote_via=quote) if query else "")
    return format_html('<a class="{}" href="{}">{}{}</a>', css, url, icon(symbol, f"me-{gap}"), label)


# Of a row of a table: icon, word, and what is read out instead of it.
_ROW_ACTIONS = {
    "edit": ("edit", _("Edit"), _("Edit %(name)s")),
    "replace": ("refresh", _("Replace"), _("Replace %(name)s")),
    "delete": ("trash", _("Delete"), _("Delete %(name)s")),
    "take_out": ("x", _("Take out"), _("Take out %(name)s")),
}


@register.simple_tag
def row_action(act: str, name: str, view: str, *args: object) -> SafeString:
    symbol, label, said = _ROW_ACTIONS[act]
    return format_html(
        '<a class="btn btn-sm" href="{}" aria-label="{}">{}{}</a>',
        reverse(view, args=args),
        said % {"name": name},
        icon(symbol, "me-1"),
        label,
    )


@register.simple_tag
def columns(*heads: str, css: str = "") -> SafeString:
    """The heads of columns of a table that look alike."""
    if css == "visually-hidden":  # a cell that is hidden itself would leave the row
        cell = '<th scope="col"><span class="visually-hidden">{}</span></th>'
        return format_html_join("", cell, ((head,) for head in heads))
    opening = format_html('<th scope="col" class="{}">', css) if css else mark_safe('<th scope="col">')
    return format_html_join("", "{}{}</th>", ((opening, head) for head in heads))


@register.filter
@by_language
def cut_name(key: str) -> SafeString:
    namespace, slash, name = key.rpartition("/")
    split = max(0, len(name) - TAIL)
    of = format_html('<span class="ns">{}/</span>', namespace) if slash else ""
    return format_html(
        '<span class="cut" title="{}">{}<span class="head">{}</span><span class="tail">{}</span></span>',
        key,
        of,
        name[:split],
        name[split:],
    )


@register.simple_tag
@by_language
def state(kind: str, value: str) -> SafeString:
    seen = look(kind, value)
    return format_html('<span class="state tone-{}">{}{}</span>', seen.tone, icon(seen.icon), seen.word)


@register.simple_tag
def gang_state(gang: Gang) -> SafeString:
    shown: SafeString = state("gang", LEFT_WAITING if gang.left_waiting else gang.state)
    return shown


@register.simple_tag
def change_state(change: QuotaChange) -> SafeString:
    shown: SafeString = state("change", SCHEDULED if change.scheduled else change.state)
    return shown


@register.simple_tag
@by_language
def step_icon(value: str) -> SafeString:
    seen = look("step", value)
    return format_html('<span class="step tone-{}">{}</span>', seen.tone, icon(seen.icon))


@register.filter
@by_language
def card(name: str) -> SafeString:
    return format_html('<span class="card-type" title="{}">{}</span>', name, card_label(name))


@register.filter
def card_name(name: str) -> str:
    return card_label(name)
