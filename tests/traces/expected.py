"""The expected files of the traces, and what is taken out of an answer before it is compared.

`TRACES=write python -m pytest tests/traces` writes the files anew; look at what git says has changed.
"""

from __future__ import annotations

import datetime as dt
import difflib
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.cache import cache
from django.db import connection, transaction
from django.db.models.functions import Now
from django.http.response import HttpResponseBase
from django.utils import timezone, translation

from tidesched_web.accounts.models import User

FOLDER = Path(__file__).parent / "expected"
WRITES = os.environ.get("TRACES") == "write"
START = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
# Numbers of rows begin here, those of each table in a range of their own: a number tells its table.
FIRST, RANGE = 71_000_000, 10_000
_NUMBER = re.compile(r"(?<![\d.])71[,\u202f\xa0 ]?\d{3}[,\u202f\xa0 ]?\d{3}(?![\d.]\d)")
_VOLATILE = (
    (re.compile(r'(?<="resourceVersion": ")\d+|(?<="uid": ")[0-9a-f-]{36}'), "<of the cluster>"),
    (re.compile(r"tide_[\w-]{6,}…?"), "<token>"),
    (re.compile(r"(?<=/invite/)[\w-]{16,}"), "<secret>"),
    (re.compile(r"\b[A-Z2-7]{32}\b"), "<key>"),
    (re.compile(r"\b(?=\d*[a-f])[0-9a-f]{12,}\b…?|\b0{64}\b"), "<hash>"),
    (re.compile(r"(?<=PostgreSQL\n)[\d.]+|(?<=TideSched\n)\d+[\d.]+"), "<version>"),
    (re.compile(r"(?<=\d\d:\d\d:\d\d)\.\d{3,6}"), ""),
)


_TABLES: list[str] = []


class Clock:
    """Stands; while a world is built each look is a microsecond later, so that what was made first sorts first."""

    def __init__(self) -> None:
        self.now, self.step = START, dt.timedelta(microseconds=1)

    def __call__(self) -> dt.datetime:
        self.now += self.step
        return self.now

    def stand(self) -> None:
        """A minute later, and a little: how often the building asked shows in no whole second."""
        self.now, self.step = START + dt.timedelta(seconds=60.01), dt.timedelta(0)


@contextmanager
def standing_world(build: Callable[[], Any]) -> Iterator[Any]:
    """The world that `build` makes, one minute later; it is gone in the end."""
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch, transaction.atomic():
        patch.setattr(timezone, "now", clock)
        patch.setattr(Now, "as_postgresql", lambda *_given, **_named: ("%s::timestamptz", (clock.now,)))
        patch.setattr(Ed25519PrivateKey, "generate", lambda: Ed25519PrivateKey.from_private_bytes(bytes(32)))
        patch.setattr(logging.getLogger("django.request"), "disabled", True)  # it repeats each refusal
        cache.clear()
        _number_rows()
        with translation.override("en"):
            world = build()
            User.objects.update(date_joined=START)  # its default was made before the clock stood
            clock.stand()
            yield world
        transaction.set_rollback(True)


def _number_rows() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT sequencename FROM pg_sequences WHERE data_type = 'bigint'::regtype ORDER BY 1")
        names = [name for (name,) in cursor.fetchall()]
        for index, name in enumerate(names):
            cursor.execute(f'ALTER SEQUENCE "{name}" RESTART WITH {FIRST + RANGE * index}')
    _TABLES[:] = [name.removesuffix("_id_seq").partition("_")[2] for name in names]


def normalised(text: str) -> str:
    """Without random texts, fractions of seconds and numbers of rows."""
    for pattern, said in _VOLATILE:
        text = pattern.sub(said, text)
    return _NUMBER.sub(_table_of, text)


def _table_of(match: re.Match[str]) -> str:
    index = (int(re.sub(r"\D", "", match[0])) - FIRST) // RANGE
    return f"{{{_TABLES[index]}}}" if index < len(_TABLES) else match[0]


def content_of(answer: HttpResponseBase) -> str:
    """The body as text: JSON with one value a line."""
    text = async_to_sync(_whole)(answer).decode()
    is_document = kind_of(answer) in ("application/json", "application/problem+json")
    return pretty(json.loads(text)) if text and is_document else text


def kind_of(answer: HttpResponseBase) -> str:
    return answer.headers.get("Content-Type", "").partition(";")[0]


async def _whole(answer: Any) -> bytes:
    if not answer.streaming:
        return bytes(answer.content)
    return b"".join([part async for part in answer]) if answer.is_async else b"".join(answer)


def pretty(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True, default=str)


def check(name: str, text: str) -> None:
    """Compare with the expected file, or write it."""
    path = FOLDER / f"{name}.txt"
    lines = [line.rstrip() for line in normalised(text).strip().splitlines()]
    if WRITES:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return
    expected = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if lines != expected:
        place = path.relative_to(FOLDER.parents[2]).as_posix()
        difference = difflib.unified_diff(expected, lines, place, "now", lineterm="", n=2)
        pytest.fail("\n".join(_headed(difference, expected)), pytrace=False)


def _headed(difference: Iterable[str], expected: list[str]) -> Iterator[str]:
    """Each part of the difference names the step or request that it is of."""
    for line in difference:
        start = int(re.findall(r"\d+", line)[0]) if line.startswith("@@") else 0
        above = [one for one in expected[: start + 2] if one.startswith(("# ", "=== "))] if start else []
        yield f"{line} {above[-1]}" if above else line


def check_names(folder: str, names: Iterable[str]) -> None:
    """A folder has no file of something that is gone."""
    left = set((FOLDER / folder).glob("*.txt")) - {FOLDER / folder / f"{name}.txt" for name in names}
    for path in left if WRITES else ():
        path.unlink()
    assert WRITES or left == set()
