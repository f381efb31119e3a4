"""Fixtures of the API tests."""

import copy

import pytest
from django.core.cache import cache
from django.db import transaction

from tests.api import cast


@pytest.fixture(scope="module")
def _built(django_db_setup, django_db_blocker):
    """The world, once a module: each test works in a savepoint of its transaction."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield cast.build()
        transaction.set_rollback(True)


@pytest.fixture
def world(_built, db):
    cache.clear()  # request counts of earlier tests
    return copy.deepcopy(_built)
