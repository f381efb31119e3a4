import hashlib
from dataclasses import asdict
from typing import Any

import orjson
from django.contrib import messages
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _

from tidesched_web.changes import services
from tidesched_web.changes.acts import Act, refusal
from tidesched_web.changes.impact import warm
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.changes.selectors import (
    reading_of,
    surroundings_of,
    tree_version,
    use_of_queues,
    visible_changes,
    within_sight,
    written_since,
)
from tidesched_web.common.errors import DomainError
from tidesched_web.common.plain_json import check_plain
from tidesched_web.common.spreadsheets import unguarded
from tidesched_web.common.tables import decoded, lines_of
from tidesched_web.console import quota_grid
from tidesched_web.console.change_page import why_due
from tidesched_web.console.change_reading import blocks
from tidesched_web.console.methods import acts_by_post
from tidesched_web.console.page import Page, page
from tidesched_web.console.quota_editor_words import words
from tidesched_web.console.rights import need_writer
from tidesched_web.quota.selectors import turned_by_plans, visible_queues_of


def draft_of(this: Page, text: str | None) -> QuotaChange | None:
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise Http404
    found = visible_changes(this.access).filter(cluster=this.cluster, pk=int(text)).first()
    if found is None or refusal(found, this.access, Act.EDIT) is not None:
        raise Http404
    return found


@page(section="quota")
def editor(this: Page) -> HttpResponse:
    need_writer(this)
    draft = draft_of(this, this.request.GET.get("change"))
    warm(this.cluster.pk)
    sent = draft is not None and draft.state != ChangeState.DRAFT
    zone = timezone.get_current_timezone_name()
    return this.render("quota/editor.html", {"draft": draft, "sent": sent, "user": this.user, "zone": zone})


@page()
def editor_data(this: Page) -> HttpResponse:
    """A page that has this version of the tree gets what moves without an edit alone, or 304."""
    need_writer(this)
    draft = draft_of(this, this.request.GET.get("change"))
    cluster, access = this.cluster, this.access
    version = tree_version(cluster)  # before the rest, which then is at least as new
    live = _live(this)
    etag = f'"{version}-{_digest(live)}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-store"}
    known = this.request.headers.get("If-None-Match", "")
    if known == etag:
        return HttpResponse(status=304, headers=headers)
    if known.startswith(f'"{version}-'):
        return JsonResponse({"version": version, "etag": etag, "live": live}, headers=headers)
    reading = reading_of(cluster)
    documents = within_sight(reading, access)
    around = surroundings_of(cluster, reading)
    found = quota_grid.columns(documents, reading.card_names)
    own = None if access.administers else {slug for slug, pk in reading.tenant_ids.items() if pk in access.admin_of}
    return JsonResponse(
        {
            "version": version,
            "etag": etag,
            "columns": [asdict(column) for column in found],
            "rows": quota_grid.rows(
                documents, around, found, own=own, whole=access.everything, effective=live["effective"]
            ),
            "writers": _writers(this, known),
            "words": words(),
            "edits": draft.edits if draft else {},
        },
        headers=headers,
    )


def _writers(this: Page, known: str) -> list[dict[str, Any]]:
    version = known.strip('"').partition("-")[0]
    if not version.isascii() or not version.isdigit() or len(version) > 15:
        return []
    now = timezone.now()
    return [
        {"by": one.created_by, "seconds": (now - one.committed_at).total_seconds(), "edits": one.edits}
        for one in written_since(this.access, this.cluster, int(version))
        if one.committed_at is not None
    ]


def _live(this: Page) -> dict[str, dict[str, dict[str, Any]]]:
    found: dict[str, dict[str, dict[str, Any]]] = {
        "use": dict(use_of_queues(this.cluster)[0]),
        "effective": turned_by_plans(this.cluster),
    }
    if this.access.everything:
        return found
    own = set(visible_queues_of(this.cluster, this.access).values_list("name", flat=True))
    return {name: {queue: cards for queue, cards in queues.items() if queue in own} for name, queues in found.items()}


def _digest(live: dict[str, Any]) -> str:
    return hashlib.blake2b(orjson.dumps(live, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()


def _edits(text: str | bytes) -> dict[str, Any]:
    try:
        edits = orjson.loads(text)
    except ValueError:
        edits = None
    if not isinstance(edits, dict) or not edits:
        raise DomainError("invalid", _("Nothing has been edited."))
    check_plain(edits)
    return edits


def _body(this: Page) -> bytes:
    if this.request.content_type != "application/json":
        raise DomainError("invalid", _("Edits are sent as %(kind)s.") % {"kind": "application/json"})
    return this.request.body


def _known(text: str) -> dict[str, Any]:
    """What stood in the edited cells on the page; without it the page is believed to have seen what is there."""
    return _edits(text) if text else {}


@acts_by_post
@page()
def check(this: Page) -> HttpResponse:
    need_writer(this)
    try:
        plan = services.check(cluster=this.cluster, edits=_edits(_body(this)), access=this.access)
    except DomainError as error:
        errors = error.extra.get("errors") or [{"object": "", "field": "", "code": error.code, "detail": error.message}]
        return JsonResponse({"errors": errors, "more_errors": error.extra.get("more_errors", 0), "warnings": []})
    said = {name: plan[name] for name in ("errors", "more_errors", "warnings")} | {"approval": why_due(this, plan)}
    said |= {"version": plan["tree_version"], "blocks": blocks(plan)}
    return JsonResponse(said, json_dumps_params={"default": str})


@acts_by_post
@page()
def table(this: Page) -> HttpResponse:
    """The lines of a file that is loaded, or of what is pasted, in which an empty one counts."""
    need_writer(this)
    pasted = "paste" in this.request.GET
    try:
        lines = lines_of(decoded(this.request.body), "\t" if pasted else "")
    except DomainError as error:
        return JsonResponse({"error": error.message})
    cells = [(line.number, [unguarded(cell.strip()) for cell in line.cells] or [""]) for line in lines]
    return JsonResponse({"lines": [line for line in cells if pasted or any(line[1])]})


@acts_by_post
@page(section="quota")
def review(this: Page) -> HttpResponse:
    need_writer(this)
    draft = draft_of(this, this.request.POST.get("change"))
    try:
        sent: dict[str, Any] = {
            "edits": _edits(this.request.POST.get("edits", "")),
            "known": _known(this.request.POST.get("known", "")),
            "access": this.access,
        }
        if draft is None:
            draft = services.draft(cluster=this.cluster, source="console", once=True, **sent)
        else:
            draft = services.edit_draft(change=draft, rebase=True, **sent)
    except DomainError as error:
        messages.error(this.request, error.message)
        back = redirect("console:quota_editor", this.cluster.slug)
        if draft is not None:
            back["Location"] += f"?change={draft.pk}"
        return back
    return redirect("console:change", this.cluster.slug, draft.pk)
