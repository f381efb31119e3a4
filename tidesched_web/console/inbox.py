from typing import Any

from django.http import HttpResponse
from django.utils import timezone

from tidesched_web.changes.inbox_selectors import inbox_to_be_read, tenants_of
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.selectors import FIRST_TOUCHED
from tidesched_web.changes.tree_document import key_of
from tidesched_web.console import change_words
from tidesched_web.console.changes import told_objects
from tidesched_web.console.page import Page, page
from tidesched_web.console.rights import need_writer

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
