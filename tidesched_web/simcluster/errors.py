from typing import Any

from tidesched_web.simcluster.resources import ResourceType

Cause = dict[str, str]


class ApiError(Exception):
    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        kind: ResourceType | None = None,
        name: str = "",
        causes: list[Cause] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message
        self.kind, self.name, self.causes, self.retry_after = kind, name, causes, retry_after

    def to_status(self) -> dict[str, Any]:
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        details: dict[str, Any] = {}
        if self.name:
            details["name"] = self.name
        if self.kind is not None:
            if self.kind.group:
                details["group"] = self.kind.group
            details["kind"] = self.kind.plural
        if self.causes:
            details["causes"] = self.causes
        if self.retry_after is not None:
            details["retryAfterSeconds"] = self.retry_after
        if details:
            status["details"] = details
        return status


def success(kind: ResourceType, name: str, uid: str = "") -> dict[str, Any]:
    details = {"name": name, "kind": kind.plural}
    if kind.group:
        details["group"] = kind.group
    if uid:
        details["uid"] = uid
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def path_not_found() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def not_found(kind: ResourceType, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{kind.qualified} "{name}" not found', kind=kind, name=name)


def already_exists(kind: ResourceType, name: str) -> ApiError:
    return ApiError(409, "AlreadyExists", f'{kind.qualified} "{name}" already exists', kind=kind, name=name)


def conflict(kind: ResourceType, name: str, why: str, causes: list[Cause] | None = None) -> ApiError:
    message = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {why}'
    return ApiError(409, "Conflict", message, kind=kind, name=name, causes=causes)


def method_not_allowed() -> ApiError:
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def unsupported_media_type(value: str) -> ApiError:
    message = (
        f"the body of the request was in an unknown format ({value or 'none given'}) - accepted media types include: "
        "application/merge-patch+json, application/apply-patch+yaml"
    )
    return ApiError(415, "UnsupportedMediaType", message)


def invalid(kind: ResourceType, name: str, field: str, why: str) -> ApiError:
    message = f'{kind.kind}{"." + kind.group if kind.group else ""} "{name}" is invalid: {field}: {why}'
    causes = [{"reason": "FieldValueInvalid", "message": why, "field": field}]
    return ApiError(422, "Invalid", message, kind=kind, name=name, causes=causes)


def expired(requested: int, oldest: int) -> ApiError:
    return ApiError(410, "Expired", f"too old resource version: {requested} ({oldest})")


def disruption_refused(kind: ResourceType, name: str, why: str) -> ApiError:
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return ApiError(
        429,
        "TooManyRequests",
        message,
        kind=kind,
        name=name,
        causes=[{"reason": "DisruptionBudget", "message": why}],
        retry_after=0,
    )
