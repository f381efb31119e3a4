"""Which names an account may have: none that reads like one of our own actors, or like another account."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from django.utils.translation import gettext as _

from tidesched_web.common.actors import RESERVED
from tidesched_web.common.errors import DomainError
from tidesched_web.common.shown_names import hidden_in, skeleton

# Scripts whose letters people take for each other's. A name keeps to one of them.
_ALIKE = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "GEORGIAN", "LISU")

_OURS = frozenset(map(skeleton, RESERVED))


def _scripts(name: str) -> set[str]:
    words = (unicodedata.name(letter, "").partition(" ")[0] for letter in name if letter.isalpha())
    return {word for word in words if word in _ALIKE}


def refuse_misleading(name: str, others: Iterable[str]) -> None:
    """Refuse a name that would mislead the readers of the audit log.

    Raises `DomainError` ``misleading_name``.
    """
    if problem := problem_of(name, others):
        raise DomainError.for_field("/username", problem, code="misleading_name")


def problem_of(name: str, others: Iterable[str]) -> str:
    """Why a name misleads; empty where it does not."""
    if problem := hidden_in(name):
        return problem
    wanted = skeleton(name)
    if wanted in _OURS:
        return _("“%(name)s” is the name of a part of the system.") % {"name": name}
    if len(_scripts(unicodedata.normalize("NFKC", name))) > 1:
        return _("“%(name)s” mixes letters of two scripts that look alike.") % {"name": name}
    other = next((other for other in others if other != name and skeleton(other) == wanted), None)
    return "" if other is None else _("“%(name)s” looks like the account “%(other)s”.") % {"name": name, "other": other}
