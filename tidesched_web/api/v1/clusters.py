import difflib
from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.accounts.models import Scope
from tidesched_web.api.body import checked_body
from tidesched_web.api.filters import OneOf, ReferenceFilter, TextFilter, YesNoFilter
from tidesched_web.api.idempotency import idempotent
from tidesched_web.api.v1.connections import ConnectionActions
from tidesched_web.api.v1.serializers.changes import ChangeDocument
from tidesched_web.api.v1.serializers.clusters import (
    CardTypeDocument,
    ClusterDocument,
    NodeDocument,
    PolicyDocument,
    ReasonInput,
)
from tidesched_web.api.v1.serializers.owners import DeleteInput
from tidesched_web.api.v1.serializers.tree_writes import CardTypeInput, CardTypePatch, PolicyInput
from tidesched_web.api.v1.tree_writes import TreeWrites, kept
from tidesched_web.api.views import ReadView
from tidesched_web.api.writes import (
    DRY_RUN,
    DRY_RUN_PARAMETER,
    IDEMPOTENCY,
    IF_MATCH,
    IF_MATCH_NEEDED,
    REASON_IN_ADDRESS,
    expected_version,
    is_dry_run,
)
from tidesched_web.changes.card_aliases import named_anew
from tidesched_web.changes.impact import impact_now
from tidesched_web.changes.services import require_versions
from tidesched_web.changes.tree_document import key_of
from tidesched_web.clusters import services
from tidesched_web.clusters.models import CardKind, CardType, Cluster, ClusterMode, Node
from tidesched_web.clusters.selectors import (
    newest_policy,
    ruling_policy,
    visible_card_types,
    visible_clusters,
    visible_nodes,
)
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import require_administrator, require_platform_admin
from tidesched_web.engine.policy_check import MOST_LINES, policy_findings
from tidesched_web.quota.selectors import with_promised
from tidesched_web.scheduling.cluster_selectors import clusters_with_sessions


class ClusterFilters(django_filters.FilterSet):
    slug = TextFilter()
    name = TextFilter()
    mode = OneOf(choices=ClusterMode.choices)


class Clusters(ConnectionActions):
    """Clusters that the caller sees; platform admins connect, pause and set them up."""

    scopes = (Scope.CLUSTER_READ, Scope.QUOTA_READ)
    act_scopes = (Scope.ADMIN,)
    model = Cluster
    serializer_class = ClusterDocument
    filterset_class = ClusterFilters
    etag = True

    def visible(self) -> QuerySet[Cluster]:
        return clusters_with_sessions(self.access)

    @extend_schema(request=ReasonInput, responses=ClusterDocument, parameters=[IDEMPOTENCY])
    @action(detail=True, methods=["post"])
    @idempotent
    def pause(self, request: Request, pk: int) -> Response:
        """Pause a cluster. No binding, eviction or quota is sent to it until it is resumed. Role: platform admin."""
        cluster, reason = self._act(request)
        services.pause(cluster=cluster, actor=self.access.actor, reason=reason)
        return self.retrieve(request, pk=pk)

    @extend_schema(request=ReasonInput, responses=ClusterDocument, parameters=[IDEMPOTENCY])
    @action(detail=True, methods=["post"])
    @idempotent
    def resume(self, request: Request, pk: int) -> Response:
        """Resume a cluster. Sessions may send again; 409 where it is not paused. Role: platform admin."""
        cluster, reason = self._act(request)
        services.resume(cluster=cluster, actor=self.access.actor, reason=reason)
        return self.retrieve(request, pk=pk)

    def _act(self, request: Request) -> tuple[Cluster, str]:
        cluster = self.get_object()  # first, so that a cluster out of sight is a 404 for everybody
        require_platform_admin(self.access)
        return cluster, checked_body(ReasonInput, request)["reason"]

    @extend_schema(responses=PolicyDocument)
    @action(detail=True, methods=["get"])
    def policy(self, request: Request, pk: int) -> Response:
        """Show the scheduler policy. The newest valid one; the ETag is the number of the newest revision."""
        return self._policy(self.get_object())

    @extend_schema(request=PolicyInput, responses=PolicyDocument, parameters=[IF_MATCH_NEEDED, DRY_RUN_PARAMETER])
    @policy.mapping.put
    def put_policy(self, request: Request, pk: int) -> Response:
        """Store a scheduler policy.

        A text that no session could run under is refused (400, with the line) and the last good one goes on. What
        sessions decide under a new text is only shown until it is released. With `dry_run=true` nothing is stored and
        the answer has `findings`, `difference` and `impact`. Role: platform admin.
        """
        cluster = self.get_object()
        require_platform_admin(self.access)
        wanted = checked_body(PolicyInput, request)
        version = expected_version(request, needed=not is_dry_run(request))
        if is_dry_run(request):
            services.require_newest_policy(cluster, version)
            return self._tried(cluster, wanted["text"])
        services.set_policy(
            cluster=cluster, text=wanted["text"], reason=wanted["reason"], version=version, actor=self.access.actor
        )
        return self._policy(cluster)

    @extend_schema(request=PolicyInput, responses=PolicyDocument, parameters=[IF_MATCH_NEEDED, DRY_RUN_PARAMETER])
    @policy.mapping.patch
    def patch_policy(self, request: Request, pk: int) -> Response:
        """Store a scheduler policy (PATCH). As PUT does: the text alone can change. Role: platform admin."""
        return self.put_policy(request, pk=pk)

    @extend_schema(request=ReasonInput, responses=PolicyDocument, parameters=[IDEMPOTENCY])
    @action(detail=True, methods=["post"], url_path="policy/release", url_name="policy-release")
    @idempotent
    def release_policy(self, request: Request, pk: int) -> Response:
        """Release the scheduler policy. From now on what it decides is sent. Role: platform admin."""
        cluster, reason = self._act(request)
        revision = ruling_policy(cluster)
        if revision is None:
            raise DomainError("not_found", f"{cluster.name} has no valid policy yet.")
        services.release_policy(revision=revision, actor=self.access.actor, reason=reason)
        return self._policy(cluster)

    def _policy(self, cluster: Cluster) -> Response:
        revision = ruling_policy(cluster)
        if revision is None:
            raise DomainError("not_found", f"{cluster.name} has no valid policy yet.")
        revision.cluster = cluster
        newest = newest_policy(cluster)
        document = PolicyDocument(revision, context=self.get_serializer_context()).data
        return Response(document, headers={"ETag": f'"{newest.number if newest else 0}"'})

    def _tried(self, cluster: Cluster, text: str) -> Response:
        findings = policy_findings(text)
        broken = any(finding["severity"] == "error" for finding in findings)
        ruling = ruling_policy(cluster)
        before = ruling.text.splitlines() if ruling else []
        # Comparing takes quadratic time: what is too long to be a policy is not compared.
        after = text.splitlines() if text.count("\n") <= MOST_LINES else []
        difference = list(difflib.unified_diff(before, after, "ruling", "new", lineterm=""))
        tried = None if broken else impact_now(cluster, (), access=self.access, policy_text=text)
        return Response(
            {"dry_run": True, "valid": not broken, "findings": findings, "difference": difference, "impact": tried}
        )

    def known_parameters(self) -> set[str]:
        known = super().known_parameters()
        return {*known, DRY_RUN} if self.action in ("put_policy", "patch_policy") else known


