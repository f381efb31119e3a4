import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from tidesched_web.common.card_names import card_label
from tidesched_web.common.models import ServiceType
from tidesched_web.console.reason_words import TITLES
from tidesched_web.quota.models import DriftState, QueueState
from tidesched_web.workloads.models import GangState
from tidesched_web.workloads.selectors import that_wait

# So many filters stand in one line; the others unfold below it.
IN_LINE = 4
# The code of an error whose message names the bound.
OUT_OF_BOUNDS = "out_of_bounds"


@dataclass(frozen=True, slots=True)
class Chip:
    name: str
    label: str
    value: str
    why: str = ""


class FilterForm(forms.Form):
    """A form over the address parameters; an unknown value of a choice is left out, not an error page."""

    def __init__(self, data: Any) -> None:
        # A page may have another form with fields of the same names.
        super().__init__(data, auto_id="filter_%s")
        for field in self.fields.values():
            field.required = False
            css = "form-select" if isinstance(field.widget, forms.Select) else "form-control"
            field.widget.attrs.setdefault("class", css)
        self.is_valid()

    @property
    def in_line(self) -> list[forms.BoundField]:
        return self.visible_fields()[:IN_LINE]

    @property
    def folded(self) -> list[forms.BoundField]:
        return self.visible_fields()[IN_LINE:]

    def value(self, name: str) -> str:
        return str(self.cleaned_data.get(name) or "")

    def left_out(self) -> list[Chip]:
        return [
            Chip(name, str(self.fields[name].label or name), str(self[name].data or ""), self._why(name))
            for name in self.errors
            if name in self.fields
        ]

    def _why(self, name: str) -> str:
        return " ".join(error.messages[0] for error in self.errors[name].as_data() if error.code == OUT_OF_BOUNDS)

    def chips(self) -> list[Chip]:
        found = []
        for name, field in self.fields.items():
            if value := self.value(name):
                words = dict(flat(getattr(field, "choices", ())))
                found.append(Chip(name, str(field.label), str(words.get(value, value))))
        return found

    def asked(self) -> str:
        return urlencode({name: value for name in self.fields if (value := self.value(name))})


def flat(choices: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    for value, word in choices:
        if isinstance(word, list | tuple):
            yield from word
        else:
            yield value, word


def some_or_any(pairs: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return [("", _("any")), *((value, word) for value, word in pairs if value)]


def card_choices(cards: Iterable[str]) -> list[tuple[str, Any]]:
    return some_or_any((card, card_label(card)) for card in cards)


class CardFilterForm(FilterForm):
    def __init__(self, data: QueryDict, cards: Iterable[str]) -> None:
        self.cards = list(cards)
        asked = data.get("card", "")
        named = [card for card in self.cards if card_label(card).casefold() == asked.casefold()]
        if asked not in self.cards and len(named) == 1:
            data = data.copy()
            data["card"] = named[0]
        super().__init__(data)

    def is_valid(self) -> bool:
        self.fields["card"].choices = card_choices(self.cards)  # type: ignore[attr-defined]
        return super().is_valid()


# What a queue is besides its state: it waits although it is below its own quota; it uses more than a full flood would
# leave to it; training uses what it leaves of its quota.
STARVED, BORROWS, LENDS = "starved", "borrows", "lends"


class QueueFilter(CardFilterForm):
    q = forms.CharField(label=_("Name"), max_length=253)
    service_type = forms.ChoiceField(label=_("Service type"), choices=some_or_any(ServiceType.choices))
    state = forms.ChoiceField(
        label=_("State"),
        choices=[
            *some_or_any(QueueState.choices),
            (STARVED, _("Starved")),
            (BORROWS, _("Borrows: over its deserved share")),
            (LENDS, _("Lends")),
        ],
    )
    order = forms.ChoiceField(
        label=_("Order"),
        choices=[
            ("", _("by name")),
            ("used", _("most used quota first")),
            ("unused", _("least used quota first")),
            ("borrowed", _("borrows most first")),
            ("lent", _("lends most first")),
        ],
    )
    card = forms.ChoiceField(label=_("Card type"))

    def apply(self, queues: QuerySet) -> QuerySet:
        if text := self.value("q"):
            queues = queues.filter(Q(name__icontains=text) | Q(tenant__name__icontains=text))
        if service := self.value("service_type"):
            queues = queues.filter(service_type=service)
        if (state := self.value("state")) and state not in (STARVED, BORROWS, LENDS):
            queues = queues.filter(state=state)
        return queues


class GangFilter(CardFilterForm):
    q = forms.CharField(label=_("Name"), max_length=120)
    state = forms.ChoiceField(label=_("State"), choices=some_or_any(GangState.choices))
    reason = forms.ChoiceField(label=_("Why it waits"), choices=some_or_any(TITLES.items()))
    service_type = forms.ChoiceField(label=_("Service type"), choices=some_or_any(ServiceType.choices))
    queue = forms.CharField(label=_("Queue"), max_length=253)
    card = forms.ChoiceField(label=_("Card type"))
    needs = forms.ChoiceField(label=_("Waiting"), choices=[("", _("any")), ("yes", _("waits for something"))])
    order = forms.ChoiceField(
        label=_("Order"),
        choices=[
            ("", _("waiting, running, finished")),
            ("waiting", _("longest wait first")),
            ("newest", _("newest first")),
        ],
    )

    def apply(self, gangs: QuerySet) -> QuerySet:
        gangs = self.apply_but_reason(gangs)
        if self.value("needs"):
            gangs = that_wait(gangs)
        if reason := self.value("reason"):
            gangs = that_wait(gangs).filter(reason_code=reason)
        return gangs

    def apply_but_reason(self, gangs: QuerySet) -> QuerySet:
        if text := self.value("q"):
            gangs = gangs.filter(Q(name__icontains=text) | Q(namespace__icontains=text))
        if state := self.value("state"):
            gangs = gangs.filter(state=state)
        if service := self.value("service_type"):
            gangs = gangs.filter(service_type=service)
        if queue := self.value("queue"):
            gangs = gangs.filter(queue_name=queue)
        if card := self.value("card"):
            # A gang may take one of several card types: "H200|H100" is one key.
            gangs = gangs.annotate(asked_cards=Cast("cards", TextField())).filter(
                asked_cards__regex=rf'["|]{re.escape(card)}["|]'
            )
        return gangs


class DriftFilter(FilterForm):
    q = forms.CharField(label=_("Name"), max_length=120)
    kind = forms.ChoiceField(
        label=_("Kind"), choices=[("", _("any")), ("Queue", "Queue"), ("PriorityClass", "PriorityClass")]
    )
    state = forms.ChoiceField(
        label=_("State"), choices=some_or_any((s.value, s.label) for s in (DriftState.OPEN, DriftState.IGNORED))
    )

    def apply(self, rows: QuerySet) -> QuerySet:
        if text := self.value("q"):
            rows = rows.filter(name__icontains=text)
        for name in ("kind", "state"):
            if value := self.value(name):
                rows = rows.filter(**{name: value})
        return rows
