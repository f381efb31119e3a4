"""Clusters, and the switch that stops all sending to one."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from tidesched_web.clusters import services
from tidesched_web.common.errors import DomainError
from tidesched_web.console.forms.pause import PAUSE, RESUME, PauseForm
from tidesched_web.console.methods import takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.scheduling.selectors import first_unsent


@page(section="clusters", topics="sessions clusters alerts")
def clusters(this: Page) -> HttpResponse:
    return this.render("clusters/clusters.html")


@takes_forms
@page(section="overview")
def pause(this: Page) -> HttpResponse:
    if not this.access.administers:
        raise PermissionDenied
    cluster = this.cluster
    present = {"act": RESUME if cluster.paused else PAUSE}
    form = PauseForm(present | this.request.POST.dict() if this.request.method == "POST" else None, initial=present)
    if form.is_valid():
        act = services.resume if form.cleaned_data["act"] == RESUME else services.pause
        try:
            act(cluster=cluster, actor=this.access.actor, reason=form.cleaned_data["reason"])
        except DomainError as error:
            faster = _(
                "It was changed meanwhile: this page shows the present state. Your reason is kept; decide again."
            )
            form.add_error(None, f"{error.message} {faster}" if error.code == "conflict" else error.message)
            form.data = {**form.data, "act": RESUME if cluster.paused else PAUSE}  # what the page asks about now
        else:
            text = _("%(cluster)s is paused.") if cluster.paused else _("%(cluster)s goes on.")
            messages.success(this.request, text % {"cluster": cluster.name})
            return redirect("console:cluster_overview", cluster.slug)
    if "act" in form.errors:
        form.data = {**form.data, **present}  # what is sent next is what the page asks about
    first = first_unsent(cluster, cluster.session_id) if cluster.paused else None  # type: ignore[attr-defined]
    return this.render("clusters/pause.html", {"form": form, "first_unsent": first}, status=400 if form.errors else 200)
