"""Dex is built for the proof alone: the gate's tests use `tests/signin/provider.py`."""

from pathlib import Path

import pytest

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == _HERE and "dex" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.proof)
