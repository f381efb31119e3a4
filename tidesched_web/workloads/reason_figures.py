"""Figures of waiting gangs are of one session, so that they agree: written every `EVERY`, and with the row of any gang
as long as no more than `MOST_BETWEEN` others have moved; beyond that the row says that it is newer.
"""

import datetime as dt
from typing import Any, NamedTuple

from django.db.models import F, QuerySet

from tidesched_web.engine.figures import numbers_of
from tidesched_web.engine.model import Reason
from tidesched_web.workloads.models import Gang

EVERY = dt.timedelta(seconds=5)
MOST_BETWEEN = 200
# The session is said anew so often although no figure has moved.
SAID_EVERY = dt.timedelta(seconds=60)


class AsOf(NamedTuple):
    session: int
    at: dt.datetime


def document_of(reason: Reason | None) -> dict[str, Any]:
    return numbers_of(reason) if reason else {}


def with_figures(gangs: QuerySet[Gang]) -> QuerySet[Gang]:
    return gangs.annotate(all_number=F("cluster__reason_figures__number"), all_at=F("cluster__reason_figures__at"))


def of_all(gang: Gang) -> AsOf | None:
    number, at = gang.all_number, gang.all_at  # type: ignore[attr-defined]  # annotated by the selector
    return AsOf(number, at) if number is not None else None


def as_of(gang: Gang) -> AsOf | None:
    everybody = of_all(gang)
    if gang.figures_number is None or gang.figures_at is None:
        return everybody
    own = AsOf(gang.figures_number, gang.figures_at)
    return own if everybody is None or own.session > everybody.session else everybody


def newer_than_others(gang: Gang) -> AsOf | None:
    own, everybody = as_of(gang), of_all(gang)
    return own if everybody is not None and own != everybody else None
