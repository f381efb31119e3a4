"""Cells that a spreadsheet would run as a formula: guarded on their way out, and read again as they were."""

from __future__ import annotations

# A spreadsheet runs a cell that begins so.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def guarded(text: str) -> str:
    """The text as a cell that every spreadsheet takes for text. Numbers are written as numbers and do not come here."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def unguarded(cell: str) -> str:
    """The text of a cell that was guarded."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell
