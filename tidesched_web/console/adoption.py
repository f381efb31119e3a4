from collections.abc import Iterable
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.changes import adoption as adopting
from tidesched_web.changes import services as changes
from tidesched_web.changes.selectors import owner_keys, read_tree
from tidesched_web.changes.tree_document import PLATFORM, Document, key_of, kind_of, parts_of
from tidesched_web.common.errors import DomainError
from tidesched_web.console import amounts
from tidesched_web.console.methods import takes_forms
from tidesched_web.console.page import Page, page


def owners_of(keys: Iterable[str]) -> list[tuple[str, str]]:
    found = []
    for key in sorted(keys):
        kind, parts = kind_of(key), parts_of(key)
        if kind == "project":
            found.append((key, _("Inference: %(tenant)s › %(name)s") % {"tenant": parts[0], "name": parts[1]}))
        elif kind == "business-line":
            tenant = _("the platform") if parts[0] == PLATFORM else parts[0]
            found.append((key, _("Training: %(tenant)s › %(name)s") % {"tenant": tenant, "name": parts[1]}))
    return found


def _under(found: adopting.Found, owner: str) -> Document:
    parts = parts_of(owner)
    tenant = None if parts[0] == PLATFORM else parts[0]
    if kind_of(owner) == "project":
        return adopting.adopted(found, tenant=tenant, project=parts[1], business_line=None)
    return adopting.adopted(found, tenant=tenant, project=None, business_line=parts[1])


@takes_forms
@page(section="adoption")
def adoption(this: Page) -> HttpResponse:
    if not this.access.everything:
        raise PermissionDenied
    context: dict[str, Any] = {"owners": owners_of(owner_keys()), "rows": [], "reason": "", "errors": []}
    try:
        found = adopting.unmanaged(this.cluster, this.cluster.queues.values_list("name", flat=True))
    except DomainError as error:
        return this.render("adoption/adoption.html", context | {"unavailable": error.message}, status=503)
    found = [_with_cards(this, queue) for queue in found]
    chosen = _chosen(this, found, dict(context["owners"]))
    documents = read_tree(this.cluster) if chosen else {}
    context["rows"] = [
        {
            "queue": queue,
            "owner": chosen.get(queue.name, ""),
            "lines": adopting.dry_view(this.cluster, queue, _under(queue, chosen[queue.name]), documents)
            if queue.name in chosen
            else [],
        }
        for queue in found
    ]
    context["line"] = _line(len(found))
    if this.request.method == "POST":
        if not this.access.administers:
            raise PermissionDenied
        return _take_over(this, found, chosen, context)
    return this.render("adoption/adoption.html", context)


def _with_cards(this: Page, queue: adopting.Found) -> adopting.Found:
    for resource, cards in dict(queue.unclear).items():
        card = this.request.POST.get(f"card-{queue.name}-{resource}", "")
        if card in cards:
            queue = adopting.said(queue, resource, card)
    return queue


def _chosen(this: Page, found: list[adopting.Found], owners: dict[str, str]) -> dict[str, str]:
    sent = this.request.POST
    return {queue.name: owner for queue in found if (owner := sent.get(f"owner-{queue.name}", "")) in owners}


def _take_over(
    this: Page, found: list[adopting.Found], chosen: dict[str, str], context: dict[str, Any]
) -> HttpResponse:
    context["reason"] = this.request.POST.get("reason", "").strip()
    edits = {key_of("queue", queue.name): _under(queue, chosen[queue.name]) for queue in found if queue.name in chosen}
    try:
        if not edits:
            raise DomainError("invalid", _("Choose an owner for at least one queue."))
        for queue in found:
            if queue.name in chosen and queue.unclear:
                text = _("%(resource)s counts several card types: say which one the limit of %(queue)s means.")
                raise DomainError("invalid", text % {"resource": next(iter(queue.unclear)), "queue": queue.name})
        if this.request.POST.get("act") == "adopt":
            if not context["reason"]:
                raise DomainError("reason_required", _("Say why: the reason goes into the audit log."))
            change = changes.draft(
                cluster=this.cluster, edits=edits, access=this.access, reason=context["reason"], source="import"
            )
            return redirect("console:change", this.cluster.slug, change.pk)
        plan = changes.check(cluster=this.cluster, edits=edits, access=this.access)
    except DomainError as error:
        errors = error.extra.get("errors") or [{"detail": error.message}]
        return this.render("adoption/adoption.html", context | {"errors": errors}, status=400)
    return this.render("adoption/adoption.html", context | {"errors": plan["errors"], "looked": True})


def _line(count: int) -> str:
    if not count:
        return _("Every queue of the cluster is decided on here.")
    return ngettext(
        "%(n)s queue of the cluster is decided on elsewhere.",
        "%(n)s queues of the cluster are decided on elsewhere.",
        count,
    ) % {"n": amounts.number(count)}
