from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from tidesched_web.changes import services as changes
from tidesched_web.changes import tree_csv, tree_file
from tidesched_web.changes.card_aliases import canonical_cards
from tidesched_web.changes.selectors import read_tree
from tidesched_web.changes.tree_document import Documents, Edits
from tidesched_web.changes.tree_import import edits_to
from tidesched_web.clusters.selectors import card_aliases, card_names
from tidesched_web.common.errors import DomainError
from tidesched_web.common.tables import decoded
from tidesched_web.console import amounts, change_words
from tidesched_web.console.methods import takes_forms
from tidesched_web.console.page import Page, page

YAML, CSV = "yaml", "csv"
# A page shows at most so many lines of a difference; the review has them all.
LINES_SHOWN = 200
_SECTIONS = {
    "rules": gettext_lazy("Rules"),
    "card-type": gettext_lazy("Card types"),
    "tenant": gettext_lazy("Tenants"),
    "project": gettext_lazy("Projects"),
    "business-line": gettext_lazy("Business lines"),
    "priority-class": gettext_lazy("Priority classes"),
    "queue": gettext_lazy("Queues"),
    "grant": gettext_lazy("Namespace grants"),
    "tide-plan": gettext_lazy("Tide plans"),
}


def _may_write(this: Page) -> bool:
    return this.access.administers or bool(this.access.admin_of)


@page(section="tree_file")
def export(this: Page) -> HttpResponse:
    documents = read_tree(this.cluster, this.access)
    if this.request.GET.get("format") == CSV:
        text, kind = tree_csv.dumps(documents, card_names(this.cluster)), "text/csv"
    else:
        text, kind = tree_file.dumps(documents, cluster=this.cluster.slug), "application/yaml"
    ending = CSV if kind == "text/csv" else YAML
    response = HttpResponse(text, content_type=f"{kind}; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="tree-{this.cluster.slug}.{ending}"'
    response.headers["Cache-Control"] = "no-store"
    return response


@takes_forms
@page(section="tree_file")
def tree_page(this: Page) -> HttpResponse:
    documents = read_tree(this.cluster, this.access)
    context: dict[str, Any] = {
        "counts": [
            (_SECTIONS[kind], tree_file.SECTIONS[kind], count)
            for kind, count in tree_file.sections(documents).items()
            if count
        ],
        "may_write": _may_write(this),
        "line": _line(documents),
        "format": YAML,
    }
    if this.request.method != "POST":
        return this.render("tree/file.html", context)
    if not _may_write(this):
        raise PermissionDenied
    sent = this.request.POST
    context |= {
        "text": "",
        "format": CSV if sent.get("format") == CSV else YAML,
        "keep": "keep" in sent,
        "reason": sent.get("reason", "").strip(),
    }
    return _compared(this, documents, context)


def _line_words(entry: dict[str, Any]) -> dict[str, str]:
    kind, _name = change_words.object_name(entry["object"])
    words = {"object": entry["object"], "pointer": entry["field"], "kind": kind}
    return words | change_words.figure_words(entry)


def _text(this: Page) -> str:
    upload = this.request.FILES.get("file")
    if upload is None:
        return this.request.POST.get("text", "").replace("\r\n", "\n")
    if upload.size and upload.size > tree_file.MOST_BYTES:
        return ""
    return decoded(upload.read()).replace("\r\n", "\n")


def _compared(this: Page, documents: Documents, context: dict[str, Any]) -> HttpResponse:
    try:
        context["text"] = _text(this)
        edits = _edits(this, documents, context)
        if this.request.POST.get("act") == "draft" and edits:
            if not context["reason"]:
                raise DomainError("reason_required", _("Say why: the reason goes into the audit log."))
            change = changes.draft(
                cluster=this.cluster, edits=edits, access=this.access, reason=context["reason"], source="import"
            )
            return redirect("console:change", this.cluster.slug, change.pk)
        plan = changes.check(cluster=this.cluster, edits=edits, access=this.access) if edits else None
    except DomainError as error:
        errors = error.extra.get("errors") or [{"pointer": "", "detail": error.message}]
        more = error.extra.get("more_errors", 0)
        return this.render("tree/file.html", context | {"errors": errors, "more_errors": more}, status=400)
    fields = plan["fields"] if plan else []
    return this.render(
        "tree/file.html",
        context
        | {
            "compared": True,
            "fields": [_line_words(entry) for entry in fields[:LINES_SHOWN]],
            "more": max(0, len(fields) - LINES_SHOWN),
            "errors": plan["errors"] if plan else [],
            "more_errors": plan["more_errors"] if plan else 0,
            "said": _said(len(edits), len(fields)),
        },
    )


def _edits(this: Page, documents: Documents, context: dict[str, Any]) -> Edits:
    if not context["text"].strip():
        raise DomainError("invalid", _("Choose a file, or paste its text."))
    if context["format"] == CSV:
        return tree_csv.loads(context["text"], documents, card_names(this.cluster), card_aliases(this.cluster))
    wanted = canonical_cards(tree_file.loads(context["text"]), card_aliases(this.cluster))
    return edits_to(documents, wanted, keep=context["keep"])


def _line(documents: Documents) -> str:
    count = len(documents)
    return ngettext(
        "The intent that you see here is %(n)s object. The same tree gives the same bytes.",
        "The intent that you see here is %(n)s objects. The same tree gives the same bytes.",
        count,
    ) % {"n": amounts.number(count)}


def _said(objects: int, fields: int) -> str:
    if not objects:
        return _("The tree says already what the file says.")
    said = ngettext("%(n)s object would change", "%(n)s objects would change", objects)
    figures = ngettext("%(n)s figure", "%(n)s figures", fields) % {"n": amounts.number(fields)}
    return said % {"n": amounts.number(objects)} + ": " + figures
