"""Fixtures of the tests of changes."""

import pytest

from tests.web.changes import ground as ground_module


@pytest.fixture
def ground(db):
    return ground_module.build()
