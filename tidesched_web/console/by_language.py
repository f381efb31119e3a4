from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

from django.utils.translation import get_language

Text = TypeVar("Text")


def by_language(write: Callable[..., Text]) -> Callable[..., Text]:
    """A function that gives the same for the same arguments and the same language: what it wrote last is kept."""

    @lru_cache(maxsize=2048, typed=True)
    def kept(_language: str | None, *arguments: object) -> Text:
        return write(*arguments)

    @wraps(write)
    def written(*arguments: object) -> Text:
        return kept(get_language(), *arguments)

    return written
