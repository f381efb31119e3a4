"""The one application error of the host, and the one place that says which HTTP status each code has."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from django.db.models import QuerySet
from django.utils.translation import gettext as _

# Every code that the host uses. An unknown code is a bug and fails at once, in the constructor.
STATUS_OF: Final[Mapping[str, HTTPStatus]] = {
    "invalid": HTTPStatus.BAD_REQUEST,
    "unknown_parameter": HTTPStatus.BAD_REQUEST,
    "invalid_cursor": HTTPStatus.BAD_REQUEST,
    "too_many_points": HTTPStatus.BAD_REQUEST,
    "malformed_body": HTTPStatus.BAD_REQUEST,
    "reason_required": HTTPStatus.BAD_REQUEST,
    "invalid_policy": HTTPStatus.BAD_REQUEST,
    "invalid_tree": HTTPStatus.BAD_REQUEST,
    "weak_password": HTTPStatus.BAD_REQUEST,
    "misleading_name": HTTPStatus.BAD_REQUEST,
    "wrong_password": HTTPStatus.BAD_REQUEST,
    "unknown_user": HTTPStatus.BAD_REQUEST,
    "unknown_scope": HTTPStatus.BAD_REQUEST,
    "unknown_tenant": HTTPStatus.BAD_REQUEST,
    "unknown_card": HTTPStatus.BAD_REQUEST,
    "unknown_field": HTTPStatus.BAD_REQUEST,
    "unknown_object": HTTPStatus.BAD_REQUEST,
    "against_rules": HTTPStatus.BAD_REQUEST,
    "not_authenticated": HTTPStatus.UNAUTHORIZED,
    "invalid_token": HTTPStatus.UNAUTHORIZED,
    "permission_denied": HTTPStatus.FORBIDDEN,
    "approver_not_independent": HTTPStatus.FORBIDDEN,
    "missing_scope": HTTPStatus.FORBIDDEN,
    "csrf_failed": HTTPStatus.FORBIDDEN,
    "mfa_required": HTTPStatus.FORBIDDEN,
    "not_found": HTTPStatus.NOT_FOUND,
    "method_not_allowed": HTTPStatus.METHOD_NOT_ALLOWED,
    "not_acceptable": HTTPStatus.NOT_ACCEPTABLE,
    "conflict": HTTPStatus.CONFLICT,
    "already_exists": HTTPStatus.CONFLICT,
    "in_use": HTTPStatus.CONFLICT,
    "last_admin": HTTPStatus.CONFLICT,
    "too_many_kept": HTTPStatus.CONFLICT,
    "link_is_dead": HTTPStatus.GONE,
    "request_in_flight": HTTPStatus.CONFLICT,
    "stale": HTTPStatus.PRECONDITION_FAILED,
    "body_too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "head_too_large": HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "unsupported_media_type": HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    "quota_breach": HTTPStatus.UNPROCESSABLE_ENTITY,
    "idempotency_key_reused": HTTPStatus.UNPROCESSABLE_ENTITY,
    "precondition_required": HTTPStatus.PRECONDITION_REQUIRED,
    "throttled": HTTPStatus.TOO_MANY_REQUESTS,
    "too_many_streams": HTTPStatus.TOO_MANY_REQUESTS,
    "internal_error": HTTPStatus.INTERNAL_SERVER_ERROR,
    "unavailable": HTTPStatus.SERVICE_UNAVAILABLE,
    "undecryptable": HTTPStatus.INTERNAL_SERVER_ERROR,
}


# So many fields at fault are answered one by one; of the others it is said how many they are.
MOST_ERRORS: Final = 200


class DomainError(Exception):
    """A request that cannot be done as asked: a stable code, a sentence for a person, and figures as fields.

    ``extra`` becomes top-level members of the problem document; ``extra["errors"]`` is a list of
    ``{pointer, code, detail, …}``, one for each field at fault: the first `MOST_ERRORS` of them, and ``more_errors``
    says how many more there are.
    """

    def __init__(self, code: str, message: str, extra: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = STATUS_OF[code]
        self.code, self.message, self.extra = code, message, dict(extra or {})
        errors = self.extra.get("errors")
        if isinstance(errors, list) and len(errors) > MOST_ERRORS:
            self.extra["errors"] = errors[:MOST_ERRORS]
            self.extra["more_errors"] = self.extra.get("more_errors", 0) + len(errors) - MOST_ERRORS

    @classmethod
    def for_field(cls, pointer: str, message: str, *, code: str = "invalid", **figures: Any) -> DomainError:
        """An error of one field; ``pointer`` is a JSON pointer into the request (``/card_quota/NVIDIA-H200``)."""
        return cls(code, message, {"errors": [{"pointer": pointer, "code": code, "detail": message, **figures}]})


LONGEST_REASON = 2000


def stored_reason(reason: str) -> str:
    reason = reason.strip()
    if "\0" in reason or len(reason) > LONGEST_REASON:
        text = _("This has to be a text of at most %(most)d characters.") % {"most": LONGEST_REASON}
        raise DomainError.for_field("/reason", text)
    return reason


def need_reason(reason: str) -> str:
    reason = stored_reason(reason)
    if not reason:
        text = _("Say why: the reason goes into the audit log.")
        raise DomainError.for_field("/reason", text, code="reason_required")
    return reason


def require_room(rows: QuerySet[Any], most: int, text: str) -> None:
    """One query. Requests at the same moment may each be the last one: a few more then, never without end."""
    if rows.order_by()[:most].count() >= most:
        raise DomainError("too_many_kept", text % {"limit": most}, {"limit": most})
