from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.accounts.models import BusinessLine, Project
from tidesched_web.clusters.selectors import card_names
from tidesched_web.console import amounts
from tidesched_web.console.edit_pages import delete_page, edit_page, trail_of
from tidesched_web.console.forms.edit import ReasonForm
from tidesched_web.console.forms.queue import QueueEditForm, QueueForm
from tidesched_web.console.intent import carried, drafted
from tidesched_web.console.methods import takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.console.rights import manages, need_admin_of, need_writer, writes
from tidesched_web.quota.dependent_selectors import dependents_of
from tidesched_web.quota.models import Queue, QueueState
from tidesched_web.quota.owner_selectors import lines_managed, projects_managed, room_of_owners
from tidesched_web.quota.selectors import card_quota_of
from tidesched_web.scheduling.selectors import queues_with_usage

# The buttons that make or save a queue without a look at what it would do.
MAKE, SAVE = "make", "save"
MIB = 2**20


def _queue(this: Page, name: str) -> Queue:
    found = get_object_or_404(queues_with_usage(this.access, this.cluster), name=name)
    need_admin_of(this, found.tenant_id)
    return found


def _trail(this: Page, found: Queue | None = None) -> list[tuple[str, str]]:
    trail = trail_of(this, _("Queues"), "queues")
    if found is not None:
        trail.append((found.name, reverse("console:queue", args=[this.cluster.slug, found.name])))
    return trail


@takes_forms
@page(section="queues")
def queue_new(this: Page) -> HttpResponse:
    need_writer(this)
    projects, lines = list(projects_managed(this.access)), list(lines_managed(this.access))
    asked = this.request.GET.get("owner", "")
    start: dict[str, Any] = {
        "service_type": this.request.GET.get("service_type", "inference"),
        "owner": f"project-{asked}" if asked.isdigit() else "",
    }
    by_project, by_tenant = room_of_owners(this.cluster, this.access)

    def room(owner: Project | BusinessLine) -> dict[str, int]:
        if isinstance(owner, Project):
            return by_project.get(owner.pk, {})
        return by_tenant.get(owner.tenant_id, {})

    form = QueueForm(
        this.request.POST or None,
        initial=start,
        projects=projects,
        lines=lines,
        cards=card_names(this.cluster),
        decides=this.access.administers,
        room=room,
    )
    done = _("Queue %(name)s is made and goes to the cluster.")
    if this.request.method == "POST" and form.is_valid():
        name = form.cleaned_data["name"]
        key = f"queue/{name}"
        if this.request.POST.get("act") != MAKE:
            if draft := drafted(this, form, {key: form.document()}, new=key):
                return redirect("console:change", this.cluster.slug, draft.pk)
        elif change := carried(this, form, {key: form.document()}, new=key, done=done % {"name": name}):
            there = change.pk is None or change.state != "waiting"
            return redirect("console:queue", this.cluster.slug, name) if there else redirect(_trail(this)[-1][1])
    return edit_page(
        this,
        "queues/edit.html",
        form,
        title=_("New queue"),
        submit=_("Review the new queue"),
        at_once=(MAKE, _("Make it at once")),
        trail=_trail(this),
        missing=not projects and not lines,
        grid=writes(this.access),
    )


@takes_forms
@page(section="queues")
def queue_edit(this: Page, name: str) -> HttpResponse:
    found = _queue(this, name)
    start = {
        "version": found.version,
        "weight": found.weight,
        "priority": found.priority,
        "reclaimable": found.reclaimable,
        "cores": None if found.cpu_milli is None else f"{found.cpu_milli / 1000:g}",
        "memory": None if found.memory_mib is None else f"{found.memory_mib / 1024:g}",
    }
    in_use = {row["card"]: row["allocated"] / 1000 for row in found.usage_rows}  # type: ignore[attr-defined]
    form = QueueEditForm(
        this.request.POST or None,
        initial=start,
        cards=card_names(this.cluster),
        quota=card_quota_of(found),
        in_use=in_use,
    )
    key = f"queue/{found.name}"
    if this.request.method == "POST" and form.is_valid():
        if this.request.POST.get("act") == SAVE:
            if carried(this, form, {key: form.document()}, key=key):
                return redirect("console:queue", this.cluster.slug, found.name)
        elif not (patch := _differing(found, form.document())):
            messages.info(this.request, _("Nothing was changed: it is so already."))
            return redirect("console:queue", this.cluster.slug, found.name)
        elif draft := drafted(this, form, {key: patch}, key=key):
            return redirect("console:change", this.cluster.slug, draft.pk)
    title = _("Edit %(name)s") % {"name": found.name}
    return edit_page(
        this,
        "queues/edit.html",
        form,
        title=title,
        submit=_("Review the changes"),
        at_once=(SAVE, _("Save at once")),
        trail=_trail(this, found),
        queue=found,
        grid=True,
    )


