def ceiling(have: int, ratio: float) -> int:
    """The whole units that may be promised of ``have``; a hair above, so that 1.13 × 100 is 113 in binary too."""
    return int(have * ratio + 1e-9)
