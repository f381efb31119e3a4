"""The OpenAPI document, and the page that shows it. What the document says stands in `document/`."""

from __future__ import annotations

from typing import Any

from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny

from tidesched_web.api.document import examples, refusals, stream
from tidesched_web.api.document.introduction import INTRODUCTION, TAGS


def complete(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add what belongs to no single view: introduction, groups, refusals, the stream and the examples."""
    result["info"]["description"] = INTRODUCTION
    result["tags"] = [{"name": name, "description": text} for name, text in TAGS.items()]
    result["paths"][stream.PATH] = stream.path_item()
    components = result.setdefault("components", {})
    components.setdefault("schemas", {})["Problem"] = refusals.PROBLEM
    components["responses"] = refusals.components()
    examples.add_to(result)
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