def _differing(found: Queue, document: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a patch that makes something else of the queue: a draft holds no figure that its author left."""
    now = {
        "weight": found.weight,
        "priority": found.priority,
        "reclaimable": found.reclaimable,
        "cpu_milli": found.cpu_milli,
        "memory_bytes": None if found.memory_mib is None else found.memory_mib * MIB,
    }
    patch = {name: value for name, value in document.items() if name in now and value != now[name]}
    quota = card_quota_of(found)
    cards = {name: count for name, count in document["card_quota"].items() if (count or 0) != quota.get(name, 0)}
    return patch | ({"card_quota": cards} if cards else {})


def living(found: Queue) -> int:
    counts: Any = found  # annotated
    waiting, running, both = counts.waiting_gangs, counts.running_gangs, counts.partly_running
    return int(waiting + running - both)


def why_not_deleted(found: Queue) -> list[str]:
    why = []
    if found.name == "default":
        why.append(_("Every cluster of Volcano has a queue “default”."))
    if found.state != QueueState.CLOSED:
        why.append(_("Close it first: then it takes no new gangs and drains."))
    if alive := living(found):
        text = ngettext("%(n)s gang is still in it.", "%(n)s gangs are still in it.", alive)
        why.append(text % {"n": amounts.number(alive)})
    return why


@takes_forms
@page(section="queues")
def queue_close(this: Page, name: str) -> HttpResponse:
    found = _queue(this, name)
    closes = found.state == QueueState.OPEN
    form = ReasonForm(this.request.POST or None, initial={"version": found.version})
    key = f"queue/{found.name}"
    if this.request.method == "POST" and form.is_valid():
        state = QueueState.CLOSED if closes else QueueState.OPEN
        done = _("The queue is closing: it drains now.") if closes else _("The queue is open again.")
        if carried(this, form, {key: {"state": state.value}}, key=key, done=done):
            return redirect("console:queue", this.cluster.slug, found.name)
    title = _("Close queue %(name)s?") if closes else _("Open queue %(name)s again?")
    return edit_page(
        this,
        "queues/close.html",
        form,
        title=title % {"name": found.name},
        submit=_("Close the queue") if closes else _("Open the queue"),
        trail=_trail(this, found),
        closes=closes,
        alive=living(found),
    )


@takes_forms
@page(section="queues")
def queue_delete(this: Page, name: str) -> HttpResponse:
    found = _queue(this, name)
    form = ReasonForm(this.request.POST or None, initial={"version": found.version})
    key = f"queue/{found.name}"
    if this.request.method == "POST" and form.is_valid():
        done = _("Queue %(name)s is deleted.") % {"name": found.name}
        if carried(this, form, {key: None}, key=key, done=done):
            return redirect("console:queues", this.cluster.slug)
    return delete_page(
        this,
        form,
        title=_("Delete queue %(name)s?") % {"name": found.name},
        submit=_("Delete the queue"),
        trail=_trail(this, found),
        dependents=dependents_of(found),
        protected=why_not_deleted(found),
    )


def acts_on(this: Page, found: Queue) -> dict[str, Any]:
    return {
        "manages": manages(this.access, found.tenant_id),
        "stays": " ".join(why_not_deleted(found)),
        "alive": living(found),
    }
