import unicodedata
from collections.abc import Iterable

from django.utils.translation import gettext as _

from tidesched_web.common.actors import RESERVED
from tidesched_web.common.errors import DomainError
from tidesched_web.common.shown_names import require_seen


def folded(name: str) -> str:
    """The name without case and compatibility forms: names that are equal so are taken for one."""
    return unicodedata.normalize("NFKC", name).casefold()


def refuse_misleading(name: str, others: Iterable[str]) -> None:
    require_seen(name, "/username")
    wanted = folded(name)
    problem = ""
    if wanted in RESERVED:
        problem = _("“%(name)s” is the name of a part of the system.") % {"name": name}
    elif other := next((other for other in others if other != name and folded(other) == wanted), ""):
        problem = _("“%(name)s” looks like the account “%(other)s”.") % {"name": name, "other": other}
    if problem:
        raise DomainError.for_field("/username", problem, code="misleading_name")
