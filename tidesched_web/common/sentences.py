"""What joins sentences, and things of one kind: Chinese has no blank between sentences, and a comma for lists alone."""

import re
from collections.abc import Iterable

from django.utils.translation import get_language

# Chinese signs bring their own blank, on both sides.
SIGNS = tuple("，、；：。！？（）")
_TAGS = r"((?:</?(?:a|code|span|strong)\b[^>]*>)*)"
_BESIDE_A_SIGN = re.compile(rf"(?<=[{''.join(SIGNS)}]){_TAGS}\s+|\s+{_TAGS}\s*(?=[{''.join(SIGNS)}])")


def _chinese() -> bool:
    return (get_language() or "").startswith("zh")


def gap() -> str:
    """What is between two sentences in the reader's language."""
    return "" if _chinese() else " "


def closed_up(html: str) -> str:
    """A piece of a page without the blanks beside its Chinese signs, whatever inline tags are between."""
    return _BESIDE_A_SIGN.sub(r"\1\2", html)


def list_comma() -> str:
    """What is between two things of one kind, such as names: "、" in Chinese, whose "，" is between clauses."""
    return "、" if _chinese() else ", "


def listed(things: Iterable[object]) -> str:
    """Things of one kind in one line: "a, b, c"."""
    return list_comma().join(map(str, things))


def in_a_row(sentences: Iterable[object]) -> str:
    """The sentences that say something, one after the other."""
    return gap().join(said for said in map(str, sentences) if said)
