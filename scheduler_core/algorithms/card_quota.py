"""Whether card demands fit a quota when some of them may use one of several card types. Source: volcano-semantics 4.10,
JOB and TASK mode; defect d (promised choices count against none of their cards) is avoided by Hall's condition: for
every union of choices, what can only be served inside it must fit inside it."""

from collections.abc import Mapping, Sequence

# With more distinct overlapping choices than this only the choices themselves and their whole union are checked;
# allocation checks every single card anyway.
_MAX_CHOICES = 8

Choice = tuple[int, ...]


def first_excess(
    new: Mapping[Choice, int], promised: Mapping[Choice, int], left: Sequence[int]
) -> tuple[frozenset[int], int, int] | None:
    """The first set of card types in which the demands do not fit.

    Args:
        new: milli-cards asked for, by the card types of which any will do.
        promised: the same for what was promised before.
        left: milli-cards left of each type; negative = over its quota already.

    Returns:
        None when everything fits, else (card types, asked for within them by all, left in them). Only sets that the
        new demand touches are looked at: an old breach elsewhere is not its fault. O(2^choices), choices <= 8."""
    total: dict[frozenset[int], int] = {}
    for demands in (promised, new):
        for choice, milli in demands.items():
            if milli > 0:
                key = frozenset(choice)
                total[key] = total.get(key, 0) + milli
    for choice in sorted(choice for choice, milli in new.items() if milli > 0):
        for union in _unions(frozenset(choice), list(total)):
            asked = sum(milli for key, milli in total.items() if key <= union)
            have = sum(left[card] for card in union)
            if asked > have:
                return union, asked, have
    return None


def _unions(start: frozenset[int], choices: list[frozenset[int]]) -> list[frozenset[int]]:
    """Unions of ``start`` with overlapping choices, the smallest first."""
    reach, touching = start, [start]
    grew = True
    while grew:
        grew = False
        for choice in choices:
            if choice & reach and choice not in touching:
                touching.append(choice)
                reach, grew = reach | choice, True
    others = [choice for choice in touching if choice != start]
    if len(others) > _MAX_CHOICES:
        return [start, reach]
    unions = {start}
    for choice in others:
        unions |= {union | choice for union in unions}
    return sorted(unions, key=lambda union: (len(union), sorted(union)))
