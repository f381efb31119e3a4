import copy
from typing import Any, cast

from django.conf import settings
from django.http import HttpResponse
from django.utils.cache import get_conditional_response, patch_vary_headers
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from tidesched_web.accounts.models import SCOPE_WORDS
from tidesched_web.api.document import examples, refusals, request_forms, shared_parts, stream
from tidesched_web.api.document.served import document, served
from tidesched_web.api.filters import refuse_unknown
from tidesched_web.api.v1.serializers import json_shapes, tree_shapes
from tidesched_web.api.v1.serializers.connections import CONNECTION_WAYS
from tidesched_web.common.errors import DomainError

_SCOPES = "\n".join(f"| `{scope}` | {words} |" for scope, words in SCOPE_WORDS.items())
_TEXT = (settings.BASE_DIR / "templates" / "api" / "introduction.md").read_text(encoding="utf-8")
INTRODUCTION = _TEXT.replace("@SCOPES@", _SCOPES)


COMPONENTS = {**json_shapes.COMPONENTS, **tree_shapes.COMPONENTS, "Problem": refusals.PROBLEM}


def complete(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    result["info"]["description"] = INTRODUCTION
    result["paths"][stream.PATH] = stream.path_item()
    operations = [operation for item in result["paths"].values() for operation in item.values()]
    # A group is told by its first operation, which lists what the others are about.
    groups = {one["tags"][0]: one["description"].partition("\n\n")[0] for one in reversed(operations)}
    result["tags"] = [{"name": name, "description": groups[name]} for name in sorted(groups)]
    components = result.setdefault("components", {})
    components.setdefault("schemas", {}).update(copy.deepcopy(COMPONENTS))
    for name in ("ConnectionInput", "ClusterInput"):
        components["schemas"][name]["oneOf"] = copy.deepcopy(CONNECTION_WAYS)
    components["responses"] = refusals.components()
    request_forms.add_to(result, {*COMPONENTS})
    examples.add_to(result)
    shared_parts.add_to(result)
    return result


class SchemaView(SpectacularAPIView):
    """The OpenAPI document itself; it says nothing that is not in the source, so it is made once."""

    permission_classes = (AllowAny,)
    authentication_classes = ()
    metadata_class = None

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        """YAML or JSON, by `Accept` or `?format=`; a 304 for a client that has it."""
        refuse_unknown(request, ("format",))
        renderer = self._renderer(request)
        body, etag = served(renderer)
        said = {"Cache-Control": "no-cache", "Content-Disposition": f'inline; filename="tidesched.{renderer.format}"'}
        response = HttpResponse(body, content_type=renderer.media_type, headers={**said, "ETag": etag})
        patch_vary_headers(response, ["Accept"])
        return cast("HttpResponse", get_conditional_response(request, etag=etag, response=response))

    def _renderer(self, request: Request) -> BaseRenderer:
        wanted = request.query_params.get("format")
        if wanted is None:
            return request.accepted_renderer
        for renderer in self.get_renderers():
            if renderer.format == wanted:
                return renderer
        raise DomainError.for_field("/format", f"{wanted[:80]!r}: known are json, yaml.")


class SchemaPage(SpectacularSwaggerSplitView):
    """The page to read and try the API. Script and style are files of their own, as the page's policy demands."""

    permission_classes = (AllowAny,)
    authentication_classes = ()
    template_name = "api/schema.html"
    url_name = "api:schema"

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        """The page, with the list of its groups; or its script, which the framework serves at the same address."""
        response = super().get(request, *args, **kwargs)
        if isinstance(response.data, dict):
            response.data["tags"] = [group["name"] for group in document()["tags"]]
        return response

    url_self = None
