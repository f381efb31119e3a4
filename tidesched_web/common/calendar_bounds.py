"""The years in which a moment of a request may lie: in each of them every time zone has a local time."""

import datetime as dt
from typing import Final

from django.utils.translation import gettext as _

from tidesched_web.common.hints import Shown

FIRST_YEAR: Final = 1000
LAST_YEAR: Final = 2999
# The same as a part of a pattern.
YEAR: Final = "[12][0-9]{3}"


class OutOfCalendar(ValueError):
    """A moment in none of these years; the text says so to a person, with the first and the last of them."""


def in_calendar(moment: dt.datetime, written: str = "") -> dt.datetime:
    """In UTC: the database takes no zone that is 16 hours or more away from it. ``written``: as it was sent."""
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        said = _("“%(value)s” lies in no year from %(first)d to %(last)d.")
        value = Shown(written or moment.isoformat())
        raise OutOfCalendar(said % {"value": value, "first": FIRST_YEAR, "last": LAST_YEAR})
    return moment.astimezone(dt.UTC)
