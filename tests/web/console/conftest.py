"""The console speaks from compiled catalogues."""

from collections.abc import Iterator

import pytest
from django.utils import translation

from tidesched_web.console.build import compile_catalogues


@pytest.fixture(scope="session", autouse=True)
def _catalogues() -> None:
    compile_catalogues()


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    """Django leaves the language of the last request active in its thread."""
    yield
    translation.deactivate()
