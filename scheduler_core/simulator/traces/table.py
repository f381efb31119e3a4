"""CSV with a known header, read strictly."""

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from scheduler_core.model.errors import BadInput


class Row:
    """One line of a table; every access that fails names the place."""

    __slots__ = ("_values", "file", "line")

    def __init__(self, file: str, line: int, values: dict[str, str]) -> None:
        self.file, self.line, self._values = file, line, values

    def text(self, column: str) -> str:
        """The field as it is, without surrounding blanks."""
        return self._values[column].strip()

    def whole(self, column: str) -> int:
        """A whole number, zero or more. Raises BadInput: ``bad_csv``."""
        text = self.text(column)
        if not (text.isascii() and text.isdigit()):
            raise self.error(column, "is not a whole number of zero or more", hint="for example 8")
        return int(text)

    def number(self, column: str) -> float:
        """A finite number, zero or more. Raises BadInput: ``bad_csv``."""
        try:
            value = float(self.text(column))
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < 0:
            raise self.error(column, "is not a number of zero or more", hint="for example 300 or 0.18")
        return value

    def error(self, column: str, what: str, *, hint: str | None = None) -> BadInput:
        """The error that ``column`` of this line ``what``."""
        value = self.text(column)
        return BadInput(
            "bad_csv", f"{value!r} {what}", file=self.file, line=self.line, path=column, value=value, hint=hint
        )


def read_rows(path: Path, columns: tuple[str, ...], defaults: Mapping[str, str] | None = None) -> Iterator[Row]:
    """The lines of ``path`` below its header, which must name all of ``columns``. ``defaults``: texts of columns that
    may be missing. Raises BadInput: ``unreadable_file``, ``bad_csv`` (a missing column, a line of another length)."""
    file = str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadInput("unreadable_file", f"cannot be read: {reason}", file=file) from None
    except UnicodeDecodeError as error:
        raise BadInput("bad_csv", f"not UTF-8 text (byte {error.start})", file=file) from None
    reader = csv.reader(text.splitlines())
    header = [name.strip() for name in next(reader, [])]
    for column in columns:
        if column not in header:
            raise BadInput(
                "bad_csv", f"no column {column!r} in the header", file=file, line=1, path=column,
                value=",".join(header), hint=f"the first line names the columns {','.join(columns)}",
            )  # fmt: skip
    try:
        for fields in reader:
            if not fields:
                continue
            if len(fields) != len(header):
                raise BadInput(
                    "bad_csv", f"{len(fields)} fields where the header has {len(header)}", file=file,
                    line=reader.line_num, value=",".join(fields), hint="one field for each column",
                )  # fmt: skip
            yield Row(file, reader.line_num, {**(defaults or {}), **dict(zip(header, fields, strict=True))})
    except csv.Error as error:
        raise BadInput("bad_csv", str(error), file=file, line=reader.line_num) from None
