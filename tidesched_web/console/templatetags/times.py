import datetime as dt
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from tidesched_web.clusters.models import Cluster
from tidesched_web.common import reader_zone
from tidesched_web.console import amounts
from tidesched_web.console.by_language import by_language
from tidesched_web.console.templatetags.figures import count

register = template.Library()


@register.filter
def exact(moment: dt.datetime | None) -> str | SafeString:
    if moment is None:
        return count(None)
    return reader_zone.to_the_second(moment) + reader_zone.other_zone(moment)


register.simple_tag(reader_zone.zone_name)
register.filter("to_minute", reader_zone.named)


@register.filter
def exact_zone(moment: dt.datetime | None) -> str | SafeString:
    return count(None) if moment is None else f"{reader_zone.to_the_second(moment)} {reader_zone.zone_name(moment)}"


@register.filter
def by_real_clock(moment: dt.datetime | None) -> str | SafeString:
    return count(None) if moment is None else _("%(time)s by the real clock") % {"time": exact_zone(moment)}


@register.simple_tag
def ago(moment: dt.datetime | None, now: dt.datetime | None = None) -> str | SafeString:
    """By the cluster's clock, without ``now`` by the wall's; the page's script keeps it fresh."""
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
    return _by_clock(moment, timezone.get_current_timezone())


register.filter("by_clock", cluster_time_title)


@by_language
def _by_clock(moment: dt.datetime, _zone: dt.tzinfo) -> str:
    # The zone is the present one: a part of what the text is kept by.
    return _("%(time)s by the cluster's clock") % {"time": exact_zone(moment)}


@register.simple_tag
def since(moment: dt.datetime | None, now: dt.datetime) -> str | SafeString:
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


@register.simple_tag
def cluster_clock(cluster: Cluster, now: dt.datetime) -> SafeString:
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
