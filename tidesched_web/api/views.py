from http import HTTPStatus
from typing import Any, ClassVar, TypeAlias, cast

from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import QueryDict
from rest_framework import mixins, viewsets
from rest_framework.exceptions import APIException, MethodNotAllowed
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from tidesched_web.accounts.models import ApiToken, User
from tidesched_web.accounts.selectors import access_of
from tidesched_web.api import pagination, problem_json
from tidesched_web.api.filters import ReferenceFilter, StrictBackend, refuse_unknown
from tidesched_web.api.idempotency import key_of
from tidesched_web.api.parsers import MergePatchParser
from tidesched_web.api.writes import DRY_RUN, is_dry_run
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import Access, require_scope
from tidesched_web.common.public_address import absolute

# Refusals that say who may do what, or that nothing is there for the caller.
_OF_RIGHTS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)

# Named here, since the views have a method `list`.
Rows: TypeAlias = list[Any]
Documents: TypeAlias = list[dict[str, Any]]


class ScopedView(APIView):
    """Any one of ``scopes`` (``write_scopes`` for writes) lets a token in; ``act_scopes``: of the object found."""

    scopes: ClassVar[tuple[str, ...]]
    write_scopes: ClassVar[tuple[str, ...]] = ()
    act_scopes: ClassVar[tuple[str, ...]] = ()
    access: Access
    caller: User

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        method = str(request.method)
        if method.lower() not in self.http_method_names or not hasattr(self, method.lower()):
            raise MethodNotAllowed(method)  # before the sign-in: an address says to every caller what it can do
        super().initial(request, *args, **kwargs)
        token = request.auth if isinstance(request.auth, ApiToken) else None
        self.caller = cast("User", request.user)  # the permission classes let no other caller come this far
        self.access = access_of(self.caller, token)
        writes = request.method not in SAFE_METHODS
        require_scope(self.access, *((writes and self.write_scopes) or self.scopes))
        try:
            self.check_head(request, writes=writes)
        except (DomainError, APIException) as fault:
            self._refuse_after_rights(request, fault)

    def options(self, request: Request, *args: Any, **kwargs: Any) -> Response:  # type: ignore[override]  # as DRF
        """What it allows; the OpenAPI document has the rest."""
        return Response(status=HTTPStatus.NO_CONTENT)

    def check_head(self, request: Request, *, writes: bool) -> None:
        refuse_unknown(request, self.allowed_parameters(writes=writes))
        if request.method in ("PUT", "PATCH") and not int(request.META.get("CONTENT_LENGTH") or 0):
            raise DomainError("malformed_body", f"{request.method} needs a body: it has none.")
        if writes:
            is_dry_run(request)
        if request.method == "POST" and key_of(request) is not None:
            request.data  # noqa: B018 - what a key stands for is the body, which has to be one

    def _refuse_after_rights(self, request: Request, fault: DomainError | APIException) -> None:
        """Rights are asked where the act is done: so it is done without what is wrong, and all is taken back."""
        name = str(request.method).lower()
        handler = getattr(self, name)

        def refuse(request: Request, *args: Any, **kwargs: Any) -> Response:
            plain = request._request  # noqa: SLF001 - what the framework's request wraps
            plain.GET = self._known_of(plain.GET)  # type: ignore[assignment]  # nothing writes to it
            plain.META.pop("HTTP_IDEMPOTENCY_KEY", None)
            plain.__dict__.pop("headers", None)
            with transaction.atomic():
                try:
                    handler(request, *args, **kwargs)
                except Exception as error:
                    said = problem_json.as_domain_error(error)
                    if said is not None and said.status in _OF_RIGHTS:
                        raise
                transaction.set_rollback(True)
            raise fault

        setattr(self, name, refuse)

    def _known_of(self, given: QueryDict) -> QueryDict:
        """The parameters that the address has, such as the one that names what is read; of any request a plain one."""
        known = QueryDict(mutable=True)
        for name in self.allowed_parameters(writes=False):
            if len(values := given.getlist(name)) == 1 and name != DRY_RUN:
                known[name] = values[0]
        return known

    def get_parsers(self) -> list[Any]:
        """JSON; a PATCH may also say that it is a merge patch, which it is either way."""
        request = getattr(self, "request", None)
        merges = request is not None and request.method == "PATCH"
        return [*super().get_parsers(), *((MergePatchParser(),) if merges else ())]

    def allowed_parameters(self, *, writes: bool) -> set[str]:
        return {*self.known_parameters(), *((DRY_RUN,) if writes and self.write_scopes else ())}

    def known_parameters(self) -> set[str]:
        return set()

    def document_context(self) -> dict[str, Any]:
        base = absolute(self.request, "/api/v1/") if self.request else "/api/v1/"
        return {"base": base, "access": getattr(self, "access", None)}


class ReadView(ScopedView, mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Any]):
    model: ClassVar[type[Model]]
    newest_first: bool = False
    etag: ClassVar[bool] = False
    pagination_class = pagination.KeysetPagination
    filter_backends = (StrictBackend,)
    lookup_value_converter = "int"

    def visible(self) -> QuerySet[Any]:
        raise NotImplementedError

    def get_queryset(self) -> QuerySet[Any]:
        if getattr(self, "swagger_fake_view", False):
            return self.model._base_manager.none()
        return self.visible()

    def known_parameters(self) -> set[str]:
        if self.action != "list":
            return set()
        return {*pagination.PARAMETERS, *self.filter_names()}

    def filter_names(self) -> set[str]:
        filters = getattr(self, "filterset_class", None)
        return set(filters.base_filters) if filters else set()

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        # Filters belong to lists; a detail is found by its id alone.
        return super().filter_queryset(queryset) if self.action == "list" else queryset

    def rows_context(self, rows: Rows) -> dict[str, Any]:
        return {}

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        rows = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        if not rows:
            self._refuse_unknown_names(request)
        return self.get_paginated_response(self.documents(rows))

    def _refuse_unknown_names(self, request: Request) -> None:
        filters = getattr(self, "filterset_class", None)
        for name, kind in (filters.base_filters if filters else {}).items():
            if isinstance(kind, ReferenceFilter):
                kind.refuse_unknown_name(name, request.query_params.get(name, ""), self.access)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return self.shown(self.get_object())

    def shown(self, row: Model) -> Response:
        headers = {"ETag": f'"{row.version}"'} if self.etag else {}  # type: ignore[attr-defined]  # etag says so
        return Response(self.documents([row])[0], headers=headers)

    def made(self, row: Model) -> Response:
        """The answer to a POST: the new object, read anew with all that its document needs, and where it is."""
        response = self.shown(self.visible().get(pk=row.pk))
        response.status_code = 201
        response.headers["Location"] = str(response.data["url"])
        return response

    def changed(self, row: Model) -> Response:
        return self.shown(self.visible().get(pk=row.pk))

    def documents(self, rows: Rows) -> Documents:
        context = self.get_serializer_context() | self.rows_context(rows)
        return list(self.get_serializer_class()(rows, many=True, context=context).data)

    def sub_list(self, queryset: QuerySet[Any], serializer: type[Any], *, newest_first: bool = False) -> Response:
        self.newest_first = newest_first
        rows = self.paginate_queryset(queryset) or []
        return self.get_paginated_response(serializer(rows, many=True, context=self.get_serializer_context()).data)

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), **self.document_context()}
