"""Dominant resource fairness: the largest part that a holder has of any resource, compared exactly. Source:
volcano-semantics 4.4."""

from collections.abc import Sequence
from fractions import Fraction

# Upstream's tolerance: two shares that differ by no more are equal.
SHARE_DELTA = Fraction(1, 10**6)


def dominant_share(held: Sequence[int], total: Sequence[int]) -> Fraction:
    """Largest part of a total; 1 of what there is none of, 0 where nothing is held."""
    best = Fraction(0)
    for amount, whole in zip(held, total, strict=True):
        if amount > 0:
            part = Fraction(amount, whole) if whole else Fraction(1)
            best = max(best, part)
    return best


def may_take(mine: Fraction, theirs: Fraction) -> bool:
    """Whether a holder with ``mine`` after the move may take from one with ``theirs`` after it."""
    return mine < theirs or abs(mine - theirs) <= SHARE_DELTA
