"""Waiting for a cluster or a worker without the turn of the request.

Each request has a turn at the web process's work: a thread, and often a database connection (`front/turns.py`). A view
that has to wait gives its turn back. `wait_for` raises :class:`Wait`, the front does the waiting (`front/waits.py`),
and then runs the view again from its beginning, where `wait_for` returns what came. So a view does everything before
its wait twice: it only reads there, or makes what it makes through `once`.

A request that takes long itself, such as the page of a change of thousands of figures, runs in a turn of the large
works (:func:`need_dear_turn`), as one with a large body does.

Outside of the front (workers, commands, a test client) the wait is where it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

_T = TypeVar("_T")
_U = TypeVar("_U")

# A request that would wait more often than this goes on without.
MOST_WAITS: Final = 6


@dataclass(frozen=True)
class Answer:
    """What a wait ended with; ``refused``: there was no place to wait, or it took too long."""

    value: Any = None
    error: Exception | None = None
    refused: bool = False


REFUSED: Final = Answer(refused=True)


class Wait(BaseException):
    """A view gives its turn back until ``work`` is done. It is no error, so nothing that handles errors catches it.

    ``key`` names the work: requests that wait for the same key share it. ``subject`` is what it hangs on (a cluster),
    of which only so many requests wait at a time; empty = nothing. ``work`` asks no database, and ends by itself.
    """

    def __init__(self, key: str, work: Callable[[], Any], subject: str) -> None:
        super().__init__(key)
        self.key, self.work, self.subject = key, work, subject


class DearTurn(BaseException):
    """A view gives its turn back and takes one of those that large works have. It is no error."""


@dataclass
class Desk:
    """What one request has waited for, and made, so far; ``dear``: it has a turn of the large works."""

    dear: bool = False
    answers: dict[str, Answer] = field(default_factory=dict)
    made: dict[str, Any] = field(default_factory=dict)


_desk: ContextVar[Desk | None] = ContextVar("tidesched_desk", default=None)


@contextmanager
def at(desk: Desk) -> Iterator[None]:
    """Run a request that can give its turn back."""
    mark = _desk.set(desk)
    try:
        yield
    finally:
        _desk.reset(mark)


def is_possible() -> bool:
    """Whether this code runs for a request that can give its turn back."""
    return _desk.get() is not None


def goes_on() -> bool:
    """Whether this request has waited already, and runs anew: it has been counted before."""
    desk = _desk.get()
    return desk is not None and bool(desk.answers)


def wait_for(key: str, work: Callable[[], _T], *, otherwise: _U, subject: str = "") -> _T | _U:
    """What ``work`` returns or raises, without the turn; ``otherwise`` where there is no place to wait for it.

    Call it outside of transactions.
    """
    desk = _desk.get()
    if desk is None:
        return work()
    answer = desk.answers.get(key)
    if answer is None:
        if len(desk.answers) >= MOST_WAITS:
            return otherwise
        raise Wait(key, work, subject)
    if answer.error is not None:
        raise answer.error
    return otherwise if answer.refused else answer.value


def need_dear_turn() -> None:
    """Go on only in a turn of the large works. Call it before anything is written, and outside of transactions."""
    desk = _desk.get()
    if desk is not None and not desk.dear:
        raise DearTurn


def once(key: str, make: Callable[[], _T]) -> _T:
    """What ``make`` returned when this request first came here: it is made once, however often the request waits."""
    desk = _desk.get()
    if desk is None:
        return make()
    if key not in desk.made:
        desk.made[key] = make()
    made: _T = desk.made[key]
    return made
