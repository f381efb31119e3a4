"""What each queue deserves of a total: shares by weight, and what somebody cannot use goes round again.

Exact: amounts are integers over one common denominator, so that a queue that deserves four cards deserves all of them.
Source: volcano-semantics 4.8 (proportion) and the vectors of section 9.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

# Beyond this denominator a round gives whole units only; reached by hundreds of rounds with weights that share nothing.
_MAX_DENOMINATOR = 1 << 512


class Claim(msgspec.Struct, frozen=True, gc=False):
    """One queue. All amounts by row, integers.

    Attributes:
        weight: 1 or more. request: what it uses and asks for.
        limit: most that it may get. guarantee: what it gets in any case.
    """

    weight: int
    request: Sequence[int]
    limit: Sequence[int]
    guarantee: Sequence[int]


def water_filling(total: Sequence[int], claims: Sequence[Claim]) -> list[list[int]]:
    """Deserved amounts by claim and row, rounded down.

    Each round every claim that is not met gets its part by weight of what remains, at most its limit and its request,
    at least its guarantee; it is met once it has its request or when a round changes nothing for it. What was not
    taken remains for the next round. O(rounds x claims x rows); a round meets a claim or ends it.
    """
    denominator = 1
    remaining = list(total)
    deserved = [[0] * len(remaining) for _ in claims]
    unmet = list(range(len(claims)))
    while unmet and any(remaining):
        weights = sum(claims[i].weight for i in unmet)
        factor = weights // math.gcd(weights, *remaining)
        if denominator * factor <= _MAX_DENOMINATOR:
            denominator *= factor
            remaining = [amount * factor for amount in remaining]
            deserved = [[amount * factor for amount in row] for row in deserved]
        before, left = remaining, list(remaining)
        still = []
        for i in unmet:
            claim, old = claims[i], deserved[i]
            new = _clamped(
                claim, [d + r * claim.weight // weights for d, r in zip(old, before, strict=True)], denominator
            )
            deserved[i] = new
            left = [amount - n + d for amount, n, d in zip(left, new, old, strict=True)]
            met = all(n >= r * denominator for n, r in zip(new, claim.request, strict=True))
            if not met and new != old:
                still.append(i)
        unmet, remaining = still, [max(0, amount) for amount in left]
        if remaining == before:
            break
    return [[amount // denominator for amount in row] for row in deserved]


def _clamped(claim: Claim, amounts: list[int], denominator: int) -> list[int]:
    bounds = zip(amounts, claim.limit, claim.request, claim.guarantee, strict=True)
    return [
        max(min(amount, limit * denominator, request * denominator), guarantee * denominator)
        for amount, limit, request, guarantee in bounds
    ]


def real_capability(
    total: Sequence[int], guaranteed: Sequence[int], own: Sequence[int], capability: Sequence[int | None]
) -> list[int]:
    """The most that a queue may ever use: what others have no guarantee of, its own guarantee, at most its capability.

    Args:
        total: of those who share. guaranteed: of all of them together, the own one included.
        own: its guarantee. capability: None = no limit of its own.
    """
    rows = zip(total, guaranteed, own, capability, strict=True)
    return [
        real if cap is None else min(real, cap) for real, cap in ((max(0, t - g) + o, cap) for t, g, o, cap in rows)
    ]
