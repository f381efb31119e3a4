"""A column that is not there is left alone; an empty cell is what is not set: no limit, no cards of that type."""

import csv
import io
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import zip_longest
from typing import Any, Final

from django.utils.translation import gettext as _

from tidesched_web.changes.documents import MIB
from tidesched_web.changes.tree_document import Document, Edits, key_of, kind_of, parts_of, patch_between
from tidesched_web.common.card_names import card_label
from tidesched_web.common.errors import DomainError
from tidesched_web.common.hints import LONGEST_NAME
from tidesched_web.common.spreadsheets import guarded
from tidesched_web.common.tables import columns_of, near, number, table_of

OWNERS: Final = ("service_type", "tenant", "project", "business_line")
NUMBERS: Final = ("weight", "priority", "cpu_milli", "memory")
# Tables that were exported before have memory so, as a number that spreadsheets shorten.
BYTES: Final = "memory_bytes"
GIB: Final = 2**30
# A spreadsheet may shorten a number of more digits; with its unit it is a text.
MOST_SHOWN: Final = 10**8
MOST: Final = 10**19
UNSET_WHEN_EMPTY: Final = frozenset({"cpu_milli", BYTES})
_MEMORY: Final = re.compile(r"(.*[0-9])\s*([KMGTPE])iB?", re.IGNORECASE)


def queues_of(documents: Mapping[str, Document]) -> dict[str, Document]:
    return {parts_of(key)[0]: document for key, document in sorted(documents.items()) if kind_of(key) == "queue"}


def columns(cards: Iterable[str]) -> list[str]:
    return ["queue", *OWNERS, *NUMBERS, *sorted(cards)]


def rows(documents: Mapping[str, Document], cards: Iterable[str]) -> list[list[str]]:
    names = sorted(cards)
    found = []
    for name, queue in queues_of(documents).items():
        fields = [str(queue.get(field, "")) for field in (*OWNERS, "weight", "priority")]
        cpu, memory = queue.get("cpu_milli"), queue.get(BYTES)
        amounts = ["" if cpu is None else f"{cpu}m" if cpu >= MOST_SHOWN else str(cpu), _memory(memory)]
        found.append([name, *fields, *amounts, *(str(queue["card_quota"].get(card, "")) for card in names)])
    return found


def _memory(value: int | None) -> str:
    return "" if value is None else f"{value // MIB}Mi" if value % GIB else f"{value // GIB}Gi"


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
    known = set(cards)
    head, lines = table_of(text)
    names = {name: name for name in (*known, "queue", *OWNERS, *NUMBERS, BYTES)}
    columns_ = columns_of(head, {**(aliases or {}), **names}, ((card_label(card), card) for card in known))
    if "queue" not in columns_:
        raise DomainError.for_field("/queue", _("The table needs a column named queue."))
    if {"memory", BYTES} <= set(columns_):
        raise DomainError.for_field(f"/{BYTES}", _("The column %(name)r is there twice.") % {"name": "memory"})
    queues = queues_of(documents)
    wanted: dict[str, Document] = {}
    for line in lines:
        row = {name: cell for name, cell in zip_longest(columns_, line.cells[: len(head)]) if name}
        name = row.pop("queue") or ""
        if name not in queues:
            said = _("Line %(line)d: there is no queue %(name)r.") % {"line": line.number, "name": name[:LONGEST_NAME]}
            raise DomainError.for_field(f"/{name}", said + near(name, list(queues)), code="unknown_object")
        key = key_of("queue", name)
        if key in wanted:
            said = _("Line %(line)d: %(name)r is there twice.") % {"line": line.number, "name": name}
            raise DomainError.for_field(f"/{name}", said)
        wanted[key] = _edited(queues[name], row, known, line.number)
    return patch_between({key: documents[key] for key in wanted}, wanted)


def _edited(queue: Document, row: Mapping[str, str | None], cards: set[str], line: int) -> Document:
    document: dict[str, Any] = {**queue, "card_quota": dict(queue["card_quota"])}
    for column, cell in row.items():
        name = BYTES if column == "memory" else column
        before = document["card_quota"].get(name) if name in cards else document.get(name)
        if cell is None:
            # Some programs leave empty cells at the end of a line out, some people all that they do not mean.
            if before is not None and name not in ("weight", "priority"):
                said = _("Line %(line)d ends before the column %(column)s: write its cell, also an empty one.")
                raise DomainError.for_field(f"/{column}", said % {"line": line, "column": column})
        elif name in cards:
            document["card_quota"].pop(name, None)
            if cell:
                document["card_quota"][name] = _figure(cell, column, line)
        elif name in OWNERS:
            document[name] = before if cell == str(before or "") else cell or None
        elif cell or name in UNSET_WHEN_EMPTY:
            document[name] = _figure(cell, column, line) if cell else None
    return {name: value for name, value in document.items() if value is not None}


def _figure(cell: str, column: str, line: int) -> int:
    try:
        figure, step = _read(cell, column)
        if abs(figure) >= MOST:
            raise ValueError(_("%(cell)r is more than a number may be here.") % {"cell": cell[:40]})
        if figure % step:
            said = _("%(cell)r is no whole number.") if step == 1 else _("%(cell)r is no whole number of Mi.")
            raise ValueError(said % {"cell": cell[:40]})
    except ValueError as error:
        said = _("Line %(line)d, %(column)s: %(problem)s") % {"line": line, "column": column, "problem": error}
        raise DomainError.for_field(f"/{column}", said) from None
    return int(figure)


def _read(cell: str, column: str) -> tuple[Decimal, int]:
    """A number, and of what it has to be a whole multiple."""
    if column in ("memory", BYTES) and (found := _MEMORY.fullmatch(cell)):
        return number(found[1]) * 1024 ** ("KMGTPE".index(found[2].upper()) + 1), MIB
    if column == "memory" and number(cell):
        raise ValueError(_("%(cell)r has no unit: write it as in 512Gi or 640Mi.") % {"cell": cell[:40]})
    return number(cell.removesuffix("m") if column == "cpu_milli" else cell), MIB if column == BYTES else 1
