from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _

from tidesched_web.console.edit_pages import delete_page, edit_page, trail_of
from tidesched_web.console.forms.catalogue import NameFilter, PriorityClassEditForm, PriorityClassForm, ReplaceClassForm
from tidesched_web.console.forms.edit import ReasonForm
from tidesched_web.console.intent import carried
from tidesched_web.console.methods import acts_by_post, takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.rights import need_administrator
from tidesched_web.quota.models import DEFAULT_PRIORITY_CLASSES, PriorityClass
from tidesched_web.quota.selectors import visible_priority_classes


@page(section="priority_classes")
def priority_classes(this: Page) -> HttpResponse:
    form = NameFilter(this.request.GET)
    rows = visible_priority_classes(this.access).filter(cluster=this.cluster)
    missing = sorted(set(DEFAULT_PRIORITY_CLASSES).difference(rows.values_list("name", flat=True)))
    part = paged(form.apply(rows), ("-value", "name", "id"), this.request.GET.get("cursor", ""))
    context = {"page": part, "form": form, "missing": missing}
    return this.render("priority_classes/priority_classes.html", context)


def _trail(this: Page) -> list[tuple[str, str]]:
    return trail_of(this, _("Priority classes"), "priority_classes")


def _class(this: Page, name: str) -> PriorityClass:
    found = get_object_or_404(visible_priority_classes(this.access), cluster=this.cluster, name=name)
    need_administrator(this)
    return found


@acts_by_post
@page(section="priority_classes")
def priority_class_defaults(this: Page) -> HttpResponse:
    need_administrator(this)
    had = set(visible_priority_classes(this.access).filter(cluster=this.cluster).values_list("name", flat=True))
    edits = {
        f"priority-class/{name}": {"value": value}
        for name, value in DEFAULT_PRIORITY_CLASSES.items()
        if name not in had
    }
    form = ReasonForm({"reason": _("The four default levels.")})
    if form.is_valid() and edits:
        carried(this, form, edits, done=_("The missing default classes are made and go to the cluster."))
    return redirect("console:priority_classes", this.cluster.slug)


@takes_forms
@page(section="priority_classes")
def priority_class_new(this: Page) -> HttpResponse:
    need_administrator(this)
    form = PriorityClassForm(this.request.POST or None)
    if this.request.method == "POST" and form.is_valid():
        name = form.cleaned_data["name"]
        document = {field: value for field, value in form.document().items() if value is not None}
        done = _("Priority class %(name)s is made and goes to the cluster.") % {"name": name}
        key = f"priority-class/{name}"
        if carried(this, form, {key: document}, new=key, done=done):
            return redirect("console:priority_classes", this.cluster.slug)
    return edit_page(
        this,
        "priority_classes/edit.html",
        form,
        title=_("New priority class"),
        submit=_("Make the class"),
        trail=_trail(this),
    )


@takes_forms
@page(section="priority_classes")
def priority_class_edit(this: Page, name: str) -> HttpResponse:
    found = _class(this, name)
    start = {"description": found.description, "global_default": found.global_default, "version": found.version}
    form = PriorityClassEditForm(this.request.POST or None, initial=start)
    key = f"priority-class/{found.name}"
    if form.is_valid() and carried(this, form, {key: form.document()}, key=key):
        return redirect("console:priority_classes", this.cluster.slug)
    title = _("Edit %(name)s") % {"name": found.name}
    return edit_page(
        this, "priority_classes/edit.html", form, title=title, submit=_("Save"), trail=_trail(this), live=found
    )


@takes_forms
@page(section="priority_classes")
def priority_class_replace(this: Page, name: str) -> HttpResponse:
    found = _class(this, name)
    start = {"value": found.value, "preemption_policy": found.preemption_policy, "version": found.version}
    form = ReplaceClassForm(this.request.POST or None, initial=start)
    key = f"priority-class/{found.name}"
    if this.request.method == "POST" and form.is_valid():
        done = _("Priority class %(name)s is being replaced.") % {"name": found.name}
        if carried(this, form, {key: form.document()}, key=key, done=done):
            return redirect("console:priority_classes", this.cluster.slug)
    return edit_page(
        this,
        "priority_classes/replace.html",
        form,
        title=_("Replace %(name)s") % {"name": found.name},
        submit=_("Replace the class"),
        trail=_trail(this),
        live=found,
    )


@takes_forms
@page(section="priority_classes")
def priority_class_delete(this: Page, name: str) -> HttpResponse:
    found = _class(this, name)
    form = ReasonForm(this.request.POST or None, initial={"version": found.version})
    key = f"priority-class/{found.name}"
    if this.request.method == "POST" and form.is_valid():
        done = _("Priority class %(name)s is deleted.") % {"name": found.name}
        if carried(this, form, {key: None}, key=key, done=done):
            return redirect("console:priority_classes", this.cluster.slug)
    return delete_page(
        this,
        form,
        title=_("Delete priority class %(name)s?") % {"name": found.name},
        submit=_("Delete the class"),
        trail=_trail(this),
        dependents=[],
        template="priority_classes/delete.html",
    )
