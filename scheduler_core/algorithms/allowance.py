"""How many of a number of pods a limit speaks of, and how many a budget lets go.

Source: Kubernetes' disruption controller and volcano-semantics 4.12 (percentages are rounded up).
"""

from __future__ import annotations


def share_of(text: str, total: int) -> int:
    """``"3"``, or ``"25%"`` of ``total`` rounded up.

    Raises:
        ValueError: neither a number of zero or more nor a percentage.
    """
    digits = text.strip().removesuffix("%")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 9:
        raise ValueError(f"{text[:40]!r} is neither a number nor a percentage")
    number = int(digits)
    return -(-number * total // 100) if text.strip().endswith("%") else number


def may_go(min_available: str, max_unavailable: str, *, expected: int, healthy: int) -> int:
    """Pods that may leave now; a limit on those that are missing goes before one on those that stay; 0 or more."""
    if max_unavailable:
        return max(0, healthy - (expected - share_of(max_unavailable, expected)))
    return max(0, healthy - share_of(min_available, expected)) if min_available else 0
