"""Sentences one after the other: Chinese has no blank between them, since its full stop brings its own."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import get_language


def gap() -> str:
    """What is between two sentences in the reader's language."""
    return "" if (get_language() or "").startswith("zh") else " "


def in_a_row(sentences: Iterable[object]) -> str:
    """The sentences that say something, one after the other."""
    return gap().join(said for said in map(str, sentences) if said)
