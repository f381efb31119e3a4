import re

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tidesched_web.common.actors import ANONYMOUS, OBSERVER, OPERATOR, SCHEDULER, SYSTEM

# No account may have such a name.
_OURS: dict[str, Promise] = {
    str(SCHEDULER): gettext_lazy("scheduler"),
    str(OBSERVER): gettext_lazy("observer"),
    str(SYSTEM): gettext_lazy("system"),
    str(ANONYMOUS): gettext_lazy("anonymous"),
    str(OPERATOR): gettext_lazy("operator (command line)"),
}
_BY_TOKEN = re.compile(r"(?P<name>.+) \(token (?P<token>.+)\)")


def actor_words(actor: str) -> str:
    if found := _BY_TOKEN.fullmatch(actor):
        return _("%(name)s (token %(token)s)") % found.groupdict()
    return str(_OURS.get(actor, actor))
