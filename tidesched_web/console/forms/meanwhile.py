"""A form whose object another person changed: what is there now goes into it, what was typed stays."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.functional import Promise
from django.utils.translation import gettext as _

# Said anew with each act, and no figure of the object; a policy's page shows what differs in its text line by line.
ASIDE = frozenset({"reason", "confirm", "accept", "act", "version", "text"})


@dataclass(frozen=True)
class Figure:
    label: str
    there: str
    typed: str


@dataclass(frozen=True)
class Meanwhile:
    """``both`` changed by both people; ``known``: what was sent says of which version it is."""

    said: str
    known: bool = True
    taken: list[Figure] = field(default_factory=list)
    both: list[Figure] = field(default_factory=list)


def figures_of(form: forms.Form) -> list[forms.BoundField]:
    return [bound for bound in form.visible_fields() if bound.name not in ASIDE]


def with_opened(form: forms.Form) -> None:
    if form.initial.get("version") is not None:
        for bound in figures_of(form):
            bound.field.show_hidden_initial = True


def take_over(form: forms.Form, said: str, *, known: bool = True) -> Meanwhile:
    data: dict[str, Any] = {name: form.data[name] for name in form.data}
    found = Meanwhile(said, known)
    with_opened(form)
    changed = set(form.changed_data)
    for bound in figures_of(form):
        there = bound.initial
        if _differs(bound, there):
            figure = Figure(str(bound.field.label), _shown(bound, there), _shown(bound, bound.data))
            # What was sent as the page showed it is no edit.
            if bound.name in changed:
                found.both.append(figure)
            else:
                found.taken.append(figure)
                _put(data, bound.html_name, there)
        data[bound.html_initial_name] = _text(there)
    data[form.add_prefix("version")] = str(form.initial["version"])
    form.data = data
    return found


def _differs(bound: forms.BoundField, there: Any) -> bool:
    """Whether what was sent is another figure than what is there; a browser sends line ends of its own."""
    sent = bound.data
    try:
        known = bound.field.to_python(_text(there))
    except ValidationError:
        known = there
    return bound.field.has_changed(known, sent.replace("\r\n", "\n") if isinstance(sent, str) else sent)


def _put(data: dict[str, Any], name: str, there: Any) -> None:
    if isinstance(there, bool):
        data.pop(name, None)
        data |= {name: "on"} if there else {}
    else:
        data[name] = _text(there)


def _text(there: Any) -> str:
    return "" if there is None else str(there)


def _shown(bound: forms.BoundField, value: Any) -> str:
    if isinstance(bound.field, forms.BooleanField):
        return _("yes") if bound.field.to_python(value) else _("no")
    choices = getattr(bound.field, "choices", ())
    words: Mapping[str, str | Promise] = {str(key): word for key, word in choices if not isinstance(word, list | tuple)}
    return str(words.get(_text(value), _text(value))) or "–"
