"""The building blocks of every page: icons, states, times and amounts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from functools import cache
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tidesched_web.accounts import demo_people as people_file
from tidesched_web.changes.models import QuotaChange
from tidesched_web.clusters.models import Cluster
from tidesched_web.clusters.selectors import only_simulated
from tidesched_web.common import reader_zone
from tidesched_web.common.card_names import card_label
from tidesched_web.common.failures import in_words
from tidesched_web.common.permissions import Access
from tidesched_web.common.sentences import closed_up, gap, list_comma, listed
from tidesched_web.console import amounts
from tidesched_web.console.actor_words import actor_words
from tidesched_web.console.alert_words import alert_name, alert_sentence
from tidesched_web.console.audit_words import act_words, field_words, object_label, object_word
from tidesched_web.console.by_language import by_language
from tidesched_web.console.gang_why import why_sentence
from tidesched_web.console.navigation import COOKIE, FOLDED_COOKIE, SETTINGS, groups
from tidesched_web.console.page_help import ABOUT
from tidesched_web.console.process_words import role_words
from tidesched_web.console.process_words import said as process_words
from tidesched_web.console.reach_words import ReachWords, reach_words
from tidesched_web.console.reason_words import reason_detail, reason_sentence, reason_title
from tidesched_web.console.reclaim_words import said_of
from tidesched_web.console.resource_words import resource_amount
from tidesched_web.console.rule_words import rule_text
from tidesched_web.console.states import LEFT_WAITING, SCHEDULED, look
from tidesched_web.console.stop_words import StopWords, stop_words
from tidesched_web.console.template_loader import address_of
from tidesched_web.scheduling.holds import sending_stop
from tidesched_web.scheduling.models import Alert, Reclaim, ReclaimSource
from tidesched_web.workloads.models import Gang
from tidesched_web.workloads.reason_figures import AsOf, newer_than_others

register = template.Library()
# So many letters at the end of a name are never cut: what tells the runs of one job apart stands there.
TAIL = 11
_PARTS = {
    "quota admin": gettext_lazy("Quota admin"),
    "tenant admin": gettext_lazy("Tenant admin"),
    "auditor": gettext_lazy("Auditor"),
}
# What each of them may do, in the words of README.
_MAY = {
    "quota admin": gettext_lazy(
        "Sees everything. Sets the quota of all tenants, approves changes, makes tide plans, policies and accounts."
    ),
    "tenant admin": gettext_lazy(
        "Sees the tenant Ember Commerce and what is its own in the cluster. Divides its quota (a second person "
        "approves), asks for more of it, and invites members."
    ),
    "auditor": gettext_lazy("Sees everything and changes nothing. Reads, verifies and exports the audit log."),
}
register.filter("rule_text", rule_text)
register.filter("listed", listed)
register.simple_tag(list_comma)
register.filter("process_words", process_words)
register.filter("role_words", role_words)
register.filter("actor_words", actor_words)
register.filter("alert_name", alert_name)
register.filter("field_words", field_words)
register.filter("act_words", act_words)
register.filter("resource_amount", resource_amount)
register.filter("object_label", object_label)
register.filter("object_word", object_word)


@register.simple_tag
@cache
def icon(name: str, css: str = "") -> SafeString:
    """One icon of the sprite; it says nothing to a screen reader, the word beside it does."""
    return format_html(
        '<svg class="icon {}" width="18" height="18" fill="none" stroke="currentColor" stroke-width="2"'
        ' stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><use href="{}#{}"></use></svg>',
        css,
        static("vendor/icons.svg"),
        name,
    )


@register.simple_block_tag
def sentences(content: str) -> str:
    """Sentences one after the other, without the blanks of the template where the language has none between them."""
    return content if gap() else SafeString(closed_up(content))


@register.inclusion_tag("accounts/demo_people.html", takes_context=True)
def demo_people(context: dict[str, Any]) -> dict[str, Any]:
    """The accounts of the demo with their passwords; nothing where the installation is more than a demo."""
    request = context.get("request")
    offered = request is not None and people_file.may_be_offered(request.META) and only_simulated()
    people = people_file.kept() if offered else []
    found = [
        {
            "name": row.username,
            "password": row.password,
            "part": _PARTS.get(row.part, row.part),
            "may": _MAY.get(row.part, ""),
        }
        for row in people
    ]
    return {
        "people": found,
        "next": context.get("redirect_field_value") or "",
        "csrf_token": context.get("csrf_token", ""),
    }


@register.filter
@by_language
def cut_name(key: str) -> SafeString:
    """A name cut in its middle where the room ends, behind its namespace in grey; copied and on hover it is whole."""
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


@register.simple_tag(takes_context=True)
def navigation(context: dict[str, Any]) -> list[dict[str, Any]]:
    """The groups of pages beside the content."""
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
    """Whether the reader has left a part that folds open."""
    request = context.get("request")
    return request is None or name not in request.COOKIES.get(FOLDED_COOKIE, "").split(".")


@register.simple_tag(takes_context=True)
def reach_of(context: dict[str, Any], cluster: Cluster) -> ReachWords | None:
    """What keeps the sessions of a cluster from running, if anything does."""
    access = context.get("access")
    return reach_words(cluster, everything=bool(access and access.everything))


@register.simple_tag(takes_context=True)
def stop_of(context: dict[str, Any], cluster: Cluster) -> StopWords | None:
    """Why nothing is sent to a cluster, if something stopped it. A page of errors has no reader."""
    access = context.get("access")
    return stop_words(cluster, access) if access is not None else None


@register.simple_tag
@by_language
def state(kind: str, value: str) -> SafeString:
    """A state as icon and word."""
    seen = look(kind, value)
    return format_html('<span class="state tone-{}">{}{}</span>', seen.tone, icon(seen.icon), seen.word)


@register.simple_tag
def gang_state(gang: Gang) -> SafeString:
    """The state of a gang; of one that left the cluster before it ran, that."""
    shown: SafeString = state("gang", LEFT_WAITING if gang.left_waiting else gang.state)
    return shown


@register.simple_tag
def change_state(change: QuotaChange) -> SafeString:
    """Where a change stands; one that only waits for its hour, without an approval, is scheduled."""
    shown: SafeString = state("change", SCHEDULED if change.scheduled else change.state)
    return shown


@register.filter
def woken_by(trigger: str) -> str:
    """What made a session run: the watch, the time, or a person by name."""
    known = {"watch": _("a change in the cluster"), "period": _("its time"), "drawn": _("drawn history"), "": "–"}
    return known.get(trigger, trigger)


@register.simple_tag
@by_language
def step_icon(value: str) -> SafeString:
    """The icon of one step of a gang's life, in its tone."""
    seen = look("step", value)
    return format_html('<span class="step tone-{}">{}</span>', seen.tone, icon(seen.icon))


