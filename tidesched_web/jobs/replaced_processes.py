"""Processes that hung and were replaced: notes of those who ended them, as rows."""

from __future__ import annotations

import datetime as dt

from tidesched_web.common.incidents import Replaced
from tidesched_web.jobs import services


def keep(note: Replaced) -> None:
    services.note_replaced(
        key=note.key,
        role=note.role,
        host=note.host,
        pid=note.pid,
        at=dt.datetime.fromtimestamp(note.at, dt.UTC),
        activity=note.activity,
        step=note.step,
        seconds=note.seconds,
        ended_by=note.ended_by,
    )
