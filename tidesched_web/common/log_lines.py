"""`LOG_FORMAT=json`: one object a line."""

import datetime as dt
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tidesched_web.common import request_context

_session: ContextVar[dict[str, Any] | None] = ContextVar("tidesched_log_session", default=None)


@contextmanager
def in_session() -> Iterator[None]:
    mark = _session.set({})
    try:
        yield
    finally:
        _session.reset(mark)


def name_session(**known: Any) -> None:
    if (session := _session.get()) is not None:
        session.update(known)


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        meta = getattr(getattr(record, "request", None), "META", {})
        line = {
            "time": dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": request_context.current().request_id or meta.get(request_context.REQUEST_ID),
            "session": _session.get(),
            "exception": self.formatException(record.exc_info) if record.exc_info else "",
        }
        return json.dumps({name: value for name, value in line.items() if value})
