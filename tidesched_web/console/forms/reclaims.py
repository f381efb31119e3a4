from collections.abc import Iterable
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from tidesched_web.common.card_names import card_label
from tidesched_web.common.models import ServiceType
from tidesched_web.common.permissions import Access
from tidesched_web.console.forms.bounded import BoundedFilterForm
from tidesched_web.console.forms.filters import card_choices, some_or_any
from tidesched_web.scheduling import reclaim_selectors as sides
from tidesched_web.scheduling.models import Reclaim, ReclaimMaker, ReclaimState


class ReclaimFilter(BoundedFilterForm):
    q = forms.CharField(label=_("Gang or queue"), max_length=120)
    gainer_tenant = forms.ChoiceField(label=_("Tenant that gained"))
    loser_tenant = forms.ChoiceField(label=_("Tenant that lost"))
    loser = forms.CharField(label=_("Gang or queue that lost"), max_length=120)
    # Set by links: from the page of a queue or a tenant, and from who took back from whom.
    queue = forms.CharField(label=_("Queue"), max_length=63, widget=forms.HiddenInput)
    tenant = forms.CharField(label=_("Tenant"), max_length=63, widget=forms.HiddenInput)
    gainer_queue = forms.CharField(label=_("Queue that gained"), max_length=63, widget=forms.HiddenInput)
    loser_queue = forms.CharField(label=_("Queue that lost"), max_length=63, widget=forms.HiddenInput)
    gainer_service = forms.ChoiceField(label=_("Service type that gained"), choices=some_or_any(ServiceType.choices))
    card = forms.ChoiceField(label=_("Card type"))
    state = forms.ChoiceField(label=_("State"), choices=some_or_any(ReclaimState.choices))
    made_by = forms.ChoiceField(label=_("Made by"), choices=some_or_any(ReclaimMaker.choices))
    clock = forms.ChoiceField(
        label=_("From and to by"), choices=[("", _("the cluster's clock")), ("wall", _("the wall clock"))]
    )

    def __init__(
        self, data: QueryDict, access: Access, tenants: Iterable[tuple[str, str]], cards: Iterable[str]
    ) -> None:
        self.access = access
        self.tenants = list(tenants)
        self.cards = list(cards)
        asked = data.get("card", "")
        if asked not in self.cards:
            named = [card for card in self.cards if card_label(card).casefold() == asked.casefold()]
            if len(named) == 1:
                data = data.copy()
                data["card"] = named[0]
        super().__init__(data)

    def is_valid(self) -> bool:
        tenants = some_or_any(self.tenants)
        choices: dict[str, list[tuple[str, Any]]] = {
            "gainer_tenant": tenants,
            "loser_tenant": tenants,
            "card": card_choices(self.cards),
        }
        for name, pairs in choices.items():
            self.fields[name].choices = pairs  # type: ignore[attr-defined]
        return super().is_valid()

    def apply(self, reclaims: QuerySet[Reclaim]) -> QuerySet[Reclaim]:
        for name, narrow in {
            "q": sides.mentions,
            "gainer_tenant": sides.gained_by_tenant,
            "loser_tenant": sides.lost_by_tenant,
            "loser": sides.lost_by,
            "gainer_queue": sides.gained_by_queue,
            "loser_queue": sides.lost_by_queue,
            "gainer_service": sides.gained_by_service,
            "queue": sides.touched_queue,
            "tenant": sides.touched_tenant,
            "card": sides.moved_card,
        }.items():
            if value := self.value(name):
                reclaims = reclaims.filter(narrow(self.access, value))
        for name in ("state", "made_by"):
            if value := self.value(name):
                reclaims = reclaims.filter(**{name: value})
        clock = "wall_at" if self.value("clock") == "wall" else "at"
        if since := self.moment("from"):
            reclaims = reclaims.filter(**{f"{clock}__gte": since})
        if until := self.moment("to"):
            reclaims = reclaims.filter(**{f"{clock}__lt": until})
        return reclaims
