"""The one reader of tables, whichever door they come through: bytes, lines, heads and numbers.

What can mean two things is refused, never taken.
"""

import codecs
import csv
import io
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Final

from django.utils.translation import gettext as _

from tidesched_web.common.errors import DomainError
from tidesched_web.common.hints import LONGEST_NAME, nearest
from tidesched_web.common.sentences import listed
from tidesched_web.common.spreadsheets import unguarded

# A table of every queue of a large cluster is a fraction of these; nothing beyond them is looked at.
MOST_CHARACTERS: Final = 8_000_000
MOST_ROWS: Final = 50_001
_MARKS: Final = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
# The line by which Excel is told the delimiter.
_SEPARATOR: Final = re.compile(r'\s*"?sep=([^\w\s"]|\t)"?[,;\t ]*(?:\n|$)', re.IGNORECASE)
_QUOTED: Final = re.compile(r'"[^"]*"')


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    cells: list[str]


def decoded(data: bytes) -> str:
    """UTF-8, or UTF-16 with its mark; of other bytes no sign is guessed."""
    mark, code = next((pair for pair in _MARKS.items() if data.startswith(pair[0])), (b"", "utf-8"))
    rest = data[len(mark) :]
    try:
        text = rest.decode(code)
        before = text.partition("\0")[0] if "\0" in text else None
    except UnicodeDecodeError as error:
        before = rest[: error.start].decode(code)
    if before is None:
        return text
    said = _("Line %(line)d has bytes that are no UTF-8: save the file as UTF-8 (in a spreadsheet “CSV UTF-8”).")
    raise DomainError.for_field("", said % {"line": before.count("\n") + 1})


def lines_of(text: str, delimiter: str = "") -> list[Line]:
    """Every line with its number in the file, also the empty ones."""
    if len(text) > MOST_CHARACTERS:
        said = _("The table is longer than %(most)d characters.") % {"most": MOST_CHARACTERS}
        raise DomainError.for_field("", said, code="body_too_large")
    plain = re.sub("\r\n?", "\n", text.removeprefix("\ufeff"))
    passed = 0
    if not delimiter and (said_so := _SEPARATOR.match(plain)):
        delimiter, passed = said_so[1], said_so[0].count("\n")
        plain = plain[said_so.end() :]
    rows = csv.reader(io.StringIO(plain), delimiter=delimiter or _delimiter(plain), strict=True)
    found, number = [], passed + 1
    try:
        for cells in islice(rows, MOST_ROWS + 1):
            found.append(Line(number, cells))
            number = passed + rows.line_num + 1
    except csv.Error as error:
        said = _("Line %(line)d, or one after it, has a quotation mark that does not end, or a cell that is too long.")
        raise DomainError.for_field("", said % {"line": number}) from error
    if len(found) > MOST_ROWS:
        raise DomainError.for_field("", _("The table has more than %(most)d lines.") % {"most": MOST_ROWS})
    return found


def _delimiter(text: str) -> str:
    """Of the first line that says something, outside of its quotes."""
    line = next((line for line in _QUOTED.sub("_", text).split("\n") if re.search(r"\w", line)), "")
    return max("\t;,", key=line.count)


def table_of(text: str) -> tuple[list[str], list[Line]]:
    """The heads, and the lines below with as many cells. A column without a head is none, and holds nothing."""
    filled = [line for line in lines_of(text) if any(cell.strip() for cell in line.cells)]
    head = [unguarded(cell.strip()) for cell in filled[0].cells] if filled else []
    lines = []
    for line in filled[1:]:
        cells = [unguarded(cell.strip()) for cell in line.cells]
        for place, cell in enumerate(cells):
            if cell and not (place < len(head) and head[place]):
                said = _("Line %(line)d, column %(column)d: %(cell)r is in a column without a head.")
                values = {"line": line.number, "column": place + 1, "cell": cell[:40]}
                raise DomainError.for_field("", said % values)
        lines.append(Line(line.number, cells))
    return head, lines


def columns_of(head: Iterable[str], exact: dict[str, str], loose: Iterable[tuple[str, str]] = ()) -> list[str]:
    """The column that each head means; the case of letters counts only where two differ in nothing else."""
    folded: dict[str, set[str]] = defaultdict(set)
    for name, column in (*exact.items(), *loose):
        folded[name.casefold()].add(column)
    found: list[str] = []
    for name in head:
        meant = sorted({exact[name]} if name in exact else folded[name.casefold()] if name else {""})
        if not meant:
            said = _("There is no column %(name)r.") % {"name": name[:LONGEST_NAME]}
            raise DomainError.for_field(f"/{name}", said + near(name, list(exact)), code="unknown_field")
        if len(meant) > 1:
            said = _("The column %(name)r can mean %(columns)s.") % {"name": name, "columns": listed(meant)}
            raise DomainError.for_field(f"/{name}", said)
        if meant[0] and meant[0] in found:
            said = _("The column %(name)r is there twice.") % {"name": meant[0]}
            raise DomainError.for_field(f"/{meant[0]}", said)
        found.append(meant[0])
    return found


def near(name: str, known: list[str]) -> str:
    found = nearest(name, known)
    return " " + _("Did you mean %(near)r?") % {"near": found} if found else ""


# One sign before three digits parts thousands for some readers and a fraction for others.
_TWO_MEANINGS: Final = re.compile(r"(-?[1-9][0-9]{0,2})[.,]([0-9]{3})")
_PLAIN: Final = re.compile(r"-?(?:[0-9]+|[1-9][0-9]{0,2}([, '’])[0-9]{3}(?:\1[0-9]{3})*)(?:\.[0-9]+)?")
_SCIENTIFIC: Final = re.compile(r"(-?[0-9])(?:[.,]([0-9]+))?E\+?([0-9]{1,2})", re.IGNORECASE)
MOST_DIGITS: Final = 40


def number(text: str) -> Decimal:
    """As `QuotaFigures.number` of the quota editor, which reads what is typed."""
    plain = unicodedata.normalize("NFKC", text).strip()
    if two := _TWO_MEANINGS.fullmatch(plain):
        part = f"{two[1]}.{two[2]}".rstrip("0").rstrip(".")
        said = _("%(cell)r can mean %(part)s or %(grouped)s: write %(part)s or %(whole)s.")
        raise ValueError(said % {"cell": text, "part": part, "grouped": f"{two[1]} {two[2]}", "whole": two[1] + two[2]})
    if _PLAIN.fullmatch(plain) and len(plain) <= MOST_DIGITS:
        return Decimal(re.sub("[, '’]", "", plain))
    if short := _SCIENTIFIC.fullmatch(plain):
        digits = short[2] or ""
        # Three digits after the sign may be thousands; fewer than the exponent has are not all that there were.
        if len(digits) >= int(short[3]) and len(digits) != 3:
            return Decimal(f"{short[1]}.{digits}E{short[3]}")
        said = _("A spreadsheet has shortened this number to %(cell)r: leave it as it was exported, or the column out.")
    else:
        said = _("%(cell)r is no number: write a point for a fraction, and nothing between thousands.")
    raise ValueError(said % {"cell": text[:40]})
