"""What is between things of one kind, such as names, in the reader's language."""

from collections.abc import Iterable

from django.utils.translation import get_language


def list_comma() -> str:
    """ "、" in Chinese, whose "，" is between clauses."""
    return "、" if (get_language() or "").startswith("zh") else ", "


def listed(things: Iterable[object]) -> str:
    return list_comma().join(map(str, things))
