from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, cast

from drf_spectacular.openapi import AutoSchema
from rest_framework.permissions import AllowAny

from tidesched_web.api.document import refusals
from tidesched_web.api.v1.serializers.json_shapes import ref
from tidesched_web.api.v1.serializers.tree_shapes import STORABLE, TIME
from tidesched_web.api.writes import DRY_RUN

if TYPE_CHECKING:
    from tidesched_web.api.views import ReadView, ScopedView


class DocumentedSchema(AutoSchema):
    """The docstring's first sentence is the summary. A list has the words of its view, a detail its document's."""

    def get_operation(self, path: str, path_regex: str, path_prefix: str, method: str, registry: Any) -> Any:
        operation = super().get_operation(path, path_regex, path_prefix, method, registry)
        if operation is None:
            return None
        if self.method == "DELETE":
            self._add_body(operation)
        self._drop_what_is_refused(operation)
        _add_dry_run(operation)
        operation["responses"] |= refusals.refusals_of(operation, path, method.lower())
        return operation

    def get_summary(self) -> str:
        said = self._words_of_handler()
        if said:
            return said.partition(".")[0].replace("\n", " ")
        noun = self.get_tags()[0].replace("-", " ")
        if self._action() == "list":
            return f"List {noun}"
        one = noun.removesuffix("es") if noun.endswith("sses") else noun.removesuffix("s")
        return f"Show {'an' if one[0] in 'aeio' else 'a'} {one}"

    def get_description(self) -> str:  # type: ignore[override]  # as the framework has it
        said = self._words_of_handler()
        first, _, rest = said.partition(".")
        if not said:
            view = cast("ReadView", self.view)
            rest = inspect.getdoc(type(view) if self._action() == "list" else view.get_serializer_class()) or ""
        scopes = " or ".join(f"`{scope}`" for scope in self._scopes())
        return f"{rest.strip() or f'{first}.'}\n\n**Scope:** {scopes or 'none; it is open to everybody'}."

    def get_auth(self) -> list[dict[str, Any]]:
        super().get_auth()  # which describes the ways to sign in
        return security(self._scopes())

    def _action(self) -> str:
        return getattr(self.view, "action", self.method.lower())

    def _words_of_handler(self) -> str:
        return inspect.getdoc(getattr(self.view, self._action())) or ""

    def _scopes(self) -> tuple[str, ...]:
        if AllowAny in self.view.permission_classes:
            return ()
        view = cast("ScopedView", self.view)
        writes = self.method != "GET"
        return tuple(str(scope) for scope in (writes and (view.act_scopes or view.write_scopes)) or view.scopes)

    def _add_body(self, operation: dict[str, Any]) -> None:
        """A DELETE has its reason in the body; the framework describes the bodies of other methods only."""
        form = self.get_request_serializer()
        if form is not None:
            component = self.resolve_serializer(form, "request")
            content = {kind: {"schema": component.ref} for kind in self.map_parsers()}
            needed = {"required": True} if component.schema.get("required") else {}
            operation["requestBody"] = {"content": content, **needed}

    def _drop_what_is_refused(self, operation: dict[str, Any]) -> None:
        """Query parameters that the view answers with a 400 are none of the operation's."""
        allowed = getattr(self.view, "allowed_parameters", None)
        if allowed is None:
            return
        known = allowed(writes=self.method != "GET")
        found = operation.pop("parameters", ())
        kept = [one for one in found if one["in"] != "query" or one["name"] in known]
        for one in kept:
            form = one["schema"]
            if one["in"] == "query" and form.get("type") == "string" and "enum" not in form:
                form.setdefault("pattern", TIME if form.get("format") == "date-time" else STORABLE)
        if kept:
            operation["parameters"] = kept


def security(scopes: tuple[str, ...]) -> list[dict[str, Any]]:
    """A token with any one of the scopes, or a session of the console; nothing at all where there are no scopes."""
    return [*({"token": [scope]} for scope in scopes), {"session": []}] if scopes else [{}]


def _add_dry_run(operation: dict[str, Any]) -> None:
    if not any(one["name"] == DRY_RUN for one in operation.get("parameters", ())):
        return
    answers = operation["responses"]
    done: dict[str, Any] = next((answers[code] for code in ("200", "201") if code in answers), {})
    schema = done.get("content", {}).get("application/json", {}).get("schema")
    tried = [*([schema] if schema else []), ref("DryRun")]
    answers["200"] = {
        **answers.get("200", {}),
        "description": answers.get("200", {}).get("description") or "The answer to a dry run: nothing was done.",
        "content": {"application/json": {"schema": {"anyOf": tried}}},
    }
