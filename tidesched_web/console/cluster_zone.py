"""The time zone of the cluster that the present page is about, for times by its clock."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ZONE: ContextVar[str] = ContextVar("zone_of_page", default="UTC")


@contextmanager
def in_zone(name: str) -> Iterator[None]:
    """Times by the cluster's clock are shown in this zone."""
    token = _ZONE.set(name)
    try:
        yield
    finally:
        _ZONE.reset(token)


def zone_of_page() -> zoneinfo.ZoneInfo:
    """That of the page's cluster."""
    return zoneinfo.ZoneInfo(_ZONE.get())