@register.filter
@by_language
def card(name: str) -> SafeString:
    """A card type by its short name, the canonical one on hover."""
    return format_html('<span class="card-type" title="{}">{}</span>', name, card_label(name))


@register.filter
def card_name(name: str) -> str:
    """A card type by its short name, as plain text for an attribute."""
    return card_label(name)


@register.filter
def count(value: float | None) -> str | SafeString:
    """A number as a person reads it; unknown is a dash that says so."""
    if value is None:
        return format_html('<span title="{}">–</span>', _("not known"))
    return amounts.number(value)


@register.filter
def counted(value: int) -> amounts.Counted:
    """The number that a ``blocktranslate count`` chooses by, as a person reads it."""
    return amounts.Counted(value)


@register.filter
def more_alerts(cluster: Cluster) -> int:
    """How many of its alerts stand behind those that are shown above its overview."""
    return cluster.alert_banners - len(cluster.alert_rows)  # type: ignore[attr-defined]  # of `clusters_now`


@register.filter
def error_text(text: str) -> str:
    """A stored error in the reader's language, where it is one of those without an own sentence."""
    return in_words(text)


@register.filter
def plain(value: float) -> str:
    """A number for an attribute of SVG, the same in every language."""
    return f"{value:g}"


register.filter("tide_amount", amounts.tide_amount)


# Whether the page of words and help says what a page of this section is for.
register.filter("has_help", lambda section: section in ABOUT)


@register.filter
def each_amount(named: Mapping[str, Any] | None) -> str:
    """Amounts by name in one line; nothing of nothing."""
    return listed(f"{name}{_(': ')}{value}" for name, value in (named or {}).items())


@register.filter
def reason_said(reason: Mapping[str, Any]) -> str:
    """A kept reason (code, numbers, message) as a sentence in the reader's language."""
    numbers = reason.get("numbers") or {}
    return reason_detail(reason["code"], reason.get("message", "")) or reason_sentence(reason["code"], numbers)


@register.filter
def reclaim_said(reclaim: Reclaim) -> str:
    """A reclaim in one sentence."""
    return said_of(reclaim)


@register.filter
def reclaimer_name(reclaim: Reclaim) -> str:
    """The gang that gained; where none is known, that, or the action that wanted the room."""
    if reclaim.reclaimer:
        return reclaim.reclaimer
    return _("unknown") if reclaim.source == ReclaimSource.OBSERVED else reclaim.action


@register.filter
def milli(value: int | None) -> str | SafeString:
    """Milli-cards as cards."""
    return count(None if value is None else value / 1000)


@register.filter
def exact_cards(value: int) -> str:
    """Milli-cards as cards, not rounded."""
    return amounts.cards(value)


