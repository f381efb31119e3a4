"""Times on pages are in the reader's zone: that of the profile, else the browser's, else UTC (`ReaderMiddleware`)."""

import datetime as dt

from django.utils import timezone
from django.utils.translation import gettext as _


def zone_name(moment: dt.datetime | None = None) -> str:
    offset = timezone.localtime(moment).utcoffset() or dt.timedelta()
    hours, minutes = divmod(abs(int(offset.total_seconds())) // 60, 60)
    if not hours and not minutes:
        return "UTC"
    return f"UTC{'-' if offset < dt.timedelta() else '+'}{hours}" + (f":{minutes:02d}" if minutes else "")


def other_zone(moment: dt.datetime) -> str:
    """What stands beside a time below a head that names the zone: nothing, or the zone where it is another one then."""
    then = zone_name(moment)
    return "" if then == zone_name() else f" {then}"


def head(name: str) -> str:
    return _("%(name)s (%(zone)s)") % {"name": name, "zone": zone_name()}


def to_the_second(moment: dt.datetime) -> str:
    """A moment as 2026-03-02 17:55:00, without its zone: that stands in the head above it."""
    return timezone.localtime(moment).replace(tzinfo=None).isoformat(" ", "seconds")


def to_the_minute(moment: dt.datetime) -> str:
    return timezone.localtime(moment).replace(tzinfo=None).isoformat(" ", "minutes")


def named(moment: dt.datetime) -> str:
    return f"{to_the_minute(moment)} {zone_name(moment)}"
