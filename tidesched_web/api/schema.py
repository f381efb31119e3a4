"""The OpenAPI document: problems on every operation, and the page that shows it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny

from tidesched_web.api.problem_json import CONTENT_TYPE

_PROBLEM = {
    "type": "object",
    "description": "What went wrong (RFC 9457). `code` is stable; further members hold figures.",
    "required": ["type", "title", "status", "code", "detail", "instance"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string"},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "request_id": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "code", "detail"],
                "properties": {
                    "pointer": {"type": "string", "description": "JSON pointer into the request."},
                    "code": {"type": "string"},
                    "detail": {"type": "string"},
                },
                "additionalProperties": True,
            },
        },
    },
    "additionalProperties": True,
}
_METHODS = frozenset({"get", "post", "put", "patch", "delete"})


def add_problems(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Every operation may answer with a problem document."""
    result.setdefault("components", {}).setdefault("schemas", {})["Problem"] = _PROBLEM
    reference = {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for path in result["paths"].values():
        for method in _METHODS.intersection(path):
            path[method]["responses"]["default"] = {"description": "A problem.", "content": reference}
    return result


class SchemaView(SpectacularAPIView):
    """The OpenAPI document itself; it says nothing that is not in the source."""

    permission_classes = (AllowAny,)
    authentication_classes = ()


class SchemaPage(SpectacularSwaggerSplitView):
    """The page to read and try the API. Script and style are files of their own, as the page's policy demands."""

    permission_classes = (AllowAny,)
    authentication_classes = ()
    template_name = "api/schema.html"
    url_name = "api:schema"
    url_self = None
