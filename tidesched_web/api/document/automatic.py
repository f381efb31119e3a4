"""What each operation of the document says: its words from the tables, its scopes and refusals from the view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.core.validators import RegexValidator
from drf_spectacular.openapi import AutoSchema
from rest_framework.fields import CharField, DateTimeField, ListField
from rest_framework.permissions import AllowAny

from tidesched_web.api.document import account_operations, cluster_operations, quota_operations, refusals
from tidesched_web.api.document.operation import Operation
from tidesched_web.api.v1.serializers.tree_shapes import STORABLE, TIME
from tidesched_web.api.writes import DRY_RUN

if TYPE_CHECKING:
    from tidesched_web.api.views import ScopedView

OPERATIONS: dict[str, Operation] = {
    **account_operations.OPERATIONS,
    **cluster_operations.OPERATIONS,
    **quota_operations.OPERATIONS,
}
_INDEX_TAG = "index"
# One visible character at least where a text has to say something: blanks at its ends are dropped before that.
NOT_BLANK = r"^[^\x00]*[^\x00\s][^\x00]*$"
_BLANK = {"type": "string", "maxLength": 0}


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
        self._drop_what_is_refused(operation)
        _add_dry_run(operation)
        operation["responses"] |= refusals.refusals_of(operation, path, method.lower())
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

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Any:
        """A body has no unknown member (`checked_body`)."""
        schema = super()._map_basic_serializer(serializer, direction)
        if direction == "request":
            schema["additionalProperties"] = False
        return schema

    def _map_serializer_field(self, field: Any, direction: Any, bypass_extensions: bool = False) -> Any:
        """Also what the framework refuses and its description leaves out: blank texts and empty lists in requests."""
        schema = super()._map_serializer_field(field, direction, bypass_extensions)
        if direction != "request" or schema is None:
            return schema
        if isinstance(field, CharField) and not field.read_only and "$ref" not in schema:
            if not field.allow_blank:
                schema.setdefault("minLength", 1)
            blank = field.allow_blank or not field.trim_whitespace
            if not any(isinstance(one, RegexValidator) for one in field.validators):  # else it has a form of its own
                schema.setdefault("pattern", STORABLE if blank else NOT_BLANK)
        if isinstance(field, DateTimeField):
            schema["pattern"] = TIME
        if isinstance(field, ListField) and not field.allow_empty:
            schema["minItems"] = max(1, schema.get("minItems", 1))
        return schema

    def _insert_field_validators(self, field: Any, schema: dict[str, Any]) -> None:
        """The framework gives each text that may be blank a second form for the blank, which the first may allow."""
        super()._insert_field_validators(field, schema)
        forms = schema.get("oneOf", [])
        if forms[1:] != [_BLANK]:
            return
        del schema["oneOf"]
        if forms[0].get("pattern") == STORABLE and not {"format", "minLength"} & forms[0].keys():
            schema.update(forms[0])
        else:
            schema["anyOf"] = forms

    def _get_paginator(self) -> Any:
        """Pages are of reads: the answer to a write that names several objects is a plain array."""
        return super()._get_paginator() if self.method == "GET" else None

    def get_filter_backends(self) -> list[Any]:
        """Filters are those of the list itself: another act of the view does not take them."""
        return super().get_filter_backends() if getattr(self.view, "action", "list") == "list" else []

    def _drop_what_is_refused(self, operation: dict[str, Any]) -> None:
        """Query parameters that the view answers with a 400 are none of the operation's."""
        allowed = getattr(self.view, "allowed_parameters", None)
        if allowed is None:
            return
        known = allowed(writes=self.method != "GET")
        for one in operation.get("parameters", ()):
            if one["in"] == "query" and one["schema"].get("type") == "string" and "enum" not in one["schema"]:
                one["schema"].setdefault("pattern", TIME if one["schema"].get("format") == "date-time" else STORABLE)
        kept = [one for one in operation.get("parameters", ()) if one["in"] != "query" or one["name"] in known]
        operation.pop("parameters", None)
        if kept:
            operation["parameters"] = kept

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


def _add_dry_run(operation: dict[str, Any]) -> None:
    """A dry run is a 200 whatever the act itself answers: the plan, or the object as it would be."""
    if not any(one["name"] == DRY_RUN for one in operation.get("parameters", ())):
        return
    answers = operation["responses"]
    done: dict[str, Any] = next((answers[code] for code in ("200", "201") if code in answers), {})
    schema = done.get("content", {}).get("application/json", {}).get("schema")
    tried = [*([schema] if schema else []), {"$ref": "#/components/schemas/DryRun"}]
    answers["200"] = {
        **answers.get("200", {}),
        "description": answers.get("200", {}).get("description") or "The answer to a dry run: nothing was done.",
        "content": {"application/json": {"schema": {"anyOf": tried}}},
    }


def _who(scopes: tuple[str, ...], role: str) -> list[str]:
    if not scopes:
        return ["**Scope:** none; it is open to everybody."]
    named = " or ".join(f"`{scope}`" for scope in scopes)
    allowed = [f"**Role:** {role}."] if role else []
    return [f"**Scope:** {named}.", *allowed]
