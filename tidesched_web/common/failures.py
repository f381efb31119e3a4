"""The text of a foreign exception names statements, addresses and files: readers get a reference."""

import logging
import re
import secrets

from django.db import DatabaseError
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

_log = logging.getLogger(__name__)
_OURS = ("tidesched_web.", "scheduler_core.")
_DATABASE, _SYSTEM, _MEMORY, _INTERNAL = (
    "The database refused or lost a statement",
    "The network or a file failed",
    "There was too little memory",
    "An internal error",
)
_WORDS: dict[str, Promise] = {
    _DATABASE: gettext_lazy("The database refused or lost a statement"),
    _SYSTEM: gettext_lazy("The network or a file failed"),
    _MEMORY: gettext_lazy("There was too little memory"),
    _INTERNAL: gettext_lazy("An internal error"),
}
# What a job says that the limit of its worker ended.
OUT_OF_TIME = gettext_noop(
    "It took longer than a worker may spend on it, twice. Ask again when the machine has less to do, or ask about less."
)
_DESCRIBED = re.compile(rf"({'|'.join(_WORDS)}) \(reference ([0-9a-f]{{8}})\)")


def described(error: BaseException) -> str:
    """The sentence that is stored and shown; the log has all of the exception under the reference in it."""
    if type(error).__module__.startswith(_OURS):
        return str(error)
    reference = secrets.token_hex(4)
    _log.error("reference %s: %s", reference, type(error).__name__, exc_info=error)
    return f"{_kind(error)} (reference {reference})"


def _kind(error: BaseException) -> str:
    if isinstance(error, DatabaseError):
        return _DATABASE
    if isinstance(error, MemoryError):
        return _MEMORY
    return _SYSTEM if isinstance(error, OSError) else _INTERNAL


def in_words(text: str) -> str:
    if text == OUT_OF_TIME:
        return _(OUT_OF_TIME)
    return _DESCRIBED.sub(
        lambda found: _("%(what)s (reference %(reference)s)") % {"what": _WORDS[found[1]], "reference": found[2]}, text
    )
