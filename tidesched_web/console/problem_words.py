"""What is wrong with a gang as it is written: the engine's sentence, in the reader's language.

The engine says it in English, in as many ways as there are mistakes. The common ones are known here by their words; of
another one the beginning is translated, and the rest stays as the engine wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

_BEGINS = "Cannot be scheduled as written: "
_MISTAKES: tuple[str, ...] = (
    gettext_noop("queue %(queue)s does not exist"),
    gettext_noop("queue %(queue)s does not exist; did you mean %(meant)s?"),
    gettext_noop("queue %(queue)s does not exist; there are %(known)s and %(n)s more"),
    gettext_noop("queue %(queue)s does not exist; there are %(known)s"),
    gettext_noop("queue %(queue)s has queues below it; gangs use one of those"),
    gettext_noop("asks for %(cards)s of one card; a share is at most one card"),
    gettext_noop(
        "asks for %(resource)s, which several cards offer, and queue %(queue)s has a card quota: name the card type on "
        "the pod, by the annotation volcano.sh/card.name or by a nodeSelector on the product label of the nodes"
    ),
    gettext_noop("annotation %(key)s: %(value)s is not one of %(known)s"),
    gettext_noop("annotation %(key)s: %(value)s is not an RFC 3339 time"),
    gettext_noop("members have priorities %(low)s and %(high)s; those of one group share one"),
)


# The words of each mistake, in their order, and the names of what stands between them.
_PLACE = re.compile(r"%\((\w+)\)s")
_WORDS = tuple((mistake, _PLACE.split(mistake)[::2], _PLACE.findall(mistake)) for mistake in _MISTAKES)


def _between(problem: str, words: Sequence[str]) -> list[str] | None:
    """What stands between these words; None where they do not stand there in this order. O(length).

    A pattern would do too, in time that grows with the square of the length or more: what a gang's annotation says has
    no bound of ours.
    """
    first, *others, last = words
    end = len(problem) - len(last)
    if not problem.startswith(first) or not problem.endswith(last):
        return None
    at, found = len(first), []
    for word in others:
        place = problem.find(word, at + 1, end)
        if place < 0:
            return None
        found.append(problem[at:place])
        at = place + len(word)
    return [*found, problem[at:end]] if at < end else None


def problem_in_words(message: str) -> str:
    """The engine's sentence about a gang that is misconfigured; a sentence of another form is kept."""
    if not message.startswith(_BEGINS):
        return message
    problem = message.removeprefix(_BEGINS).removesuffix(".")
    for mistake, words, names in _WORDS:
        found = _between(problem, words)
        if found is not None:
            problem = _(mistake) % dict(zip(names, found, strict=True))
            break
    if problem.endswith(("?", "？")):
        return _("Cannot be scheduled as written: %(question)s") % {"question": problem}
    return _("Cannot be scheduled as written: %(problem)s.") % {"problem": problem}
