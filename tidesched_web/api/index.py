from collections.abc import Sequence
from typing import ClassVar

from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from tidesched_web.api.filters import refuse_unknown
from tidesched_web.common.public_address import absolute

_ADDRESSES = {
    "type": "object",
    "additionalProperties": {"type": "string", "format": "uri"},
    "description": "The address of each collection, of `usage`, of the OpenAPI document and of the page that shows it.",
}


class Index(APIView):
    """Where everything is; like the OpenAPI document it is open to everybody."""

    permission_classes = (AllowAny,)
    authentication_classes = ()
    metadata_class = None
    routes: ClassVar[Sequence[tuple[str, str]]] = ()  # (name in the answer, name of the route)

    @extend_schema(operation_id="index", tags=["index"], responses={200: _ADDRESSES})
    def get(self, request: Request) -> Response:
        """List the collections.

        The address of each collection, of usage, of this document and of the page that shows it.
        """
        refuse_unknown(request, ())
        return Response({name: absolute(request, reverse(f"api:{route}")) for name, route in self.routes})
