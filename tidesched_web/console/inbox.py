"""What waits for the reader: the changes that they may approve, over all their clusters."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from tidesched_web.changes.inbox_selectors import tenants_of, waiting_for
from tidesched_web.changes.models import QuotaChange
from tidesched_web.console import change_words
from tidesched_web.console.changes import told_objects
from tidesched_web.console.page import Page, page
from tidesched_web.console.rights import need_writer

# Figures of a change that its line shows.
_HEADLINE = 3


@page(section="inbox", topics="changes")
def inbox(this: Page) -> HttpResponse:
    """The changes that wait for the reader's approval, the longest waiting first."""
    need_writer(this)
    waiting = waiting_for(this.access)
    names = tenants_of(waiting)
    rows = [
        {
            "change": change,
            "objects": told_objects(change),
            "figures": headline(change),
            "tenants": [names[pk] for pk in change.tenant_ids if pk in names],
        }
        for change in waiting
    ]
    return this.render("changes/inbox.html", {"rows": rows})


def headline(change: QuotaChange) -> list[dict[str, Any]]:
    """The first figures that a change moves, as its plan says."""
    return [
        {
            "name": change_words.object_name(found["object"])[1],
            "field": change_words.field_name(found["field"]),
            "before": change_words.figure(found["field"], found["before"]),
            "after": change_words.figure(found["field"], found["after"]),
        }
        for found in (change.plan or {}).get("fields", [])[:_HEADLINE]
    ]
