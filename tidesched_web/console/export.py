"""Lists as CSV: the same filter as the page, all its rows up to a bound."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from itertools import islice

from django.http import HttpResponse

MAX_ROWS = 10_000
# A spreadsheet runs a cell that begins so as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def _plain(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def csv_response(name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> HttpResponse:
    """A CSV file with a byte-order mark, so that spreadsheets read Chinese."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows([_plain(value) for value in row] for row in islice(rows, MAX_ROWS))
    response = HttpResponse("\ufeff" + text.getvalue(), content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    response.headers["Cache-Control"] = "no-store"
    return response
