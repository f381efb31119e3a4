"""Kinds of node score terms, as numbers."""

from __future__ import annotations

# A vector; the formulas of :mod:`scheduler_core.algorithms.scoring` over cpu, memory and, for the last, cards; those of
# :mod:`scheduler_core.algorithms.binpack` and :mod:`scheduler_core.algorithms.capacity_shape` over named resources;
# that of :mod:`scheduler_core.algorithms.fragmentation`; what a plugin has only in Python, asked for in batches.
STATIC, LEAST, MOST, BALANCED, PACK, SHAPE, FRAGMENTS, OWN = range(8)
# Closes what one plugin says: its terms are summed first, then the plugins.
NEXT = -1
