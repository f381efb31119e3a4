from typing import Any

from django import template
from django.urls import reverse
from django.utils.safestring import SafeString

from tidesched_web.accounts import demo_people as people_file
from tidesched_web.clusters.models import Cluster
from tidesched_web.clusters.selectors import only_simulated
from tidesched_web.common.sentences import closed_up, gap
from tidesched_web.console.navigation import COOKIE, FOLDED_COOKIE, SETTINGS, groups
from tidesched_web.console.page_help import ABOUT
from tidesched_web.console.reach_words import ReachWords, reach_words
from tidesched_web.console.stop_words import StopWords, stop_words
from tidesched_web.console.templatetags import figures, looks, times, words

register = template.Library()
# A page loads them all by one name; each can be loaded by its own, too.
for _part in (figures, looks, times, words):
    register.tags.update(_part.register.tags)
    register.filters.update(_part.register.filters)


@register.simple_block_tag
def sentences(content: str) -> str:
    """Sentences one after the other, without the blanks of the template where the language has none between them."""
    return content if gap() else SafeString(closed_up(content))


@register.inclusion_tag("accounts/demo_people.html", takes_context=True)
def demo_people(context: dict[str, Any]) -> dict[str, Any]:
    request = context.get("request")
    offered = request is not None and people_file.may_be_offered(request.META) and only_simulated()
    return {
        "people": people_file.kept() if offered else [],
        "next": context.get("redirect_field_value") or "",
        "csrf_token": context.get("csrf_token", ""),
    }


@register.simple_tag(takes_context=True)
def navigation(context: dict[str, Any]) -> list[dict[str, Any]]:
    cluster, access, request = (context.get(name) for name in ("cluster", "access", "request"))
    return groups(
        section=context.get("section") or "",
        cluster=cluster.slug if cluster else "",
        everything=bool(access and access.everything),
        writes=bool(access and (access.administers or access.admin_of)),
        closed=request.COOKIES.get(COOKIE, SETTINGS) if request else SETTINGS,
    )


@register.simple_tag(takes_context=True)
def kept_open(context: dict[str, Any], name: str) -> bool:
    request = context.get("request")
    return request is None or name not in request.COOKIES.get(FOLDED_COOKIE, "").split(".")


@register.simple_tag(takes_context=True)
def reach_of(context: dict[str, Any], cluster: Cluster) -> ReachWords | None:
    access = context.get("access")
    return reach_words(cluster, everything=bool(access and access.everything))


@register.simple_tag(takes_context=True)
def stop_of(context: dict[str, Any], cluster: Cluster) -> StopWords | None:
    access = context.get("access")
    return stop_words(cluster, access) if access is not None else None


# Whether the page of words and help says what a page of this section is for.
register.filter("has_help", lambda section: section in ABOUT)


@register.simple_tag(takes_context=True)
def query(context: template.Context, **changes: object) -> str:
    """This page's address parameters with some of them changed; None or "" drops one, and a change drops the place."""
    values = context["request"].GET.copy()
    values.pop("cursor", None)
    for name, value in changes.items():
        if value in (None, ""):
            values.pop(name, None)
        else:
            values[name] = str(value)
    text = values.urlencode()
    return f"?{text}" if text else "?"


@register.simple_tag(takes_context=True)
def drop(context: template.Context, name: str) -> str:
    return query(context, **{name: None})


@register.simple_tag
def gang_url(cluster: Cluster, key: str) -> str:
    namespace, _slash, name = key.partition("/")
    return reverse("console:gang_by_name", args=[cluster.slug, namespace, name])
