"""Virtual time: seconds since the epoch, written as RFC 3339 where an object carries it."""

from datetime import UTC, datetime

# The day on which a replay without a date begins: 2026-01-01T00:00:00Z.
REPLAY_START = 1767225600.0


def rfc3339(seconds: float) -> str:
    """``2026-01-01T00:00:00.250000Z``; the fraction is left out when it is zero."""
    moment = datetime.fromtimestamp(seconds, UTC)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{moment.microsecond:06d}Z" if moment.microsecond else f"{text}Z"
