"""Which known card a misspelt name means; another model is never offered in place of the one that was named."""

import difflib
from collections.abc import Iterable

# So many names by likeness are looked at.
_LOOKED_AT = 8


def nearest_card(name: str, known: Iterable[str]) -> str | None:
    """The known card of which ``name`` is a misspelling, with or without the vendor before it; None where none is."""
    spelt: dict[str, str] = {}
    for card in sorted(known, reverse=True):
        folded = card.casefold()
        spelt[folded] = card
        spelt.setdefault(folded.partition("-")[2] or folded, card)
    given = name.casefold()
    near = difflib.get_close_matches(given, sorted(spelt), n=_LOOKED_AT)
    return next((spelt[other] for other in near if is_misspelt(given, other)), None)


def is_misspelt(name: str, card: str) -> bool:
    """Whether ``name`` is a slip in ``card``: a figure left out, doubled or swapped, a letter too many or too few.
    Other figures (H100, H800), other letters before the figures (B200, GB200) or behind them (910B, 910C) make another
    model."""
    lost, found = "", ""
    for tag, a_from, a_to, b_from, b_to in difflib.SequenceMatcher(None, name, card, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        lost, found = lost + name[a_from:a_to], found + card[b_from:b_to]
        if _of_series(name, a_from, a_to) or _of_series(card, b_from, b_to):
            return False
        if tag == "replace" and card[b_from:b_to].isalpha() and card[b_from - 1 : b_from].isdigit():
            return False
    return not (_figures(lost) and _figures(found)) or _figures(lost) == _figures(found)


def _of_series(text: str, start: int, end: int) -> bool:
    """Whether the letters there are of the one or two before a model's figures."""
    if not any(letter.isalpha() for letter in text[start:end]):
        return False
    while start > 0 and text[start - 1].isalpha():
        start -= 1
    while end < len(text) and text[end].isalpha():
        end += 1
    return end - start <= 2 and text[end : end + 1].isdigit()


def _figures(text: str) -> list[str]:
    return sorted(letter for letter in text if letter.isdigit())
