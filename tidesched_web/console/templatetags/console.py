import datetime as dt
from dataclasses import dataclass
from typing import Any

from django import template
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from tidesched_web.accounts import demo_people as people_file
from tidesched_web.clusters.models import Cluster
from tidesched_web.clusters.selectors import only_simulated
from tidesched_web.common.sentences import listed
from tidesched_web.console.navigation import COOKIE, FOLDED_COOKIE, SETTINGS, groups
from tidesched_web.console.page_help import ABOUT
from tidesched_web.console.stop_words import StopWords, stop_words
from tidesched_web.console.templatetags import figures, looks, times, words
from tidesched_web.scheduling.models import ReachState

# Without a session for so long, and without a holder of the cluster, no worker runs.
NOBODY_SECONDS = 60.0

_ON = _(
    "Sessions wait and nothing is sent; nothing is lost or done twice. It is tried again every few seconds, "
    "and all goes on by itself once it answers."
)
_REPLACE = _(
    "Sessions wait and nothing is sent. A platform admin replaces the credential; all goes on by itself within seconds."
)
_WORDS: dict[str, tuple[str | Promise, str | Promise]] = {
    ReachState.UNREACHABLE: (_("The API server does not answer."), _ON),
    ReachState.REFUSED: (_("The API server refuses the credential."), _REPLACE),
    ReachState.FORBIDDEN: (
        _("The credential lacks a right to read."),
        _("What cannot be read is missing from what sessions decide on. Grant the right as in the RBAC of the mode."),
    ),
    ReachState.KINDS_MISSING: (
        _("The API server does not know Volcano's kinds."),
        _("In mode schedule sessions wait until they are there again; they are looked for every few seconds."),
    ),
    ReachState.FAILING: (_("The API server answers with errors."), _ON),
}


@dataclass(frozen=True, slots=True)
class ReachWords:
    title: str | Promise
    text: str | Promise
    tone: str
    icon: str
    since: dt.datetime | None
    detail: str


def reach_words(cluster: Cluster, *, everything: bool) -> ReachWords | None:
    reach: Any = getattr(cluster, "reach", None)
    if reach is not None and reach.state in _WORDS:
        title, text = _WORDS[reach.state]
        severe = reach.state in (ReachState.UNREACHABLE, ReachState.REFUSED, ReachState.KINDS_MISSING)
        detail = (reach.detail or listed(reach.kinds)) if everything else ""
        return ReachWords(
            title, text, "failed" if severe else "waiting", "alert-circle" if severe else "alert-triangle",
            reach.since, detail,
        )  # fmt: skip
    return _nobody(cluster)


def _nobody(cluster: Cluster) -> ReachWords | None:
    held_until: dt.datetime | None = getattr(cluster, "lease_until", None)
    last: dt.datetime | None = getattr(cluster, "session_at", None)
    now = timezone.now()
    if last is None or held_until is None or held_until > now:
        return None
    if (now - last).total_seconds() < max(NOBODY_SECONDS, 10 * cluster.session_period_seconds):
        return None
    return ReachWords(
        _("No worker runs the sessions of this cluster."),
        _("What you see is as old as its last session. Another worker takes over within seconds of its start."),
        "waiting",
        "clock",
        last,
        "",
    )


register = template.Library()
# A page loads them all by one name; each can be loaded by its own, too.
for _part in (figures, looks, times, words):
    register.tags.update(_part.register.tags)
    register.filters.update(_part.register.filters)


@register.inclusion_tag("accounts/demo_people.html", takes_context=True)
def demo_people(context: dict[str, Any]) -> dict[str, Any]:
    request = context.get("request")
    offered = (
        request is not None
        and context.get("local", True)
        and people_file.may_be_offered(request.META)
        and only_simulated()
    )
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
