"""Something wrong with an object or a policy, as sessions and lint tell it."""

import enum

import msgspec

from scheduler_core.model.errors import BadInput


class Severity(enum.StrEnum):
    """How bad it is: does not work, works otherwise than it reads, or is worth a second look."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Finding(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What is wrong, where, and what would be right. ``code``: stable machine word. ``object``: ``Kind
    namespace/name``, or the policy. ``path``: pointer below the object (``spec.tasks[0].policies``). ``fix``: what to
    write."""

    severity: Severity
    code: str
    object: str
    path: str
    message: str
    fix: str

    def to_json(self) -> dict[str, str]:
        return {name: str(getattr(self, name)) for name in self.__struct_fields__}


def unreadable(error: BadInput, name: str) -> Finding:
    """Input that cannot be used, as a finding; it says the value."""
    shown = "" if error.value is None or str(error.value) in error.message else f" (it is {error.value!r})"
    return Finding(
        severity=Severity.ERROR, code=error.code, object=name, path=(error.path or "").lstrip("."),
        message=error.message + shown, fix=error.hint or "",
    )  # fmt: skip
