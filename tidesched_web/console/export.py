import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from django.http import HttpResponse

from tidesched_web.common.spreadsheets import guarded

MAX_ROWS = 10_000


def plain_cards(cards: Mapping[str, float]) -> str:
    return " ".join(f"{name}={count:g}" for name, count in sorted(cards.items()))


def csv_list(name: str, columns: Mapping[str, Callable[[Any], object]], rows: Iterable[Any]) -> HttpResponse:
    return csv_response(name, list(columns), ([take(row) for take in columns.values()] for row in rows))


def csv_response(name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> HttpResponse:
    """A CSV file with a byte-order mark, so that spreadsheets read Chinese."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([guarded(name) for name in header])
    writer.writerows(
        [guarded(value) if isinstance(value, str) else value for value in row] for row in islice(rows, MAX_ROWS)
    )
    response = HttpResponse("\ufeff" + text.getvalue(), content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    response.headers["Cache-Control"] = "no-store"
    return response
