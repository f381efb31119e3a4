import functools
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.api import pagination
from tidesched_web.api.body import checked_body
from tidesched_web.api.idempotency import idempotent
from tidesched_web.api.v1.serializers.clusters import ClusterDocument, ReasonInput
from tidesched_web.api.v1.serializers.connections import (
    ClusterInput,
    ClusterPatch,
    ConnectionDocument,
    ConnectionInput,
    ConnectionTestDocument,
    MadeClusterDocument,
    RemoveInput,
    TestInput,
    TriedDocument,
)
from tidesched_web.api.v1.tree_writes import kept
from tidesched_web.api.views import ReadView
from tidesched_web.api.writes import (
    DRY_RUN,
    DRY_RUN_PARAMETER,
    IDEMPOTENCY,
    IF_MATCH_ALWAYS,
    expected_version,
    is_dry_run,
)
from tidesched_web.changes.removal_services import remove_cluster
from tidesched_web.clusters import connection_services, services
from tidesched_web.clusters.connection_input import Offered, by_kubeconfig, by_own_pod, by_token
from tidesched_web.clusters.connection_selectors import connection_test_by_id, newest_test, visible_tests
from tidesched_web.clusters.models import Cluster, ConnectionTest
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import require_platform_admin
from tidesched_web.jobs import waiting
from tidesched_web.quota.push_selectors import last_pushes
from tidesched_web.scheduling.connection_test_jobs import start_test

# Nine steps of at most five seconds each; a client that gives up earlier asks again with `dry_run`.
PATIENCE_SECONDS = 30.0
_DRY_RUNS = ("create", "connection", "put_connection")


def offered(wanted: dict[str, Any]) -> Offered:
    ways = [name for name in ("kubeconfig", "api_url", "in_cluster") if wanted.get(name)]
    if len(ways) != 1:
        text = "Exactly one of kubeconfig, api_url (with token) and in_cluster is needed."
        raise DomainError.for_field(f"/{ways[1] if len(ways) > 1 else 'kubeconfig'}", text)
    if ways == ["kubeconfig"]:
        return by_kubeconfig(wanted["kubeconfig"], context=wanted.get("context", ""))
    if ways == ["in_cluster"]:
        return by_own_pod()
    return by_token(
        api_url=wanted["api_url"],
        token=wanted.get("token", ""),
        ca_certificate=wanted.get("ca_certificate", ""),
        tls_server_name=wanted.get("tls_server_name", ""),
    )


