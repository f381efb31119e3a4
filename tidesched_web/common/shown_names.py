import unicodedata
from collections.abc import Iterator
from typing import Final

from django.utils.translation import gettext as _

from tidesched_web.common.errors import DomainError

# Control and format signs (among them those that turn the direction of text, and those without width), lone
# surrogates, private letters, separators of lines and paragraphs.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def hidden_signs(text: str) -> Iterator[tuple[int, str]]:
    """Signs of a text that a reader does not see, each with its place; O(length)."""
    if text.isascii() and text.isprintable():
        return
    yield from ((place, sign) for place, sign in enumerate(text) if unicodedata.category(sign) in _HIDDEN)


def hidden_in(name: str) -> str:
    for place, sign in hidden_signs(name):
        text = _("A name holds only signs that are seen: there is %(sign)s at place %(place)d.")
        return text % {"sign": f"U+{ord(sign):04X}", "place": place + 1}
    return ""


def require_seen(name: str, pointer: str = "/name") -> None:
    if problem := hidden_in(name):
        raise DomainError.for_field(pointer, problem, code="misleading_name")