@by_language
def _unbroken(*value: tuple[str, float]) -> SafeString:
    """A line never breaks between a number and its card; what is cut of the card may stand on the next one."""
    each = (amounts.cards_text({name: amount}).split(" ", 3) for name, amount in sorted(value))
    parts = ((" ".join(words[:3]), "".join(f" {word}" for word in words[3:])) for words in each)
    return format_html_join(list_comma(), '<span class="nowrap">{}</span>{}', parts)


@register.filter
def cards(value: Mapping[str, float] | None) -> str | SafeString:
    """A map of card counts as "4 × H200, 2 × A10"; None is what the reader may not know."""
    if value is None:
        why = _("Of a gang of another tenant: shown to that tenant only.")
        return format_html('<abbr class="text-secondary" title="{}">–</abbr>', why)
    return _unbroken(*value.items()) if value else format_html('<span class="text-secondary">{}</span>', _("no cards"))


@register.filter
def gang_cards(gang: Gang) -> str | SafeString:
    """The cards of a gang; before its pods exist, what its reason says that it asks for."""
    resource, requested = gang.reason_numbers.get("resource"), gang.reason_numbers.get("requested")
    if not gang.cards and gang.needs and requested and resource not in (None, "cpu", "memory"):
        return cards({resource: requested})
    return cards(gang.cards)


@register.filter
def duration(seconds: float | None) -> str | SafeString:
    """Seconds as "3 h 12 min"."""
    return count(None) if seconds is None else amounts.duration(seconds)


@register.filter
def work(card_seconds: float | None) -> str | SafeString:
    """Card-seconds as card-hours or card-minutes."""
    return count(None) if card_seconds is None else amounts.work(card_seconds)


@register.filter
def card_hours(card_seconds: float | None) -> str | SafeString:
    """Card-seconds as card-hours."""
    return count(None) if card_seconds is None else amounts.card_hours(card_seconds)


@register.filter
def gib(mib: int | None) -> str | SafeString:
    """MiB as GiB."""
    return _("no limit") if mib is None else f"{amounts.number(mib / 1024)} GiB"


@register.filter
def cores(milli_cores: int | None) -> str | SafeString:
    """Milli-cores as cores."""
    return _("no limit") if milli_cores is None else amounts.number(milli_cores / 1000)


@register.filter
def exact(moment: dt.datetime | None) -> str | SafeString:
    """A moment in the reader's zone, to the second; below a head that names the zone."""
    if moment is None:
        return count(None)
    return reader_zone.to_the_second(moment) + reader_zone.other_zone(moment)


register.simple_tag(reader_zone.zone_name)
register.filter("to_minute", reader_zone.named)


@register.filter
def exact_zone(moment: dt.datetime | None) -> str | SafeString:
    """A moment in the reader's zone, and the zone."""
    return count(None) if moment is None else f"{reader_zone.to_the_second(moment)} {reader_zone.zone_name(moment)}"


@register.filter
def by_real_clock(moment: dt.datetime | None) -> str | SafeString:
    """A moment of the wall's clock in the reader's zone, and which clock it is of."""
    return count(None) if moment is None else _("%(time)s by the real clock") % {"time": exact_zone(moment)}


@register.simple_tag
def ago(moment: dt.datetime | None, now: dt.datetime | None = None) -> str | SafeString:
    """How long ago, the exact time on hover: by the cluster's clock, without `now` by the wall's.

    The page's script keeps it fresh, so an answer that differs in nothing else is the same answer.
    """
    if moment is None:
        return count(None)
    seconds = ((now or timezone.now()) - moment).total_seconds()
    text = amounts.ago(seconds)
    if now is None:
        stamp = moment.astimezone(dt.UTC).isoformat()
        return format_html(
            '<time class="num" datetime="{}" data-ago title="{}">{}</time>', stamp, exact_zone(moment), text
        )
    return format_html(
        '<time class="num" datetime="{}" data-by-cluster="ago" title="{}">{}</time>',
        moment.isoformat(),
        cluster_time_title(moment),
        text,
    )


@register.simple_tag(takes_context=True)
def ago_of_wall(context: dict[str, Any], moment: dt.datetime | None) -> str | SafeString:
    """The same of a moment of the wall's clock, said by the cluster's: a row with both has one clock."""
    there = None if moment is None else context["cluster"].clock(moment).replace(microsecond=0)
    return ago(there, context["now"])


@register.simple_tag(takes_context=True)
def ago_of_alert(context: dict[str, Any], moment: dt.datetime | None) -> str | SafeString:
    """How long ago, of an alert: by the cluster's clock as its drift is, by the wall's for those of all clusters."""
    return ago(moment) if context["everywhere"] else ago_of_wall(context, moment)


