"""Names that people read and decide by: no signs that cannot be seen, and none that a reader takes for another one."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from django.utils.translation import gettext as _

from tidesched_web.common.errors import DomainError

# Control and format signs (among them those that turn the direction of text, and those without width), lone
# surrogates, private letters, separators of lines and paragraphs.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
# Letters and marks that are drawn as nothing.
_BLANK: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2065\u2800\u3164\uffa0\U00016fe4"
    + "".join(map(chr, (*range(0xFFF0, 0xFFF9), 0xE0000, *range(0xE0002, 0xE0020), *range(0xE0080, 0xE0100))))
)
# What chooses between shapes of the sign before it, and is drawn as nothing behind any that has one shape.
_SELECTORS: Final = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
# Letters of Cyrillic, Greek and Armenian that look like a Latin one, and those of Latin that look like each other: a
# capital i is drawn as a small l. Then small capitals, and letters of Lisu, Cherokee and Coptic.
_LATIN: Final = str.maketrans(
    "авеікмнорстухѕјԁѡԛһґаɑοαβεικνρτυχϲϳѵӏօոսհցյıi"
    "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢꓐꓑꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴᎪ"
    "ᏴᏟᎠᎬᏀᎻᎫᏦᏞᎷᏢᏚᎢᏔᏃᏙᏒᎥɡ℮ⲟⲣⲥ",
    "abelkmhopctyxsjdwqhraaoabelknptuxcjvlonuhgjll"
    "abcdefghljklmnoprstuvwyzbpdtgkjczfmnlsrvhwxyaeloua"
    "bcdeghjklmpstwzvrlgeopc",
)


def hidden_signs(text: str) -> Iterator[tuple[int, str]]:
    """Signs of a text that a reader does not see, each with its place; O(length)."""
    if text.isascii() and text.isprintable():
        return
    for place, sign in enumerate(text):
        if sign in _SELECTORS:
            if not (place and _has_shapes(text[place - 1])):
                yield place, sign
        elif sign in _BLANK or unicodedata.category(sign) in _HIDDEN:
            yield place, sign


def _has_shapes(sign: str) -> bool:
    """Whether a selector behind this sign may be seen: Chinese characters and symbols have several shapes."""
    return unicodedata.category(sign) in ("So", "Sm", "Po") or unicodedata.name(sign, "").startswith("CJK ")


def code_point(sign: str) -> str:
    """A sign by its number, as in ``U+202E``."""
    return f"U+{ord(sign):04X}"


def skeleton(name: str) -> str:
    """What a reader takes the name for: compatibility forms, case, gaps and look-alike letters made the same."""
    plain = "".join(sign for sign in name if sign not in _SELECTORS)
    return " ".join(unicodedata.normalize("NFKC", plain).casefold().translate(_LATIN).split())


def hidden_in(name: str) -> str:
    """What is wrong with a name that holds a sign which is not seen; empty where it holds none."""
    found = next(hidden_signs(name), None)
    if found is None:
        return ""
    text = _("A name holds only signs that are seen: there is %(sign)s at place %(place)d.")
    return text % {"sign": code_point(found[1]), "place": found[0] + 1}


def require_seen(name: str, pointer: str = "/name") -> None:
    """Refuse a name with a sign that a reader does not see.

    Raises:
        DomainError: ``misleading_name``.
    """
    if problem := hidden_in(name):
        raise DomainError.for_field(pointer, problem, code="misleading_name")


class NamesOfTenants:
    """What each tenant is taken for: by its name and by its short name. Made once for all names that are compared."""

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self._taken: Mapping[str, set[str]] = defaultdict(set)
        for slug, name in names:
            self._taken[skeleton(name)].add(slug)
            self._taken[skeleton(slug)].add(slug)

    def problem(self, slug: str, name: str) -> str:
        """Why the tenant ``slug`` may not be called ``name``; which other one is meant is not said."""
        if self._taken.get(skeleton(name), set()) - {slug}:
            return _("Another tenant is called so, or so that readers take one for the other: choose another name.")
        return ""