class ConnectionActions(ReadView):
    @extend_schema(
        request=ClusterInput,
        responses={201: MadeClusterDocument, 200: TriedDocument},
        parameters=[IDEMPOTENCY, DRY_RUN_PARAMETER],
    )
    @functools.partial(kept, waits=True)  # for the test of the connection
    def create(self, request: Request) -> Response:
        """Connect a cluster.

        The connection is tested first (nine steps). A test that finds something missing is a 409 with the whole test in
        `test`, unless the body has `accept: true`. With `dry_run=true` the cluster is tested and not kept. Give exactly
        one of `kubeconfig`, `api_url` (with `token`) and `in_cluster`. Role: platform admin.
        """
        require_platform_admin(self.access)
        wanted = checked_body(ClusterInput, request)
        test = self._tested(offered(wanted), wanted["mode"])
        if is_dry_run(request):
            return self._only_tried(test)
        self._refuse(test, wanted)
        cluster = connection_services.connect(
            test=test,
            name=wanted["name"],
            slug=wanted.get("slug", ""),
            accept=wanted["accept"],
            reason=wanted["reason"],
            actor=self.access.actor,
        )
        answer = self.made(cluster)
        answer.data = {**answer.data, "test": self._shown(test)}
        return answer

    @extend_schema(request=ClusterPatch, responses=ClusterDocument, parameters=[IF_MATCH_ALWAYS])
    def partial_update(self, request: Request, pk: int) -> Response:
        """Change a cluster's settings. A reason is needed. Role: platform admin."""
        cluster = self.get_object()
        require_platform_admin(self.access)
        patch = checked_body(ClusterPatch, request)
        version = expected_version(request, needed=True)
        reason = patch.pop("reason")
        services.set_settings(cluster=cluster, values=patch, actor=self.access.actor, reason=reason, version=version)
        return self.changed(cluster)

    @extend_schema(request=RemoveInput, responses={204: None})
    def destroy(self, request: Request, pk: int) -> Response:
        """Remove a cluster.

        Removes a disconnected cluster with everything that is known of it; the audit log stays. `name` in the body has
        to be the cluster's slug, so that no other cluster is removed by mistake. Role: platform admin.
        """
        cluster = self.get_object()
        require_platform_admin(self.access)
        wanted = checked_body(RemoveInput, request)
        remove_cluster(cluster=cluster, name=wanted["name"], reason=wanted["reason"], actor=self.access.actor)
        return Response(status=204)

    @extend_schema(responses=ConnectionDocument)
    @action(detail=True, methods=["get"])
    def connection(self, request: Request, pk: int) -> Response:
        """Show how a cluster is reached. No secret is ever shown. Role: platform admin or auditor."""
        return self._connection(self._looked_at())

    @extend_schema(request=ConnectionInput, responses=ConnectionDocument, parameters=[DRY_RUN_PARAMETER])
    @connection.mapping.put
    def put_connection(self, request: Request, pk: int) -> Response:
        """Replace a cluster's connection.

        Other credentials, another address, or a new connection of a disconnected cluster. It is tested first, as a new
        cluster is; with `dry_run=true` it is only tested. Role: platform admin.
        """
        cluster = self.get_object()
        require_platform_admin(self.access)
        wanted = checked_body(ConnectionInput, request)
        test = self._tested(offered(wanted), cluster.mode, cluster)
        if is_dry_run(request):
            return self._only_tried(test)
        self._refuse(test, wanted)
        connection_services.replace(
            test=test, accept=wanted["accept"], reason=wanted["reason"], actor=self.access.actor
        )
        return self._connection(self.get_object())

    @extend_schema(request=ReasonInput, responses={200: ConnectionDocument})
    @connection.mapping.delete
    def delete_connection(self, request: Request, pk: int) -> Response:
        """Disconnect a cluster. Its credentials are forgotten; no session runs. Role: platform admin."""
        cluster = self.get_object()
        require_platform_admin(self.access)
        reason = checked_body(ReasonInput, request)["reason"]
        connection_services.disconnect(cluster=cluster, actor=self.access.actor, reason=reason)
        return self._connection(self.get_object())

    @extend_schema(request=TestInput, responses={202: ConnectionTestDocument}, parameters=[IDEMPOTENCY])
    @action(detail=True, methods=["post"], url_path="connection/test", url_name="connection-test")
    @idempotent
    def test_connection(self, request: Request, pk: int) -> Response:
        """Test a cluster's connection.

        Starts the test as a job and answers at once; `Location` and `job` are the job's address. `mode` tests the
        rights of another mode than the present one. Role: platform admin.
        """
        cluster = self.get_object()
        require_platform_admin(self.access)
        mode = checked_body(TestInput, request).get("mode", "")
        test = connection_services.begin_test(
            cluster=cluster, mode=mode, actor=self.access.actor, owner_id=self.caller.pk
        )
        start_test(test, owner=self.caller, actor=self.access.actor)
        document = self._shown(test)
        return Response(document, status=202, headers={"Location": str(document["job"])})

    @extend_schema(responses=ConnectionTestDocument(many=True))
    @action(detail=True, methods=["get"], url_path="connection/tests", url_name="connection-tests", filter_backends=[])
    def connection_tests(self, request: Request, pk: int) -> Response:
        """List a cluster's connection tests. With their findings. Role: platform admin or auditor."""
        cluster = self._looked_at()
        rows: QuerySet[ConnectionTest] = visible_tests(self.access).filter(cluster=cluster)
        return self.sub_list(rows, ConnectionTestDocument)

    # -- parts -------------------------------------------------------------------------------------------------

    def _looked_at(self) -> Cluster:
        cluster: Cluster = self.get_object()
        if not self.access.everything:
            raise DomainError("permission_denied", "Only platform admins and auditors see how clusters are reached.")
        return cluster

    def _tested(self, given: Offered, mode: str, cluster: Cluster | None = None) -> ConnectionTest:
        test = connection_services.offer(
            offered=given, mode=mode, actor=self.access.actor, owner_id=self.caller.pk, cluster=cluster
        )
        job = start_test(test, owner=self.caller, actor=self.access.actor)
        waiting.wait(job.pk, PATIENCE_SECONDS)
        return connection_test_by_id(test.pk) or test

    def _refuse(self, test: ConnectionTest, wanted: dict[str, Any]) -> None:
        if wanted["accept"] or test.verdict in ("good", "warning"):
            return
        if test.verdict == "running":
            text = "No worker has finished the connection test in time. Send it again, or with accept."
            raise DomainError("unavailable", text, {"test": self._shown(test)})
        text = "The connection test has found something missing. Mend it, or send accept: true."
        raise DomainError("conflict", text, {"test": self._shown(test)})

    def _only_tried(self, test: ConnectionTest) -> Response:
        return Response({"dry_run": True, "test": self._shown(test)})

    def _shown(self, test: ConnectionTest) -> dict[str, Any]:
        return dict(ConnectionTestDocument(test, context=self.get_serializer_context()).data)

    def _connection(self, cluster: Cluster) -> Response:
        push = last_pushes(self.access, [cluster]).get(cluster.pk)
        context = self.get_serializer_context() | {"test": newest_test(cluster), "push": push}
        return Response(ConnectionDocument(cluster, context=context).data)

    def known_parameters(self) -> set[str]:
        known = super().known_parameters()
        if self.action == "connection_tests":
            return {*known, *pagination.PARAMETERS}
        return {*known, DRY_RUN} if self.action in _DRY_RUNS else known
