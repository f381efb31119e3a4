import re
from typing import Final

from tidesched_web.common.shown_names import hidden_signs

# A spreadsheet runs a cell that begins so; one in Chinese or Japanese takes the full-width signs too. A carriage return
# is written out. Behind the guard of another program it is guarded once more, so that it is read again as it was.
_FORMULA: Final = re.compile("'*[=+@\t\n\uff1d\uff0b\uff0d\uff20-]")
# Signs between words and lines of a text, which every reader shows as that.
_PLAIN: Final = frozenset("\t\n")
# What looks written out in the text itself.
_LOOKS_ESCAPED: Final = re.compile(r"\\(?=u[0-9A-F]{4}|U[0-9A-F]{8})")
_ESCAPED: Final = re.compile(r"\\u([0-9A-F]{4})|\\U([0-9A-F]{8})")


def guarded(text: str, *, exact: bool = False) -> str:
    """``exact``: the cell is read again, so what looks written out in the text itself is too."""
    text = text.replace("\r\n", "\n")
    shown = _written_out(_LOOKS_ESCAPED.sub(r"\\u005C", text) if exact and "\\" in text else text)
    return f"'{shown}" if _FORMULA.match(shown) else shown


def unguarded(cell: str) -> str:
    plain = cell[1:] if cell.startswith("'") and _FORMULA.match(cell, 1) else cell
    return _ESCAPED.sub(_read, plain) if "\\" in plain else plain


def _written_out(text: str) -> str:
    for sign in {sign for _place, sign in hidden_signs(text)} - _PLAIN:
        text = text.replace(sign, f"\\u{ord(sign):04X}" if ord(sign) < 0x10000 else f"\\U{ord(sign):08X}")
    return text


def _read(found: re.Match[str]) -> str:
    """The sign that was written out; anything else that looks so is the text of another program."""
    number = int(found[1] or found[2], 16)
    sign = chr(number) if number <= 0x10FFFF else ""
    return sign if sign == "\\" or next(hidden_signs(sign), None) else found[0]
