from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.accounts.models import Scope
from tidesched_web.api.body import checked_body
from tidesched_web.api.v1.change_answers import accepted
from tidesched_web.api.v1.serializers.changes import ChangeDocument
from tidesched_web.api.v1.serializers.tree_writes import TREE_SCHEMA, TreeInput
from tidesched_web.api.v1.tree_writes import kept
from tidesched_web.api.views import ScopedView
from tidesched_web.api.writes import (
    DRY_RUN,
    DRY_RUN_PARAMETER,
    IDEMPOTENCY,
    IF_MATCH_OF_TREE,
    expected_version,
    is_dry_run,
)
from tidesched_web.changes import services, tree_file
from tidesched_web.changes.authority import require_writer
from tidesched_web.changes.models import ChangeState
from tidesched_web.changes.selectors import read_tree
from tidesched_web.changes.tree_document import Documents
from tidesched_web.clusters.models import Cluster
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.errors import DomainError

JSON, YAML = "json", "yaml"
_YAML_TYPE = "application/yaml"
FORMAT = OpenApiParameter("format", str, enum=(JSON, YAML), description="`json` where it is left out.")


class Tree(ScopedView):
    """The intent of one cluster within the caller's sight."""

    scopes = (Scope.QUOTA_READ, Scope.QUOTA_WRITE)
    write_scopes = (Scope.QUOTA_WRITE,)

    def allowed_parameters(self, *, writes: bool) -> set[str]:
        return {DRY_RUN} if writes else {"format"}

    def get_serializer_context(self) -> dict[str, Any]:
        return self.document_context()

    @extend_schema(
        responses={(200, "application/json"): TREE_SCHEMA, (200, _YAML_TYPE): TREE_SCHEMA}, parameters=[FORMAT]
    )
    def get(self, request: Request, pk: int) -> HttpResponseBase:
        """Show a cluster's quota tree.

        The intent of the cluster as far as it is in the caller's sight, as JSON, or with `format=yaml` as the file that
        `manage.py tree export` and the console write: the same tree gives the same bytes. The ETag is another one for
        another tree.
        """
        cluster = self._cluster(pk)
        wanted = request.query_params.get("format", JSON)
        if wanted not in (JSON, YAML):
            raise DomainError.for_field("/format", f"{wanted[:80]!r}: known are {JSON}, {YAML}.")
        documents = read_tree(cluster, self.access)
        if wanted == JSON:
            return _shown(cluster, documents)
        text = tree_file.dumps(documents, cluster=cluster.slug)
        response = HttpResponse(text, content_type=f"{_YAML_TYPE}; charset=utf-8", headers=_etag(documents))
        response.headers["Content-Disposition"] = f'attachment; filename="tree-{cluster.slug}.yaml"'
        return response

    @extend_schema(
        request=TreeInput,
        responses={200: TREE_SCHEMA, 202: ChangeDocument},
        parameters=[IF_MATCH_OF_TREE, IDEMPOTENCY, DRY_RUN_PARAMETER],
    )
    @kept
    def post(self, request: Request, pk: int) -> Response:
        """Make the quota tree what a file says.

        Give exactly one of `tree` (JSON, as the GET answers it) and `file` (the text of the YAML file). What it does
        not name is deleted, as far as it is in the caller's sight; with `keep: true` it stays. All of it is one quota
        change: the answer is the tree as it is then, or 202 with the change where that waits for approval. With
        `dry_run=true` nothing is done and the answer is `{dry_run, plan}`: the difference, what is wrong with it, and
        who has to approve it. A file that cannot be read is a 400 `invalid_tree` with the place of each fault. Role:
        admin of the tenant.
        """
        cluster = self._cluster(pk)
        require_writer(self.access)
        body = checked_body(TreeInput, request)
        version = expected_version(request, needed=not is_dry_run(request))
        if ("tree" in body) == ("file" in body):
            raise DomainError.for_field("/tree", "Give exactly one of tree and file.", code="against_rules")
        part = "tree" if "tree" in body else "file"
        with _faults_in(part):
            wanted = _wanted(body[part])
            if is_dry_run(request):
                plan = services.check_tree(
                    cluster=cluster, wanted=wanted, keep=body["keep"], access=self.access, version=version
                )
                return Response({DRY_RUN: True, "plan": plan | {"errors": _placed(plan["errors"], part)}})
            change = services.set_tree(
                cluster=cluster,
                wanted=wanted,
                keep=body["keep"],
                access=self.access,
                reason=body["reason"],
                version=version,
            )
        if change.state == ChangeState.WAITING:
            return accepted(self, change)
        return _shown(cluster, read_tree(cluster, self.access))

    def _cluster(self, pk: int) -> Cluster:
        found = visible_clusters(self.access).filter(pk=pk).first()
        if found is None:
            raise DomainError("not_found", "There is no such object.")
        return found


def _wanted(given: str | dict[str, Any]) -> Documents:
    return tree_file.loads(given.replace("\r\n", "\n")) if isinstance(given, str) else tree_file.documents_of(given)


def _shown(cluster: Cluster, documents: Documents) -> Response:
    return Response(tree_file.content_of(documents, cluster=cluster.slug), headers=_etag(documents))


def _etag(documents: Documents) -> dict[str, str]:
    return {"ETag": f'"{tree_file.version_of(documents)}"'}


@contextmanager
def _faults_in(part: str) -> Iterator[None]:
    """Say where in the body a fault is. The form of the body is right; what the tree in it says may be wrong."""
    try:
        yield
    except DomainError as error:
        errors = _placed(error.extra.get("errors", []), part)
        if error.code not in ("invalid", "unknown_field"):
            error.extra |= {"errors": errors} if errors else {}
            raise
        named = [{**one, "code": "invalid_tree"} for one in errors]
        raise DomainError("invalid_tree", error.message, {**error.extra, "errors": named}) from None


def _placed(errors: list[dict[str, Any]], part: str) -> list[dict[str, Any]]:
    return [{**error, "pointer": _pointer(error, part)} for error in errors]


def _pointer(error: dict[str, Any], part: str) -> str:
    if error.get("object"):
        return f"/{part}{tree_file.place_of(error['object'])}{error['field']}"
    return str(error["pointer"]) if error["pointer"] == "/reason" else f"/{part}{error['pointer']}"
