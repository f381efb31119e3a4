import datetime as dt
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.accounts.selectors import visible_tenants
from tidesched_web.audit import check_services, rights, segment_services, selectors
from tidesched_web.audit.canonical import digest
from tidesched_web.audit.models import AuditEntry
from tidesched_web.audit.sight import clusters_named, content_hidden, hide
from tidesched_web.common.errors import DomainError
from tidesched_web.console import amounts, differences
from tidesched_web.console.forms.audit import AuditFilter, DropForm, SealForm
from tidesched_web.console.methods import acts_by_post, takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.receipt_view import ReceiptView, receipt_view
from tidesched_web.quota.tide_selectors import visible_queue_names

# An entry shows at most so many others of its request.
OF_REQUEST = 50
HEADS_SHOWN = 20


def _named(this: Page, entries: Sequence[AuditEntry], form: AuditFilter) -> None:
    clusters, tenants = dict(form.clusters), dict(form.tenants)
    own_queues = visible_queue_names(this.access, clusters_named(entries))
    for entry in entries:
        entry.hidden = content_hidden(entry, this.access, own_queues)  # type: ignore[attr-defined]  # for the template
        hide(entry, this.access, own_queues)
        entry.cluster_name = clusters.get(str(entry.cluster_id), "")  # type: ignore[attr-defined]
        entry.tenant_names = [  # type: ignore[attr-defined]
            tenants[str(pk)] for pk in entry.tenant_ids if str(pk) in tenants
        ]


@page(section="audit")
def audit(this: Page) -> HttpResponse:
    form = AuditFilter(this.request.GET, this.clusters, visible_tenants(this.access))
    found = paged(form.apply(selectors.visible_entries(this.access)), ("-id",), this.request.GET.get("cursor", ""))
    _named(this, found.rows, form)
    query = urlencode(form.rest_parameters())
    return this.render(
        "audit/audit.html",
        {
            "page": found,
            "form": form,
            "line": _line(this),
            "export": f"{reverse('api:audit-list')}?{query}{'&' if query else ''}",
        },
    )


def _line(this: Page) -> str:
    if not this.access.everything:
        return _("What was done to your tenants, and by whom.")
    broken = [check for check in selectors.chain_checks().values() if check.broken_seq is not None]
    if not broken:
        return _("Every change of intent and every eviction, by whom and why.")
    return ngettext("%(n)s chain of the log is broken.", "%(n)s chains of the log are broken.", len(broken)) % {
        "n": amounts.number(len(broken))
    }


def _readable(payload: bytes) -> str:
    try:
        return json.dumps(json.loads(payload), indent=2, ensure_ascii=False)
    except ValueError:
        return payload.decode(errors="replace")


@page(section="audit")
def entry(this: Page, pk: int) -> HttpResponse:
    entries = selectors.visible_entries(this.access)
    row = get_object_or_404(entries, pk=pk)
    form = AuditFilter(this.request.GET, this.clusters, visible_tenants(this.access))
    holds = digest(bytes(row.payload)) == row.hash
    companions: list[AuditEntry] = []
    if row.request_id:
        companions = list(entries.filter(request_id=row.request_id).order_by("id")[: OF_REQUEST + 1])
    earlier, later = selectors.neighbours(form.apply(entries), row)
    _named(this, [*companions, row], form)
    return this.render(
        "audit/entry.html",
        {
            "entry": row,
            "lines": differences.lines(row.before, row.after),
            "hidden": row.hidden,  # type: ignore[attr-defined]  # set as the rows were read
            "holds": holds,
            "payload": bytes(row.payload).decode() if this.access.everything else "",
            "readable": _readable(bytes(row.payload)) if this.access.everything else "",
            "companions": companions[:OF_REQUEST] if len(companions) > 1 else [],
            "more": len(companions) > OF_REQUEST,
            "earlier": earlier,
            "later": later,
            "object_url": _object_url(this, row),
            "entry_cluster": next((cluster for cluster in this.clusters if cluster.pk == row.cluster_id), None),
            "receipt": _receipt(row),
            "entry_redacted": not this.access.everything,
        },
    )


def _receipt(row: AuditEntry) -> ReceiptView | None:
    """What the bytes of a reclaim's entry say of quota, use and costs; none where the reader may not know them."""
    if row.object_type != "reclaim" or not row.after or "queues" not in row.after:
        return None
    needed = (row.after.get("needed") or {}).get("cards")
    return receipt_view(row.after, row.after["victims"], queue=row.after.get("queue", ""), needed=needed)


def _object_url(this: Page, row: AuditEntry) -> str:
    match row.object_type:
        case "tenant" if (
            this.access.sees_all_of(row.tenant_ids)
            and visible_tenants(this.access).filter(slug=row.object_label).exists()
        ):
            return _page("console:tenant", row.object_label)
        case "user" if this.access.administers:
            return _page("console:user", row.object_id)
    cluster = next((cluster for cluster in this.clusters if cluster.pk == row.cluster_id), None)
    if cluster is None:
        return ""
    match row.object_type:
        case "queue":
            return _page("console:queue", cluster.slug, row.object_label)
        case "reclaim":
            return _page("console:reclaim", cluster.slug, row.object_id)
        case "quota_change":
            return _page("console:change", cluster.slug, row.object_id)
        case "tide_plan":
            return _page("console:tide_plan", cluster.slug, row.object_label)
    return ""


