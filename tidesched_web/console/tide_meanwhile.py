"""A tide plan that another person saved while its form was open: what differs, and the form rests on what is there."""

from __future__ import annotations

from tidesched_web.console import change_words
from tidesched_web.console.forms.meanwhile import Figure, Meanwhile
from tidesched_web.console.forms.tide_plan import PlanForm
from tidesched_web.quota import tide_document
from tidesched_web.quota.models import TidePlan
from tidesched_web.quota.tide_selectors import document_of

FIELDS = ("position", "time_zone", "enabled", "exceptions", "layers")


def rest_on(row: TidePlan, form: PlanForm, said: str) -> None:
    """Keep what was typed, say where it differs from ``row``, and be of its version."""
    typed, _faults = tide_document.canonical(form.document())
    there = document_of(row)
    form.meanwhile, form.version = Meanwhile(said), row.version
    for name in FIELDS:
        field = f"/{name}"
        now, mine = (change_words.figure(field, document.get(name)) for document in (there, typed))
        if now != mine:
            form.meanwhile.both.append(Figure(change_words.field_name(field), now, mine))
