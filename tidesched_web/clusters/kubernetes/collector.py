"""Python's collector of garbage beside the objects of a large cluster.

They hold no circles and live long: each look at them is in vain. With Python's usual thresholds it looks so often that
a list of a large cluster takes twice its time.
"""

from __future__ import annotations

import gc

# Python's own are 700, 10 and 10. A page of a list makes some ten thousand objects that stay.
_THRESHOLDS = (50_000, 20, 50)


def look_seldom() -> None:
    """For this process, from now on."""
    gc.set_threshold(*_THRESHOLDS)


def pass_over() -> None:
    """Leave all that is there now out of every later look; it still goes when nobody holds it."""
    gc.freeze()
