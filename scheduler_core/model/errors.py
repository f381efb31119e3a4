"""The one exception for input that cannot be used."""

from typing import Any


class BadInput(ValueError):
    """Input that cannot be used: names the place, the value and what would be right.

    Attributes:
        code: stable machine word, e.g. ``unknown_plugin``, ``bad_quantity``.
        file, line, path: where (``path`` is a pointer such as ``items[3].spec.capability.cpu``).
        value: what was found there. hint: what would be right."""

    def __init__(
        self, code: str, message: str, *, file: str | None = None, path: str | None = None, line: int | None = None,
        value: Any = None, hint: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.code, self.message = code, message
        self.file, self.path, self.line, self.value, self.hint = file, path, line, value, hint

    def to_json(self) -> dict[str, Any]:
        return {
            "error": {
                "code": self.code,
                "file": self.file,
                "path": self.path,
                "line": self.line,
                "value": self.value,
                "message": self.message,
                "hint": self.hint,
            }
        }


class BrokenInvariant(AssertionError):
    """The scheduler's own books do not add up: a bug, never bad input."""
