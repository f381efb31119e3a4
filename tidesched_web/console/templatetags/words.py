"""What is said in words: reasons, reclaims, alerts, entries of the audit log, processes."""

import re
from collections.abc import Mapping
from typing import Any

from django import template
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tidesched_web.audit.models import AuditEntry
from tidesched_web.clusters.models import Cluster
from tidesched_web.common.actors import ANONYMOUS, OBSERVER, OPERATOR, SCHEDULER, SYSTEM
from tidesched_web.common.failures import in_words
from tidesched_web.common.permissions import Access
from tidesched_web.common.sentences import list_comma, listed
from tidesched_web.console.alert_words import alert_name, alert_sentence
from tidesched_web.console.audit_words import act_words, field_words, object_label, object_word
from tidesched_web.console.gang_why import why_sentence
from tidesched_web.console.process_words import role_words
from tidesched_web.console.process_words import said as process_words
from tidesched_web.console.reason_words import reason_detail, reason_sentence, reason_title
from tidesched_web.console.reclaim_words import said_of, took
from tidesched_web.console.rule_words import rule_text
from tidesched_web.scheduling.holds import sending_stop
from tidesched_web.scheduling.models import Alert, Reclaim, ReclaimSource
from tidesched_web.workloads.models import Gang
from tidesched_web.workloads.reason_figures import AsOf, newer_than_others

register = template.Library()
register.filter("rule_text", rule_text)
register.filter("listed", listed)
register.simple_tag(list_comma)
register.filter("process_words", process_words)
register.filter("role_words", role_words)
register.filter("alert_name", alert_name)
register.filter("field_words", field_words)
register.filter("act_words", act_words)
register.filter("object_label", object_label)
register.filter("object_word", object_word)


@register.filter
def woken_by(trigger: str) -> str:
    """What made a session run: the watch, the time, or a person by name."""
    known = {"watch": _("a change in the cluster"), "period": _("its time"), "drawn": _("drawn history"), "": "–"}
    return known.get(trigger, trigger)


@register.filter
def error_text(text: str) -> str:
    return in_words(text)


@register.filter
def reason_said(reason: Mapping[str, Any]) -> str:
    numbers = reason.get("numbers") or {}
    return reason_detail(reason["code"], reason.get("message", "")) or reason_sentence(reason["code"], numbers)


@register.filter
def why_words(entry: AuditEntry) -> str:
    """Why it was done, or of a reclaim what was taken from whom; who may not see that reads the rule."""
    receipt = entry.after if entry.object_type == "reclaim" else None
    return took(receipt) if receipt and receipt.get("victims") else rule_text(entry.reason)


@register.filter
def reclaim_said(reclaim: Reclaim) -> str:
    return said_of(reclaim)


@register.filter
def reclaimer_name(reclaim: Reclaim) -> str:
    """The gang that gained; where none is known, that, or the action that wanted the room."""
    if reclaim.reclaimer:
        return reclaim.reclaimer
    return _("unknown") if reclaim.source == ReclaimSource.OBSERVED else reclaim.action


@register.simple_tag(takes_context=True)
def why_waits(context: template.Context, gang: Any, cluster: Cluster | None = None) -> str:
    return why_sentence(context["access"], gang, sending_stop(cluster or context["cluster"]))


@register.simple_tag
def newer_figures(gang: Gang) -> AsOf | None:
    """The session of a gang's figures where it is a later one than that of the others."""
    return newer_than_others(gang)


@register.filter
def reason_name(code: str) -> str:
    return str(reason_title(code))


@register.simple_tag
def alert_text(alert: Alert | Mapping[str, Any], access: Access) -> str:
    row = (
        alert
        if isinstance(alert, Mapping)
        else {"code": alert.code, "numbers": alert.numbers, "message": alert.message}
    )
    return alert_sentence(row["code"], row["numbers"] or {}, row["message"], everything=access.everything)


# No account may have such a name.
_OURS: dict[str, Promise] = {
    str(SCHEDULER): gettext_lazy("scheduler"),
    str(OBSERVER): gettext_lazy("observer"),
    str(SYSTEM): gettext_lazy("system"),
    str(ANONYMOUS): gettext_lazy("anonymous"),
    str(OPERATOR): gettext_lazy("operator (command line)"),
}
_BY_TOKEN = re.compile(r"(?P<name>.+) \(token (?P<token>.+)\)")


@register.filter
def actor_words(actor: str) -> str:
    if found := _BY_TOKEN.fullmatch(actor):
        return _("%(name)s (token %(token)s)") % found.groupdict()
    return str(_OURS.get(actor, actor))
