from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from tidesched_web.jobs.running import Running

# Returns the result of the job; what it has noted by `report` is there again when it is called for another attempt.
Handler = Callable[["Running"], dict[str, Any] | None]


def handler_of(kind: str) -> Handler | None:
    path = settings.JOB_HANDLERS.get(kind)
    return import_string(path) if path else None
