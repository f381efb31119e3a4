"""What an alert says, made from its code and numbers in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from tidesched_web.console import amounts
from tidesched_web.console.card_names import card_label
from tidesched_web.console.wording import HOLDS

# The sentence and the numbers that it needs; `text` is what only those who see everything may read.
_SENTENCES: dict[str, tuple[tuple[str, ...], Promise]] = {
    "quota_over_hardware": (
        ("card", "quota", "hardware"),
        _("The queues are promised %(quota)s × %(card)s, but the nodes have %(hardware)s."),
    ),
    "node_lost": (("node",), _("Node %(node)s has left the cluster.")),
    "node_recut": (("node",), _("The cards of node %(node)s have changed.")),
    "foreign_scheduler": (
        ("holder",),
        _("Nothing is sent: another installation, %(holder)s, holds the cluster's lease."),
    ),
    "partial_reclaim": ((), _("A reclaim was carried out only in part: some pods could not be evicted.")),
    "policy_invalid": ((), _("The newest policy cannot be used; the last good one stays in force.")),
    "session_failed": ((), _("A session could not decide.")),
}


def alert_sentence(code: str, numbers: Mapping[str, Any], message: str, *, everything: bool) -> str:
    """The sentence of a code; who sees everything also reads the message where it says more than the sentence can."""
    if code == "eviction_budget" and str(numbers.get("rule", "")) in HOLDS:
        return str(HOLDS[numbers["rule"]])
    if code not in _SENTENCES:
        return message if everything else code
    names, sentence = _SENTENCES[code]
    if any(name not in numbers for name in names):
        return message if everything else code
    text = str(sentence) % {name: _written(name, numbers[name]) for name in names}
    return f"{text} {message}" if everything and not names else text


def _written(name: str, value: Any) -> str:
    if name == "card":
        return card_label(str(value))
    return amounts.number(value) if isinstance(value, int | float) else str(value)
