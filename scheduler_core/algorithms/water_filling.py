"""What each queue deserves of a total: shares by weight, and what a queue cannot use is distributed again. Exact:
amounts are integers over one common denominator, so that a queue that deserves four cards deserves all of them. Source:
volcano-semantics 4.8 (proportion) and the vectors of section 9."""

import math
from collections.abc import Sequence

import msgspec

# Beyond this denominator a round gives whole units only; reached by hundreds of rounds with weights that share nothing.
_MAX_DENOMINATOR = 1 << 512


class Claim(msgspec.Struct, frozen=True, gc=False):
    """One queue. All amounts by row, integers. ``weight``: 1 or more. ``request``: what it uses and asks for.
    ``limit``: most that it may get. ``guarantee``: what it gets in any case."""

    weight: int
    request: Sequence[int]
    limit: Sequence[int]
    guarantee: Sequence[int]


def water_filling(total: Sequence[int], claims: Sequence[Claim]) -> list[list[int]]:
    """Deserved amounts by claim and row, rounded down.

    First each queue gets its part by weight, at most its limit and its request, at least its guarantee. What was not
    taken goes by weight to those who still want some of it, again and again. Upstream hands it out to those too who
    take nothing of it, as long as they want something else, and comes to the same end in endlessly many rounds.
    O(rows x rounds x claims); a round meets a claim or is the last."""
    columns = [
        _fill(amount, [(c.weight, min(c.limit[row], c.request[row]), c.guarantee[row]) for c in claims])
        for row, amount in enumerate(total)
    ]
    return [list(amounts) for amounts in zip(*columns, strict=True)] if columns else [[] for _ in claims]


def _fill(total: int, claims: Sequence[tuple[int, int, int]]) -> list[int]:
    """One row; ``claims``: weight, most, least."""
    weights = sum(weight for weight, _, _ in claims)
    if not claims or not total:
        return [least for _, _, least in claims]
    # Amounts are integers over the denominator.
    denominator = weights
    given = [max(min(total * weight, most * denominator), least * denominator) for weight, most, least in claims]
    rest = total * denominator - sum(given)
    while rest > 0:
        open_to = [i for i, (_, most, _) in enumerate(claims) if given[i] < most * denominator]
        if not open_to:
            break
        weights = sum(claims[i][0] for i in open_to)
        factor = weights // math.gcd(weights, rest)
        if denominator * factor <= _MAX_DENOMINATOR:
            denominator, rest, given = denominator * factor, rest * factor, [amount * factor for amount in given]
        before = rest
        for i in open_to:
            weight, most, _ = claims[i]
            more = min(before * weight // weights, most * denominator - given[i])
            given[i] += more
            rest -= more
        if rest == before:
            break
    return [amount // denominator for amount in given]


def real_capability(
    total: Sequence[int], guaranteed: Sequence[int], own: Sequence[int], capability: Sequence[int | None]
) -> list[int]:
    """The most that a queue may ever use: what others have no guarantee of, its own guarantee, at most its capability.
    ``total``: of those who share. ``guaranteed``: of all of them together, the own one included. ``own``: its
    guarantee. ``capability``: None = no limit of its own."""
    rows = zip(total, guaranteed, own, capability, strict=True)
    return [
        real if cap is None else min(real, cap) for real, cap in ((max(0, t - g) + o, cap) for t, g, o, cap in rows)
    ]
