"""The names of objects in a cluster: one rule for changes, files, forms, adoption, drift and REST."""

from typing import Any, Final, NamedTuple

from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

# Every cluster of Volcano has these queues, which it keeps itself.
OWN_OF_VOLCANO: Final = frozenset({"root", "default"})
_PART = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"


class Rule(NamedTuple):
    form: str
    words: Promise
    most: int = 0

    @property
    def refusal(self) -> Any:
        return format_lazy(_("This is no name for it: {rule}."), rule=self.words)


LABEL: Final = Rule(
    "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", _("lower-case letters, digits and '-', at most 63, no '-' at an end"), 63
)
SUBDOMAIN: Final = Rule(
    rf"(?!.{{254}}){_PART}(\.{_PART})*",
    _("lower-case letters, digits, '-' and '.', at most 253, a letter or digit at each end and beside each '.'"),
    253,
)
QUEUE: Final = Rule(
    f"(?!({'|'.join(sorted(OWN_OF_VOLCANO))})$){SUBDOMAIN.form}",
    format_lazy(_("{rule}; root and default are Volcano's own"), rule=SUBDOMAIN.words),
    SUBDOMAIN.most,
)
