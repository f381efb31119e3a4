"""The console speaks from compiled catalogues."""

import pytest

from tidesched_web.console.build import compile_catalogues


@pytest.fixture(scope="session", autouse=True)
def _catalogues() -> None:
    compile_catalogues()
