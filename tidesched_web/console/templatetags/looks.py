from functools import cache

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from tidesched_web.changes.models import QuotaChange
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
