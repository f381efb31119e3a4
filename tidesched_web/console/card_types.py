from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _

from tidesched_web.changes.card_aliases import named_anew
from tidesched_web.clusters.models import CardType
from tidesched_web.clusters.selectors import card_names, visible_card_types
from tidesched_web.console.edit_pages import delete_page, edit_page, trail_of
from tidesched_web.console.forms.catalogue import CardAliasesForm, CardTypeEditForm, CardTypeFilter, CardTypeForm
from tidesched_web.console.forms.edit import ReasonForm
from tidesched_web.console.intent import carried
from tidesched_web.console.methods import takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.rights import need_administrator
from tidesched_web.quota.dependent_selectors import dependents_of
from tidesched_web.quota.selectors import with_promised


@page(section="card_types")
def card_types(this: Page) -> HttpResponse:
    form = CardTypeFilter(this.request.GET)
    rows = form.apply(with_promised(visible_card_types(this.access).filter(cluster=this.cluster), this.access))
    part = paged(rows, ("name", "id"), this.request.GET.get("cursor", ""))
    return this.render("card_types/card_types.html", {"page": part, "form": form})


def _trail(this: Page) -> list[tuple[str, str]]:
    return trail_of(this, _("Card types"), "card_types")


def _card(this: Page, pk: int) -> CardType:
    found = get_object_or_404(visible_card_types(this.access), cluster=this.cluster, pk=pk)
    need_administrator(this)
    return found


@takes_forms
@page(section="card_types")
def card_type_new(this: Page) -> HttpResponse:
    need_administrator(this)
    form = CardTypeForm(this.request.POST or None, parents=card_names(this.cluster))
    if this.request.method == "POST" and form.is_valid():
        name = form.cleaned_data["name"]
        document = {field: value for field, value in form.document().items() if value is not None}
        done = _("Card type %(name)s is declared.") % {"name": name}
        reason = form.cleaned_data["reason"] or _("Declared ahead.")
        key = f"card-type/{name}"
        if carried(this, form, {key: document}, new=key, done=done, reason=reason):
            return redirect("console:card_types", this.cluster.slug)
    return edit_page(
        this, "card_types/edit.html", form, title=_("Declare a card type"), submit=_("Declare it"), trail=_trail(this)
    )


@takes_forms
@page(section="card_types")
def card_type_edit(this: Page, pk: int) -> HttpResponse:
    found = _card(this, pk)
    form = _edit_form(this, found)
    if this.request.method == "POST" and form.is_valid():
        reason = form.cleaned_data["reason"] or _("Corrected.")
        done = _("Card type %(name)s is saved.") % {"name": found.name}
        edit, key = named_anew(found, form.document()), f"card-type/{found.name}"
        if edit is None or carried(this, form, {key: edit}, key=key, reason=reason, done=done):
            return redirect("console:card_types", this.cluster.slug)
    title = _("Edit %(name)s") % {"name": found.name}
    return edit_page(this, "card_types/edit.html", form, title=title, submit=_("Save"), trail=_trail(this))


def _edit_form(this: Page, card: CardType) -> CardAliasesForm:
    start = {
        "resource": card.resource,
        "kind": card.kind,
        "parent": card.parent.name if card.parent else "",
        "aliases": ", ".join(card.aliases),
        "version": card.version,
    }
    if card.last_seen_at is not None:
        return CardAliasesForm(this.request.POST or None, initial=start)
    parents = [name for name in card_names(this.cluster) if name != card.name]
    return CardTypeEditForm(this.request.POST or None, initial=start, parents=parents)


@takes_forms
@page(section="card_types")
def card_type_delete(this: Page, pk: int) -> HttpResponse:
    found = _card(this, pk)
    protected = [_("Nodes carry it: it goes when they are gone.")] if found.discovered or found.hardware else []
    form = ReasonForm(this.request.POST or None, initial={"version": found.version})
    key = f"card-type/{found.name}"
    if form.is_valid() and not protected:
        done = _("Card type %(name)s is deleted.") % {"name": found.name}
        if carried(this, form, {key: None}, key=key, done=done):
            return redirect("console:card_types", this.cluster.slug)
    return delete_page(
        this,
        form,
        title=_("Delete card type %(name)s?") % {"name": found.name},
        submit=_("Delete the card type"),
        trail=_trail(this),
        dependents=dependents_of(found),
        protected=protected,
    )
