import re
from fractions import Fraction
from functools import cache
from typing import Final

# A board has seven compute slices, so it can be cut into 7 // g slices of g of them.
_COMPUTE_SLICES: Final = 7
_MIG: Final = re.compile(r"/mig-(\d+)g\.")
_MPS: Final = re.compile(r"/mps-[^*/]*\*1/(\d+)$")


@cache
def share_of_board(card: str) -> Fraction:
    """1 for a whole card, 1/7 for a slice ``1g``, 1/2 for a slice ``3g`` (two fit on a board) or an MPS half."""
    if found := _MIG.search(card):
        compute = int(found[1])
        return Fraction(1, _COMPUTE_SLICES // compute) if 0 < compute <= _COMPUTE_SLICES else Fraction(1)
    if (found := _MPS.search(card)) and int(found[1]):
        return Fraction(1, int(found[1]))
    return Fraction(1)


def is_part(card: str) -> bool:
    return share_of_board(card) != 1
