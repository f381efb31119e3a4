from collections.abc import Iterable
from typing import Any

from django.http import HttpResponse
from django.utils import timezone
from django.utils.translation import ngettext

from tidesched_web.changes.forecast_selectors import record_of
from tidesched_web.changes.inbox_selectors import inbox_to_be_read, tenants_of
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.selectors import FIRST_TOUCHED, visible_changes, with_touched
from tidesched_web.changes.tree_document import key_of
from tidesched_web.common.sentences import listed
from tidesched_web.console import amounts, change_words, forecast_view
from tidesched_web.console.export import csv_list
from tidesched_web.console.forms.change import ChangeFilter
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.rights import need_writer, writes


@page(section="changes", topics="changes")
def changes(this: Page) -> HttpResponse:
    form = ChangeFilter(this.request.GET)
    rows = with_touched(form.apply(visible_changes(this.access).filter(cluster=this.cluster)))
    if this.request.GET.get("format") == "csv":
        return csv_list(
            f"changes-{this.cluster.slug}",
            {
                "change": lambda row: row.pk,
                "state": lambda row: row.state,
                "objects": lambda row: row.touched,
                "source": lambda row: row.source,
                "created_by": lambda row: row.created_by,
                "created_at": lambda row: row.created_at.isoformat(),
                "approved_by": lambda row: row.approved_by,
                "applied_at": lambda row: row.applied_at.isoformat() if row.applied_at else "",
                "reason": lambda row: row.reason,
            },
            rows.iterator(chunk_size=100),
        )
    listed = paged(rows, ["-id"], this.request.GET.get("cursor", ""))
    for row in listed.rows:
        row.told = told_objects(row.touched_first, row.touched)
    return this.render(
        "changes/changes.html",
        {
            "page": listed,
            "rows": listed.rows,
            "form": form,
            "may_edit": writes(this.access),
            "record": forecast_view.record_line(record_of(this.access, this.cluster)),
        },
    )


def told_objects(first: Iterable[str], count: int) -> str:
    names = [" ".join(change_words.object_name(key)) for key in first]
    more = count - len(names)
    said = listed(names)
    if more > 0:
        said += " " + ngettext("and %(n)s more", "and %(n)s more", more) % {"n": amounts.number(more)}
    return said


# Figures of a change that its line shows.
_HEADLINE = 3


@page(section="inbox", topics="changes")
def inbox(this: Page) -> HttpResponse:
    need_writer(this)
    found = inbox_to_be_read(this.access)
    tenants = tenants_of(found.waiting, this.access)
    known = {key_of("tenant", tenant.slug): {"name": tenant.name} for tenant in tenants.values()}
    now = timezone.now()
    rows = [
        {
            "change": change,
            "objects": _touches(change),
            "deletes": " · ".join(" ".join(change_words.object_name(key)) for key in deleted_objects(change)),
            "figures": headline(change),
            "asked": change_words.asked_words(change.plan or {}, known),
            "later": change.apply_at if change.apply_at and change.apply_at > now else None,
            "later_there": change.cluster.clock(change.apply_at) if change.apply_at else None,
            "tenants": [tenants[pk] for pk in change.tenant_ids if pk in tenants],
        }
        for change in found.waiting
    ]
    closed = [{"change": change, "objects": _touches(change)} for change in found.closed]
    return this.render("changes/inbox.html", {"rows": rows, "closed": closed})


def _touches(change: QuotaChange) -> str:
    return told_objects(sorted(change.edits)[:FIRST_TOUCHED], len(change.edits))


def headline(change: QuotaChange) -> list[dict[str, Any]]:
    plan = change.plan or {}
    apart = {(found["object"], found["field"]) for found in plan.get("asked", ())}
    # What goes is named by its own line: that its name is no more, is no figure.
    apart |= {(key, "/name") for key in deleted_objects(change)}
    fields = [found for found in plan.get("fields", ()) if (found["object"], found["field"]) not in apart]
    return [change_words.figure_words(found) for found in fields[:_HEADLINE]]


def deleted_objects(change: QuotaChange) -> list[str]:
    return sorted(key for key, patch in change.edits.items() if patch is None)
