"""The console speaks from compiled catalogues; its tests look at the world of `world.py`."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction
from django.utils import timezone, translation

from tests.web.console import world as story
from tidesched_web.console.build import compile_catalogues


@pytest.fixture(scope="session", autouse=True)
def _catalogues() -> None:
    compile_catalogues()


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    """Django leaves the language of the last request active in its thread."""
    yield
    translation.deactivate()


class _Kept:
    """A world that tests look at, each in a savepoint of its transaction."""

    # Pages say how long ago things were: a world that is older is built again between two tests.
    SECONDS = 10

    def __init__(self) -> None:
        self.blocker: Any = None
        self._transaction: transaction.Atomic | None = None

    def keep(self) -> None:
        if self._transaction and (timezone.now() - self._built).total_seconds() > self.SECONDS:
            self.drop()
        if not self._transaction:
            self._transaction = transaction.atomic()
            self._transaction.__enter__()
            self._built = timezone.now()
            try:
                self.world = story.full()
            except BaseException:
                self.drop()
                raise

    def drop(self) -> None:
        if self._transaction:
            transaction.set_rollback(True)
            self._transaction.__exit__(None, None, None)
            self._transaction = None


_KEPT = _Kept()


@pytest.fixture(scope="module")
def _kept(django_db_setup, django_db_blocker) -> _Kept:
    _KEPT.blocker = django_db_blocker
    with django_db_blocker.unblock():
        _KEPT.keep()
    return _KEPT


@pytest.fixture
def world(_kept, db) -> story.World:
    """The whole story."""
    cache.clear()
    return copy.deepcopy(_kept.world)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """A test that makes a world of its own finds none."""
    try:
        yield
    finally:
        if _KEPT.blocker:
            with _KEPT.blocker.unblock():
                if "_kept" in getattr(nextitem, "fixturenames", ()):
                    _KEPT.keep()
                else:
                    _KEPT.drop()
