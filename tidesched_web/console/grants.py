from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _

from tidesched_web.console.edit_pages import delete_page, edit_page, trail_of
from tidesched_web.console.forms.catalogue import GrantFilter, GrantForm
from tidesched_web.console.forms.edit import ReasonForm
from tidesched_web.console.intent import carried
from tidesched_web.console.methods import takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.rights import manages, need_admin_of
from tidesched_web.quota.owner_selectors import has_grants, queues_managed
from tidesched_web.quota.selectors import visible_grants


@page(section="grants")
def grants(this: Page) -> HttpResponse:
    form = GrantFilter(this.request.GET)
    rows = form.apply(visible_grants(this.access).filter(cluster=this.cluster))
    part = paged(rows, ("namespace", "queue_id", "id"), this.request.GET.get("cursor", ""))
    for row in part.rows:
        row.managed = manages(this.access, row.queue.tenant_id)
    closed = has_grants(this.cluster)
    makes = this.access.administers or (closed and bool(this.access.admin_of))
    return this.render("grants/grants.html", {"page": part, "form": form, "closed": closed, "makes": makes})


def _trail(this: Page) -> list[tuple[str, str]]:
    return trail_of(this, _("Namespace grants"), "grants")


@takes_forms
@page(section="grants")
def grant_new(this: Page) -> HttpResponse:
    queues = list(queues_managed(this.access, this.cluster))
    start = {"queue": this.request.GET.get("queue", "")}
    form = GrantForm(this.request.POST or None, initial=start, queues=[queue.name for queue in queues])
    if this.request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        done = _("Namespace %(namespace)s may use queue %(queue)s now.") % values
        key = f"grant/{values['namespace']}/{values['queue']}"
        if carried(this, form, {key: {}}, new=key, done=done):
            return redirect("console:grants", this.cluster.slug)
    return edit_page(
        this,
        "grants/edit.html",
        form,
        title=_("New grant"),
        submit=_("Grant"),
        trail=_trail(this),
        missing=not queues,
        first=not has_grants(this.cluster),
    )


@takes_forms
@page(section="grants")
def grant_delete(this: Page, pk: int) -> HttpResponse:
    found = get_object_or_404(visible_grants(this.access), cluster=this.cluster, pk=pk)
    need_admin_of(this, found.queue.tenant_id)
    form = ReasonForm(this.request.POST or None)
    if this.request.method == "POST" and form.is_valid():
        names = {"namespace": found.namespace, "queue": found.queue.name}
        done = _("Namespace %(namespace)s may no longer use queue %(queue)s.") % names
        if carried(this, form, {f"grant/{found.namespace}/{found.queue.name}": None}, done=done):
            return redirect("console:grants", this.cluster.slug)
    return delete_page(
        this,
        form,
        title=_("Take the grant of %(namespace)s for %(queue)s back?")
        % {"namespace": found.namespace, "queue": found.queue.name},
        submit=_("Take it back"),
        trail=_trail(this),
        dependents=[],
        template="grants/delete.html",
    )
