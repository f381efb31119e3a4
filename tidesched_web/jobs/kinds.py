"""Who does which kind of job: registered by the tasks of the contexts, looked up by the worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidesched_web.jobs.running import Running

# Returns the result of the job; what it has noted by `save` is there again when it is called for another attempt.
Handler = Callable[["Running"], dict[str, Any] | None]

_HANDLERS: dict[str, Handler] = {}


def handles(kind: str) -> Callable[[Handler], Handler]:
    """Register who does the jobs of this kind. The registering module is one of a context's ``tasks``."""

    def register(handler: Handler) -> Handler:
        _HANDLERS[kind] = handler
        return handler

    return register


def handler_of(kind: str) -> Handler | None:
    """Who does the jobs of this kind, in a worker; None in a process that has not loaded the tasks."""
    return _HANDLERS.get(kind)
