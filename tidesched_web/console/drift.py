import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.dateparse import parse_datetime
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from tidesched_web.changes import drift as adopting
from tidesched_web.changes.drift import adoptable
from tidesched_web.changes.models import ChangeState
from tidesched_web.clusters.models import ClusterMode
from tidesched_web.common.card_names import card_label
from tidesched_web.common.errors import DomainError
from tidesched_web.console import amounts
from tidesched_web.console.export import csv_response
from tidesched_web.console.forms.filters import DriftFilter
from tidesched_web.console.intent import change_link, tell_waits
from tidesched_web.console.methods import acts_by_post
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.quota.drift_fields import CARDS, STATE
from tidesched_web.quota.drift_selectors import drift_counts, drift_look, open_drift, visible_drift
from tidesched_web.quota.models import Drift, DriftState
from tidesched_web.quota.services import drift as services

_NAMES: Mapping[str, Promise] = {
    "spec.weight": gettext_lazy("Weight"),
    "spec.priority": gettext_lazy("Priority"),
    "spec.reclaimable": gettext_lazy("Reclaimable"),
    "spec.capability.cpu": gettext_lazy("CPU limit"),
    "spec.capability.memory": gettext_lazy("Memory limit"),
    "spec.parent": gettext_lazy("Parent"),
    STATE: gettext_lazy("State"),
    "value": gettext_lazy("Value"),
    "globalDefault": gettext_lazy("Default of the cluster"),
    "preemptionPolicy": gettext_lazy("Preemption policy"),
    "description": gettext_lazy("Description"),
}


@dataclass(frozen=True, slots=True)
class FieldWords:
    name: str
    key: str
    intent: str
    pushed: str
    live: str
    changed_by: str
    changed_at: dt.datetime | None
    adoptable: bool


def field_words(row: Mapping[str, Any], kind: str) -> FieldWords:
    key = str(row["field"])
    if key.startswith(CARDS):
        name = _("Quota of %(card)s") % {"card": card_label(key[len(CARDS) :])}
    elif key.startswith("spec.capability.") and key not in _NAMES:
        name = _("Limit of %(resource)s") % {"resource": key.removeprefix("spec.capability.")}
    else:
        name = str(_NAMES.get(key, key))
    return FieldWords(
        name=name,
        key=key,
        intent=_value(row.get("intent")),
        pushed=_value(row.get("pushed")),
        live=_value(row.get("live")),
        changed_by=str(row.get("changed_by") or ""),
        changed_at=parse_datetime(str(row.get("changed_at") or "")),
        adoptable=adoptable(key, kind),
    )


def _value(value: Any) -> str:
    return "–" if value in (None, "") else str(value)


# More than this on one page is of no help; what is beyond it comes as the first ones end.
MOST = 200


@page(section="drift", topics="drift queues changes")
def drift(this: Page) -> HttpResponse:
    if this.request.GET.get("format") == "csv":
        return _export(this)
    return this.render("drift/drift.html", _context(this))


def _export(this: Page) -> HttpResponse:
    rows = DriftFilter(this.request.GET).apply(open_drift(this.access, this.cluster)).order_by("kind", "name")
    fields, clock = ("field", "intent", "pushed", "live", "changed_by", "changed_at"), this.cluster.clock
    return csv_response(
        f"drift-{this.cluster.slug}",
        ["kind", "name", "state", "what", "found_at", *fields],
        (
            [
                row.kind,
                row.name,
                row.state,
                row.what,
                clock(row.found_at).isoformat(),
                *(one.get(name) for name in fields),
            ]
            for row in rows
            for one in row.fields
        ),
    )


def _context(this: Page) -> dict[str, Any]:
    form = DriftFilter(this.request.GET)
    counts = drift_counts(this.access, this.cluster)
    rows = list(form.apply(open_drift(this.access, this.cluster)).order_by("-state", "kind", "name")[:MOST])
    look = drift_look(this.cluster)
    ended = visible_drift(this.access).filter(cluster=this.cluster, state=DriftState.RESOLVED)
    return {
        "form": form,
        "rows": [_row(row) for row in rows],
        "counts": counts,
        "look": look,
        "unmanaged": look.unmanaged if look and this.access.everything else [],
        "page": paged(ended, ("-id",), this.request.GET.get("cursor", "")),
        "line": line_of(counts, look, everything=this.access.everything),
        "writes": this.cluster.mode != ClusterMode.OBSERVE,
    }


def _row(row: Drift) -> dict[str, Any]:
    fields = [field_words(one, row.kind) for one in row.fields]
    return {"drift": row, "fields": fields, "adoptable": row.live is not None and all(f.adoptable for f in fields)}


def line_of(counts: dict[str, int], look: Any, *, everything: bool) -> str:
    if look is None:
        return _("The cluster has not been compared yet.")
    waits = counts.get(DriftState.OPEN, 0)
    if not waits:
        if not everything:
            return _("All objects that you see are as they were sent.")
        return _("All objects of the cluster are as they were sent.")
    return ngettext(
        "%(n)s object differs from what was sent to it.", "%(n)s objects differ from what was sent to them.", waits
    ) % {"n": amounts.number(waits)}


def _require_seen(rows: Sequence[Drift], sent: Mapping[str, str]) -> None:
    """What is decided about is what the page showed: refused as ``stale`` where live values are others by now."""
    for row in rows:
        if sent.get(f"seen-{row.pk}", row.digest) != row.digest:
            text = _(
                "%(object)s was changed in the cluster since you opened this page; nothing was done. Next: look at "
                "what is there now, then decide again. Your choice and your reason are kept."
            )
            raise DomainError("stale", text % {"object": f"{row.kind} {row.name}"})


@acts_by_post
@page(section="drift")
def decide(this: Page) -> HttpResponse:
    if not this.access.administers:
        raise PermissionDenied
    sent = this.request.POST
    chosen = [int(pk) for pk in sent.getlist("drift") if pk.isascii() and pk.isdigit() and len(pk) < 19]
    rows = list(visible_drift(this.access).filter(cluster=this.cluster, pk__in=chosen))
    reason, act = sent.get("reason", ""), sent.get("act", "")
    try:
        _require_seen(rows, sent)
        if act == "adopt":
            change = adopting.adopt(drifts=rows, access=this.access, reason=reason)
            if change.state == ChangeState.WAITING:
                tell_waits(this, change)
            else:
                text = _("{change} makes the live figures the intent.")
                messages.success(this.request, format_html(text, change=change_link(change)))
            return redirect("console:change", this.cluster.slug, change.pk)
        if act == "repush":
            count = services.repush(drifts=rows, access=this.access, reason=reason)
            said = ngettext("%(n)s object is sent again.", "%(n)s objects are sent again.", count)
        elif act == "ignore":
            count = services.ignore(drifts=rows, access=this.access, reason=reason)
            said = ngettext(
                "%(n)s object is left as it is until it changes again.",
                "%(n)s objects are left as they are until they change again.",
                count,
            )
        else:
            raise DomainError("invalid", _("Say what is to be done."))
    except DomainError as error:
        context = {"error": error.message, "details": error.extra.get("errors") or [], "reason": reason}
        return this.render("drift/drift.html", _context(this) | context | {"chosen": set(chosen)}, status=error.status)
    messages.success(this.request, said % {"n": amounts.number(count)})
    return redirect("console:drift", this.cluster.slug)
