"""`GET /metrics`: for programs, by a token or from the addresses of a Prometheus."""

from django.conf import settings
from django.http import HttpResponse
from django.utils.translation import gettext as _
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from rest_framework.exceptions import NotAuthenticated
from rest_framework.request import Request
from rest_framework.views import APIView

from tidesched_web.accounts.models import ApiToken, Scope
from tidesched_web.accounts.selectors import access_of
from tidesched_web.api.authentication import BearerAuthentication
from tidesched_web.api.stream_rights import open_now
from tidesched_web.common import request_context
from tidesched_web.common.client_address import is_within
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import require_scope
from tidesched_web.metrics import collector, traffic


class Metrics(APIView):
    authentication_classes = (BearerAuthentication,)
    permission_classes = ()
    schema = None  # not of REST, so not in its document
    http_method_names = ("get", "head", "options")

    def get(self, request: Request) -> HttpResponse:
        if isinstance(request.auth, ApiToken):
            access = access_of(request.user, request.auth)
            require_scope(access, Scope.METRICS_READ)
            if not access.everything:
                text = _(
                    "The metrics are of all tenants: a token has to be of a platform admin or auditor, and not for one "
                    "tenant."
                )
                raise DomainError("permission_denied", text)
        elif not is_within(request_context.current().address, settings.METRICS_ADDRESSES):
            raise NotAuthenticated(_("Send a token with the scope metrics:read."))
        traffic.flush(open_now())
        return HttpResponse(collector.text(), content_type=CONTENT_TYPE_PLAIN_0_0_4)
