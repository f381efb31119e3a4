"""TideSched's own processes: whether each moves on, how much memory it holds, and which ones had to be replaced."""

from __future__ import annotations

import datetime as dt

from django.conf import settings
from django.db import connection
from django.http import HttpResponse
from django.utils.translation import gettext as _
from redis import RedisError

from tidesched_web.common import alive
from tidesched_web.common.progress import HANG_SECONDS
from tidesched_web.console import amounts
from tidesched_web.console.page import Page, page
from tidesched_web.console.rights import need_whole_sight
from tidesched_web.jobs.selectors import replaced_processes


@page(section="status", topics="jobs")
def status(this: Page) -> HttpResponse:
    """For who sees everything."""
    need_whole_sight(this)
    try:
        heard, silent, away = alive.processes(), alive.silent_roles(), False
    except (RedisError, OSError):
        heard, silent, away = [], [], True
    return this.render(
        "status/status.html",
        {
            "processes": [_process(one) for one in heard],
            "starting": (starting := alive.starting_roles(silent, heard)),
            "silent": [role for role in silent if role not in starting],
            "away": away,
            "parts": _parts(),
            "replaced": replaced_processes(this.access),
            "line": _("A process that does not move on for %(n)s seconds is replaced.")
            % {"n": amounts.number(HANG_SECONDS)},
        },
    )


def _parts() -> list[tuple[str, str]]:
    """The installation's parts and their versions; nothing for one that does not answer."""
    database = divmod(getattr(connection, "pg_version", 0), 10_000)
    return [
        ("TideSched", settings.VERSION),
        ("PostgreSQL", "{}.{}".format(*database)),
        alive.store(),
    ]


def _process(one: alive.Heard) -> dict[str, object]:
    return {
        "report": one.report,
        "heard": dt.datetime.fromtimestamp(one.at, dt.UTC),
        "born": dt.datetime.fromtimestamp(one.born, dt.UTC),
        "mebibytes": amounts.number(round(one.report.private_bytes / 2**20)),
    }
