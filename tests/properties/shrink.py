"""The smallest cluster that still fails, for the message of a failing test."""

from __future__ import annotations


def smallest(objects, fails):
    """Leave objects out one at a time for as long as it still fails."""
    again = True
    while again:
        again = False
        for i in range(len(objects) - 1, -1, -1):
            fewer = objects[:i] + objects[i + 1 :]
            try:
                failing = fails(fewer)
            except Exception:  # noqa: BLE001 another failure than the one that is looked for
                failing = False
            if failing:
                objects, again = fewer, True
    return objects