def cluster_time_title(moment: dt.datetime) -> str:
    """A moment of the cluster's clock to the second, in the reader's zone."""
    return _by_clock(moment, timezone.get_current_timezone())


register.filter("by_clock", cluster_time_title)


@by_language
def _by_clock(moment: dt.datetime, _zone: dt.tzinfo) -> str:
    # The zone is the present one: a part of what the text is kept by.
    return _("%(time)s by the cluster's clock") % {"time": exact_zone(moment)}


@register.simple_tag
def since(moment: dt.datetime | None, now: dt.datetime) -> str | SafeString:
    """How long it lasts already, the exact beginning on hover; the page's script keeps it fresh."""
    if moment is None:
        return count(None)
    return format_html(
        '<time class="num" datetime="{}" data-by-cluster="for" title="{}">{}</time>',
        moment.isoformat(),
        cluster_time_title(moment),
        amounts.duration((now - moment).total_seconds()),
    )


@register.simple_tag
def short_moment(moment: dt.datetime | None) -> str | SafeString:
    """A moment of the cluster's clock to the minute, in the reader's zone; the exact one on hover.

    It stands below a head that names the zone.
    """
    if moment is None:
        return count(None)
    return _short_moment(moment, timezone.get_current_timezone(), reader_zone.other_zone(moment))


@by_language
def _short_moment(moment: dt.datetime, _zone: dt.tzinfo, beside: str) -> SafeString:
    # The zone is the present one: a part of what the text is kept by.
    text = reader_zone.to_the_minute(moment) + beside
    return format_html(
        '<time class="num nowrap" datetime="{}" title="{}"><span class="year">{}</span>{}</time>',
        moment.isoformat(),
        cluster_time_title(moment),
        text[:5],
        text[5:],
    )


@register.simple_tag(takes_context=True)
def why_waits(context: template.Context, gang: Any, cluster: Cluster | None = None) -> str:
    """Why a gang waits, as far as the reader may see it; ``cluster``: where the page is not about one."""
    return why_sentence(context["access"], gang, sending_stop(cluster or context["cluster"]))


@register.simple_tag
def newer_figures(gang: Gang) -> AsOf | None:
    """The session of a gang's figures where it is a later one than that of the others."""
    return newer_than_others(gang)


@register.simple_tag
def cluster_clock(cluster: Cluster, now: dt.datetime) -> SafeString:
    """The clock of a cluster in the reader's zone, as all times of the page; the cluster's own zone on hover."""
    own = cluster.local_zone  # type: ignore[attr-defined]  # of `clusters_now`
    name = timezone.get_current_timezone_name()
    return format_html(
        '<time class="num" id="cluster-clock" datetime="{}" data-rate="{}" data-zone="{}" title="{}">{}</time>'
        ' <span class="zone">{}</span>',
        now.isoformat(),
        float(cluster.clock_rate),
        name,
        _("The cluster's clock, in your time zone (%(yours)s) as all times here; the cluster's own is %(own)s")
        % {"yours": name, "own": own},
        reader_zone.to_the_minute(now),
        reader_zone.zone_name(now),
    )


@register.simple_tag
def between(start: dt.datetime | None, end: dt.datetime | None) -> str | SafeString:
    """The time between two moments."""
    return duration((end - start).total_seconds() if start and end else None)


@register.filter
def reason_name(code: str) -> str:
    """The short name of a reason code."""
    return str(reason_title(code))


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
    """This page's address without one parameter."""
    return query(context, **{name: None})


@register.simple_tag
def gang_url(cluster: Cluster, key: str) -> str:
    """The address of a gang known by ``namespace/name``."""
    namespace, _slash, name = key.partition("/")
    return address_of("console:gang_by_name", cluster.slug, namespace, name)


@register.filter
def milliseconds(value: float | None) -> str | SafeString:
    """Milliseconds as a duration."""
    return count(None) if value is None else amounts.duration(value / 1000)


@register.simple_tag
def alert_lines(cluster: Cluster, access: Access) -> list[dict[str, Any]]:
    """The open alerts above an overview; those that read the same to the reader are one line with their number."""
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    for alert in cluster.alert_rows:  # type: ignore[attr-defined]  # of `clusters_now`
        text, severity = alert_text(alert, access), alert["severity"]
        lines.setdefault((severity, text), {"severity": severity, "text": text, "n": 0})["n"] += 1
    return list(lines.values())


@register.simple_tag
def alert_text(alert: Alert | Mapping[str, Any], access: Access) -> str:
    """What an alert says, from its row or from a cluster's list of them."""
    row = (
        alert
        if isinstance(alert, Mapping)
        else {"code": alert.code, "numbers": alert.numbers, "message": alert.message}
    )
    return alert_sentence(row["code"], row["numbers"] or {}, row["message"], everything=access.everything)