def _page(name: str, *keys: str) -> str:
    return reverse(name, args=keys) if all(keys) else ""


def _auditors(this: Page) -> None:
    if not this.access.everything:
        raise PermissionDenied


@page(section="audit")
def integrity(this: Page) -> HttpResponse:
    _auditors(this)
    return _integrity(this, SealForm())


def _integrity(this: Page, form: SealForm, *, status: int = 200) -> HttpResponse:
    chains = selectors.chains_now()
    names = {f"cluster:{cluster.pk}": cluster.name for cluster in this.clusters}
    for chain in chains:
        chain["name"] = names.get(chain["chain"], _("Platform") if chain["chain"] == "platform" else chain["chain"])
        chain["state"] = _chain_state(chain["check"])
        chain["unsigned"] = chain["head"].seq - max(chain["anchor"], chain["signed"].seq if chain["signed"] else 0)
    return this.render(
        "audit/integrity.html",
        {
            "chains": chains,
            "line": _integrity_line(chains),
            "keys": list(selectors.signing_keys()),
            "heads": list(selectors.signed_heads()[:HEADS_SHOWN]),
            "segments": list(selectors.segments()[:100]),
            "names": names,
            "form": form,
            "role_may_change_entries": rights.role_may_change_entries(),
        },
        status=status,
    )


def _chain_state(check: Any) -> str:
    if check is None or check.finished_at is None:
        return "unknown"
    return "intact" if check.broken_seq is None else "broken"


def _integrity_line(chains: list[dict[str, Any]]) -> str:
    broken = [chain for chain in chains if chain["state"] == "broken"]
    if broken:
        first = broken[0]["check"]
        return _("%(chain)s is broken at entry %(seq)s: %(problem)s.") % {
            "chain": broken[0]["name"],
            "seq": amounts.number(first.broken_seq),
            "problem": first.problem,
        }
    unknown = sum(chain["state"] == "unknown" for chain in chains)
    if unknown:
        return ngettext(
            "%(n)s chain has not been verified yet.", "%(n)s chains have not been verified yet.", unknown
        ) % {"n": amounts.number(unknown)}
    sums = {
        "checked": sum(chain["check"].checked for chain in chains),
        "kept": sum(chain["kept"] for chain in chains),
        "unsigned": sum(chain["unsigned"] for chain in chains),
    }
    return _(
        "All chains hold. Verified: %(checked)s of %(kept)s entries. Newest entries, not signed yet: %(unsigned)s."
    ) % {name: amounts.number(count) for name, count in sums.items()}


@acts_by_post
@page(section="audit")
def verify(this: Page) -> HttpResponse:
    _auditors(this)
    asked = check_services.ask(actor=this.access.actor)
    broken = [report for report in asked.done if not report.intact]
    if broken:
        messages.error(this.request, _("A chain is broken: see below which entry is the first."))
    elif asked.waiting:
        messages.info(this.request, _("Long chains are verified in the background; the result appears here."))
    else:
        messages.success(this.request, _("Every chain holds."))
    return redirect("console:audit_integrity")


@acts_by_post
@page(section="audit")
def seal(this: Page) -> HttpResponse:
    _auditors(this)
    if not this.access.administers:
        raise PermissionDenied
    form = SealForm(this.request.POST)
    if not form.is_valid():
        return _integrity(this, form, status=400)
    before = timezone.now() - dt.timedelta(days=form.cleaned_data["days"])
    try:
        made = segment_services.seal(before=before, actor=this.access.actor, reason=form.cleaned_data["reason"])
    except DomainError as error:
        form.add_error(None, error.message)
        return _integrity(this, form, status=409)
    if made:
        said = ngettext("%(n)s segment is sealed.", "%(n)s segments are sealed.", len(made))
        messages.success(this.request, said % {"n": amounts.number(len(made))})
    else:
        messages.info(this.request, _("No entry is that old and not in a segment yet."))
    return redirect("console:audit_integrity")


@takes_forms
@page(section="audit")
def drop(this: Page, pk: int) -> HttpResponse:
    _auditors(this)
    segment = get_object_or_404(selectors.segments(), pk=pk)
    if not this.access.administers:
        raise PermissionDenied
    form = DropForm(this.request.POST or None)
    if this.request.method == "POST" and form.is_valid():
        try:
            segment_services.drop(segment=segment, actor=this.access.actor, reason=form.cleaned_data["reason"])
        except DomainError as error:
            form.add_error(None, error.message)
        else:
            messages.success(this.request, _("The segment is dropped; the chain starts at its signed end."))
            return redirect("console:audit_integrity")
    return this.render("audit/drop.html", {"segment": segment, "form": form}, status=400 if form.errors else 200)
