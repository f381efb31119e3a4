"""What each operation of the document says: its words from the tables, its scopes and refusals from the view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from drf_spectacular.openapi import AutoSchema
from rest_framework.permissions import AllowAny

from tidesched_web.api.document import account_operations, cluster_operations, quota_operations, refusals
from tidesched_web.api.document.operation import Operation

if TYPE_CHECKING:
    from tidesched_web.api.views import ScopedView

OPERATIONS: dict[str, Operation] = {
    **account_operations.OPERATIONS,
    **cluster_operations.OPERATIONS,
    **quota_operations.OPERATIONS,
}
_INDEX_TAG = "index"


class DocumentedSchema(AutoSchema):
    """Everything that the document says of one operation. One without words in the tables fails at once."""

    def get_operation(self, path: str, path_regex: str, path_prefix: str, method: str, registry: Any) -> Any:
        operation = super().get_operation(path, path_regex, path_prefix, method, registry)
        if operation is None:
            return None
        said = OPERATIONS[operation["operationId"]]
        scopes = said.scopes or self._scopes()
        operation["summary"] = said.summary
        operation["description"] = "\n\n".join([said.description, *_who(scopes, said.role)])
        operation["security"] = security(scopes)
        operation["tags"] = operation.get("tags") or [_INDEX_TAG]
        for status in refusals.refusals_of(operation, path, method.lower()):
            operation["responses"].setdefault(str(status), refusals.reference_to(status))
        operation["responses"]["default"] = {"$ref": "#/components/responses/Problem"}
        return operation

    def _get_request_body(self, direction: Any = "request") -> Any:
        """Also that of a DELETE, which has its reason there; the framework looks at the other methods only."""
        if self.method != "DELETE":
            return super()._get_request_body(direction)
        self.method = "POST"
        try:
            body = super()._get_request_body(direction)
        finally:
            self.method = "DELETE"
        return body

    def _scopes(self) -> tuple[str, ...]:
        """Any one of these lets a token in; none where everybody may."""
        if AllowAny in self.view.permission_classes:
            return ()
        view = cast("ScopedView", self.view)
        writes = self.method != "GET"
        return tuple(str(scope) for scope in (writes and view.write_scopes) or view.scopes)


def security(scopes: tuple[str, ...]) -> list[dict[str, list[str]]]:
    """A token with any one of the scopes, or a session of the console; nothing at all where there are no scopes."""
    return [*({"token": [scope]} for scope in scopes), {"session": []}] if scopes else [{}]


def _who(scopes: tuple[str, ...], role: str) -> list[str]:
    if not scopes:
        return ["**Scope:** none; it is open to everybody."]
    named = " or ".join(f"`{scope}`" for scope in scopes)
    allowed = [f"**Role:** {role}."] if role else []
    return [f"**Scope:** {named}.", *allowed]
