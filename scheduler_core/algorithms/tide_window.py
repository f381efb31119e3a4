"""Windows of the day, such as ``22:00-06:00``, in a time zone. Source: volcano-semantics 4.12 (tdm). A window that ends
when it begins, such as ``0:00-0:00``, lasts 24 hours, as upstream. On purpose: a window whose end is before its start
goes on past midnight; upstream's is over at midnight."""

import re
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

_FORM = re.compile(r"\s*(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})\s*")


class Window(NamedTuple):
    """Minutes after midnight; ``start`` is inside, ``end`` is not."""

    start: int
    end: int

    def contains(self, now: float, zone: ZoneInfo, *, past_midnight: bool = True) -> bool:
        """Whether the moment ``now`` (seconds since the epoch) lies in the window of its day. ``past_midnight``: False
        = as upstream: a window over midnight ends with the day on which it begins."""
        at = datetime.fromtimestamp(now, zone)
        minute = at.hour * 60 + at.minute
        if self.start == self.end:
            return past_midnight or minute >= self.start
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or (past_midnight and minute < self.end)


def parse_window(text: str) -> Window:
    """Read ``HH:MM-HH:MM``; 00:00-24:00 and any window that ends when it begins are 24 hours. Raises ValueError: no
    such window."""
    match = _FORM.fullmatch(text)
    hours = [int(part) for part in match.groups()] if match else [99]
    if not match or hours[0] > 23 or hours[1] > 59 or hours[2] > 24 or hours[3] > 59 or (hours[2] == 24 and hours[3]):
        raise ValueError(f"{text[:40]!r} is not a window; write for example '22:00-06:00'")
    return Window(hours[0] * 60 + hours[1], hours[2] * 60 + hours[3])
