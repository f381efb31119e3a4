"""A column that is not there is left alone; an empty cell is what is not set: no limit, no cards of that type."""

import csv
import io
import re
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any, Final

from django.utils.translation import gettext as _

from tidesched_web.changes.tree_document import Document, Edits, key_of, kind_of, parts_of, patch_between
from tidesched_web.common.errors import DomainError
from tidesched_web.common.hints import LONGEST_NAME, nearest
from tidesched_web.common.spreadsheets import guarded, unguarded

OWNERS: Final = ("service_type", "tenant", "project", "business_line")
NUMBERS: Final = ("weight", "priority", "cpu_milli", "memory_bytes")
# A table of every queue of a large cluster is a fraction of these; nothing beyond them is looked at.
MOST_CHARACTERS: Final = 8_000_000
MOST_ROWS: Final = 50_001
MOST_DIGITS: Final = 18
UNSET_WHEN_EMPTY: Final = frozenset({"cpu_milli", "memory_bytes"})


def queues_of(documents: Mapping[str, Document]) -> dict[str, Document]:
    return {parts_of(key)[0]: document for key, document in sorted(documents.items()) if kind_of(key) == "queue"}


def columns(cards: Iterable[str]) -> list[str]:
    return ["queue", *OWNERS, *NUMBERS, *sorted(cards)]


def rows(documents: Mapping[str, Document], cards: Iterable[str]) -> list[list[str]]:
    names = sorted(cards)
    found = []
    for name, queue in queues_of(documents).items():
        fields = [str(queue.get(field, "")) for field in (*OWNERS, *NUMBERS)]
        found.append([name, *fields, *(str(queue["card_quota"].get(card, "")) for card in names)])
    return found


def dumps(documents: Mapping[str, Document], cards: Iterable[str]) -> str:
    """The table, with a byte-order mark so that spreadsheets read it as UTF-8."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    names = list(cards)
    writer.writerow([guarded(cell, exact=True) for cell in columns(names)])
    writer.writerows([guarded(cell, exact=True) for cell in row] for row in rows(documents, names))
    return "\ufeff" + text.getvalue()


def loads(
    text: str, documents: Mapping[str, Document], cards: Iterable[str], aliases: Mapping[str, str] | None = None
) -> Edits:
    plain = text.removeprefix("\ufeff")
    if len(plain) > MOST_CHARACTERS:
        said = _("The table is longer than %(most)d characters.") % {"most": MOST_CHARACTERS}
        raise DomainError.for_field("", said, code="body_too_large")
    try:
        table = list(islice(csv.reader(io.StringIO(plain), delimiter=_delimiter(plain), strict=True), MOST_ROWS + 1))
    except csv.Error as error:
        raise DomainError.for_field("", _("This is no table: %(problem)s.") % {"problem": error}) from None
    if len(table) > MOST_ROWS:
        raise DomainError.for_field("", _("The table has more than %(most)d lines.") % {"most": MOST_ROWS})
    known = set(cards)
    named = [unguarded(cell.strip()) for cell in table[0]] if table else []
    head = [(aliases or {}).get(cell, cell) for cell in named]
    _check_head(head, known)
    queues = queues_of(documents)
    wanted: dict[str, Document] = {}
    for number, cells in enumerate(table[1:], 2):
        if not any(cell.strip() for cell in cells):
            continue
        if over := next((cell.strip() for cell in cells[len(head) :] if cell.strip()), ""):
            said = _("Line %(line)d: %(cell)r is beyond the last column of the head.")
            raise DomainError.for_field("", said % {"line": number, "cell": over[:40]})
        row = dict(zip(head, (unguarded(cell.strip()) for cell in cells), strict=False))
        name = row.pop("queue", "")
        if name not in queues:
            said = _("Line %(line)d: there is no queue %(name)r.") % {"line": number, "name": name[:LONGEST_NAME]}
            raise DomainError.for_field(f"/{name}", said + _near(name, queues), code="unknown_object")
        key = key_of("queue", name)
        if key in wanted:
            said = _("Line %(line)d: %(name)r is there twice.") % {"line": number, "name": name}
            raise DomainError.for_field(f"/{name}", said)
        wanted[key] = _edited(queues[name], row, known, number)
    return patch_between({key: documents[key] for key in wanted}, wanted)


def _delimiter(text: str) -> str:
    line = text.partition("\n")[0]
    return max(",;\t", key=line.count)


def _check_head(head: list[str], cards: set[str]) -> None:
    if "queue" not in head:
        raise DomainError.for_field("/queue", _("The table needs a column named queue."))
    for name in head:
        if name not in {"queue", *OWNERS, *NUMBERS, *cards}:
            said = _("There is no column %(name)r.") % {"name": name[:LONGEST_NAME]}
            raise DomainError.for_field(
                f"/{name}", said + _near(name, ["queue", *OWNERS, *NUMBERS, *cards]), code="unknown_field"
            )
        if head.count(name) > 1:
            raise DomainError.for_field(f"/{name}", _("The column %(name)r is there twice.") % {"name": name})


def _near(name: str, known: Collection[str]) -> str:
    near = nearest(name, known)
    return " " + _("Did you mean %(near)r?") % {"near": near} if near else ""


def _edited(queue: Document, row: Mapping[str, str], cards: set[str], line: int) -> Document:
    document: dict[str, Any] = {**queue, "card_quota": dict(queue["card_quota"])}
    for name, cell in row.items():
        if name in cards:
            document["card_quota"].pop(name, None)
            if cell:
                document["card_quota"][name] = _number(cell, name, line)
        elif name in NUMBERS and (cell or name in UNSET_WHEN_EMPTY):
            document[name] = _number(cell, name, line) if cell else None
        elif name in OWNERS and cell != str(queue.get(name, "")):
            document[name] = cell or None
    return {name: value for name, value in document.items() if value is not None}


# Spreadsheets group thousands and add a fraction of nothing; "1,5" is no number of cards.
_WHOLE = re.compile(r"(-?\d+|-?[1-9]\d{0,2}([, \u00a0])\d{3}(?:\2\d{3})*)(\.0+)?")
# One sign before three digits parts thousands for some readers and a fraction for others.
_TWO_MEANINGS = re.compile(r"(-?[1-9]\d{0,2})[.,](\d{3})")


def _number(cell: str, name: str, line: int) -> int:
    if two := _TWO_MEANINGS.fullmatch(cell):
        said = _("Line %(line)d, %(column)s: %(cell)r can mean %(whole)s or %(part)s. Write it without separators.")
        part = f"{two[1]}.{two[2]}".rstrip("0").rstrip(".")
        values = {"line": line, "column": name, "cell": cell, "whole": two[1] + two[2], "part": part}
        raise DomainError.for_field(f"/{name}", said % values)
    found = _WHOLE.fullmatch(cell)
    if found is None:
        said = _("Line %(line)d, %(column)s: %(cell)r is no whole number.")
        raise DomainError.for_field(f"/{name}", said % {"line": line, "column": name, "cell": cell[:40]})
    digits = re.sub("[, \u00a0]", "", found[1])
    if len(digits) > MOST_DIGITS:
        said = _("Line %(line)d, %(column)s: a number may have %(most)d digits.")
        raise DomainError.for_field(f"/{name}", said % {"line": line, "column": name, "most": MOST_DIGITS})
    return int(digits)
