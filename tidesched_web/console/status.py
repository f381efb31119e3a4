import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.db import connection
from django.http import HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from redis import RedisError

from tidesched_web.common import alive
from tidesched_web.common.progress import HANG_SECONDS
from tidesched_web.common.sentences import listed
from tidesched_web.console import amounts
from tidesched_web.console.page import Page, page
from tidesched_web.console.rights import need_whole_sight
from tidesched_web.quota.push_selectors import last_pushes

WORKS, STARTS, FAILS = "works", "starts", "fails"
LOOKS: Final[dict[str, tuple[str, str, Promise]]] = {
    WORKS: ("tone-good", "circle-check", gettext_lazy("Works")),
    STARTS: ("tone-waiting", "hourglass", gettext_lazy("Starts")),
    FAILS: ("tone-failed", "alert-triangle", gettext_lazy("Does not work")),
}


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    state: str
    seen: str

    @property
    def look(self) -> tuple[str, str, Promise]:
        return LOOKS[self.state]


@page(section="status", topics="jobs queues")
def status(this: Page) -> HttpResponse:
    need_whole_sight(this)
    waiting: int | None
    try:
        heard, silent, waiting = alive.processes(), alive.silent_roles(), alive.waiting_messages()
        replaced = alive.replaced()
    except (RedisError, OSError):
        heard, silent, waiting, replaced = [], [], None, []
    endings = alive.endings()
    starting = alive.starting_roles(silent, heard)
    still = [role for role in silent if role not in starting]
    parts = _parts(waiting, starting, still)
    pushes = last_pushes(this.access, this.clusters)
    return this.render(
        "status/status.html",
        {
            "processes": [_process(one) for one in heard],
            "starting": starting,
            "silent": [(role, endings.get(role)) for role in still],
            "away": waiting is None,
            "parts": parts,
            "verdict": _verdict(parts),
            "versions": _versions(),
            "pushes": [(one, pushes.get(one.pk)) for one in this.clusters],
            "replaced": [(note, dt.datetime.fromtimestamp(note.at, dt.UTC)) for note in replaced],
            "line": _("A process that does not move on for %(n)s seconds is replaced.")
            % {"n": amounts.number(HANG_SECONDS)},
        },
    )


def _parts(waiting: int | None, starting: Sequence[str], silent: Sequence[str]) -> list[Part]:
    unknown = _("Redis does not answer")
    parts = [
        Part(_("Web"), WORKS, _("It has made this page.")),
        Part(_("Database"), WORKS, _("It has answered what this page asked.")),
    ]
    if waiting is None:
        return [*parts, Part(_("Queues of work"), FAILS, unknown), Part(_("Workers"), FAILS, unknown)]
    n = amounts.number(waiting)
    tasks = ngettext("%(n)s task waits.", "%(n)s tasks wait.", waiting) % {"n": n}
    if silent:
        state, seen = FAILS, _("Not moving on: %(roles)s") % {"roles": listed(silent)}
    elif starting:
        state, seen = STARTS, _("Not heard of yet: %(roles)s") % {"roles": listed(starting)}
    else:
        state, seen = WORKS, _("Moving on: %(roles)s") % {"roles": listed(alive.ROLES)}
    return [*parts, Part(_("Queues of work"), WORKS, tasks), Part(_("Workers"), state, seen)]


def _verdict(parts: Sequence[Part]) -> tuple[str, str, str]:
    state = next((one for one in (FAILS, STARTS) if any(part.state == one for part in parts)), WORKS)
    names = listed(part.name for part in parts if part.state == state)
    sentences = {
        WORKS: _("All parts work."),
        STARTS: _("Starting: %(parts)s.") % {"parts": names},
        FAILS: _("Not all parts work: %(parts)s.") % {"parts": names},
    }
    tone, icon, _word = LOOKS[state]
    return tone, icon, sentences[state]


def _versions() -> list[tuple[str, str]]:
    database = divmod(getattr(connection, "pg_version", 0), 10_000)
    return [("TideSched", settings.VERSION), ("PostgreSQL", "{}.{}".format(*database)), alive.store()]


def _process(one: alive.Heard) -> dict[str, object]:
    return {
        "report": one.report,
        "heard": dt.datetime.fromtimestamp(one.at, dt.UTC),
        "born": dt.datetime.fromtimestamp(one.born, dt.UTC),
        "mebibytes": amounts.number(round(one.report.private_bytes / 2**20)),
    }
