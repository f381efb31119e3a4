from collections.abc import Iterable

from django.http import HttpResponse
from django.utils.translation import ngettext

from tidesched_web.changes.forecast_selectors import record_of
from tidesched_web.changes.selectors import visible_changes, with_touched
from tidesched_web.common.sentences import listed
from tidesched_web.console import amounts, change_words, forecast_view
from tidesched_web.console.export import csv_list
from tidesched_web.console.forms.change import ChangeFilter
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.rights import writes


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
