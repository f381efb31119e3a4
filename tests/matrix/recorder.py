"""Which statements of a request write, and into which tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

# Sessions and the time of a token's last use are not what a request is about.
ASIDE = re.compile(r'"(django_session|axes_\w+)"|UPDATE "accounts_apitoken" SET "last_used_at"')
_WRITE = re.compile(
    r'\s*(?:WITH .*?\))?\s*(INSERT INTO|UPDATE|DELETE FROM|TRUNCATE)\s+(?:ONLY\s+)?"?(\w+)"?', re.DOTALL
)


@contextmanager
def writes() -> Iterator[list[str]]:
    """The writing statements of the block: `UPDATE quota_queue`."""
    found: list[str] = []

    def note(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        text = str(sql)
        if (match := _WRITE.match(text)) and not ASIDE.search(text):
            found.append(f"{match[1].split()[0]} {match[2]}")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield found