class CardTypeFilters(django_filters.FilterSet):
    cluster = ReferenceFilter(relation="cluster", by="slug", among=visible_clusters)
    name = TextFilter()
    kind = OneOf(choices=CardKind.choices)


class CardTypes(TreeWrites):
    """Kinds of cards in the clusters that the caller sees: found on nodes, or declared ahead of them."""

    scopes = (Scope.CLUSTER_READ, Scope.QUOTA_READ)
    kind = "card-type"
    versioned = False
    etag = True
    model = CardType
    serializer_class = CardTypeDocument
    filterset_class = CardTypeFilters

    def visible(self) -> QuerySet[CardType]:
        return with_promised(visible_card_types(self.access), self.access)

    @extend_schema(
        request=CardTypeInput,
        responses={201: CardTypeDocument, 202: ChangeDocument},
        parameters=[IDEMPOTENCY, DRY_RUN_PARAMETER],
    )
    @kept
    def create(self, request: Request) -> Response:
        """Declare a card type. Before a node carries it, so that quota can be written for it. Role: platform admin."""
        require_administrator(self.access)
        wanted = checked_body(CardTypeInput, request)
        cluster, name, reason = self.cluster_of(wanted), wanted.pop("name"), wanted.pop("reason", "")
        return self.make(cluster, key_of("card-type", name), wanted, reason, name=name)

    @extend_schema(
        request=CardTypePatch,
        responses={200: CardTypeDocument, 202: ChangeDocument},
        parameters=[IF_MATCH, DRY_RUN_PARAMETER],
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        """Change a card type. Once nodes have it, `aliases` alone (else 409). Role: platform admin."""
        row: CardType = self.writable()
        patch = checked_body(CardTypePatch, request)
        reason = patch.pop("reason", "")
        if row.last_seen_at is not None and patch.keys() - {"aliases"}:
            raise DomainError("conflict", f"Nodes carry {row.name}: what they say of it is not for editing.")
        edit = named_anew(row, patch)
        if edit is None:
            require_versions(row.cluster, self._seen(self.key_of_row(row)))
            return self.changed(row)  # it has no other name to lose
        return self.edit(row, edit, reason)

    @extend_schema(
        request=DeleteInput,
        responses={204: None, 202: ChangeDocument},
        parameters=[IF_MATCH, DRY_RUN_PARAMETER, REASON_IN_ADDRESS],
    )
    def destroy(self, request: Request, pk: int) -> Response:
        """Delete a declared card type. 409 where nodes carry it: it goes with them. Role: platform admin."""
        row: CardType = self.writable()
        if row.discovered:
            raise DomainError("conflict", f"Nodes carry {row.name}: it is found, not declared, and goes with them.")
        return self.remove(row)


class NodeFilters(django_filters.FilterSet):
    cluster = ReferenceFilter(relation="cluster", by="slug", among=visible_clusters)
    name = TextFilter()
    card = django_filters.CharFilter(field_name="cards", lookup_expr="has_key", label="A card that it has.")
    gone = YesNoFilter(
        field_name="gone_at", lookup_expr="isnull", exclude=True, label="`true`: only those that left the cluster."
    )


class Nodes(ReadView):
    """Nodes of the clusters that the caller sees."""

    scopes = (Scope.CLUSTER_READ,)
    model = Node
    serializer_class = NodeDocument
    filterset_class = NodeFilters

    def visible(self) -> QuerySet[Node]:
        return visible_nodes(self.access)

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        queryset = super().filter_queryset(queryset)
        if self.action == "list" and "gone" not in self.request.query_params:
            return queryset.filter(gone_at__isnull=True)
        return queryset
