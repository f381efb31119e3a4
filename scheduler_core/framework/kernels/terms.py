"""Kinds of node score terms, as numbers."""

from __future__ import annotations

# A vector; the formulas of :mod:`scheduler_core.algorithms.scoring` over cpu, memory and, for the last, cards.
STATIC, LEAST, MOST, BALANCED = range(4)
# Closes what one plugin says: its terms are summed first, then the plugins.
NEXT = -1
