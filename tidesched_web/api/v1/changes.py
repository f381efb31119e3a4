from http import HTTPStatus
from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from tidesched_web.accounts.models import Scope
from tidesched_web.api.body import checked_body
from tidesched_web.api.filters import OneOf, ReferenceFilter, TextFilter, TimeFilter, codes
from tidesched_web.api.idempotency import idempotent
from tidesched_web.api.v1.change_answers import accepted, preview
from tidesched_web.api.v1.references import referred
from tidesched_web.api.v1.serializers.changes import (
    PLAN_SCHEMA,
    ApplyInput,
    ChangeDocument,
    ChangeInput,
    ChangePatch,
    ChangeSummary,
    ForecastDocument,
    RollBackInput,
    SayWhy,
)
from tidesched_web.api.views import ReadView
from tidesched_web.api.writes import (
    DRY_RUN_PARAMETER,
    IDEMPOTENCY,
    IF_MATCH,
    IF_MATCH_ALWAYS,
    IF_MATCH_NEEDED,
    expected_version,
    is_dry_run,
    true_or_false,
)
from tidesched_web.changes import services
from tidesched_web.changes.acts import Act, refusal
from tidesched_web.changes.forecast_selectors import forecast_of, record_of
from tidesched_web.changes.models import SOURCES, ChangeState, ForecastState, QuotaChange
from tidesched_web.changes.selectors import visible_changes
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.errors import DomainError

IMPACT = OpenApiParameter(
    "impact", bool, description="Wait a little for the answer to what the next session would do otherwise (default)."
)
_ACCEPTED = {202: ChangeDocument}
ACTS = [IF_MATCH_ALWAYS, IDEMPOTENCY]


class ChangeFilters(django_filters.FilterSet):
    cluster = ReferenceFilter(relation="cluster", by="slug", among=visible_clusters)
    state = OneOf(choices=ChangeState.choices)
    source = OneOf(choices=codes(SOURCES))
    created_by = TextFilter(label="User name of who made it.")
    since = TimeFilter(field_name="created_at", lookup_expr="gte")
    until = TimeFilter(field_name="created_at", lookup_expr="lt")


class QuotaChanges(ReadView):
    """Changes that touch nothing but tenants of the caller's, or are the caller's own; the newest first."""

    scopes = (Scope.QUOTA_READ, Scope.QUOTA_WRITE)
    write_scopes = (Scope.QUOTA_WRITE,)
    model = QuotaChange
    filterset_class = ChangeFilters
    newest_first = True
    etag = True

    def check_head(self, request: Request, *, writes: bool) -> None:
        super().check_head(request, writes=writes)
        if self.action not in ("create", "apply", "list", "retrieve", "plan") and is_dry_run(request):
            raise DomainError("unknown_parameter", "This act has no dry run: the plan says what the change would do.")

    def visible(self) -> QuerySet[QuotaChange]:
        changes = visible_changes(self.access)
        if self.action == "list":
            return changes.defer("edits", "base", "plan", "failure")
        return changes.prefetch_related("objects_carried")

    def get_serializer_class(self) -> type[BaseSerializer[QuotaChange]]:
        return ChangeSummary if self.action == "list" else ChangeDocument

    def known_parameters(self) -> set[str]:
        return {"impact"} if self.action == "plan" else super().known_parameters()

    @extend_schema(request=ChangeInput, responses={201: ChangeDocument}, parameters=[IDEMPOTENCY, DRY_RUN_PARAMETER])
    def create(self, request: Request) -> Response:
        """Draft a quota change.

        Keeps edits as a draft. With `dry_run=true` nothing is kept and the answer is `{dry_run, plan}`; its `impact` is
        null, since that is worked out for a draft that is kept: make one, read its plan, and cancel it where it was
        only a question. Role: admin of the tenant.
        """
        if not is_dry_run(request):
            return self._create(request)
        wanted = checked_body(ChangeInput, request)
        return preview(self, self._cluster(wanted), wanted["edits"], whole=True)

    @idempotent
    def _create(self, request: Request) -> Response:
        wanted = checked_body(ChangeInput, request)
        change = services.draft(
            cluster=self._cluster(wanted),
            edits=wanted["edits"],
            access=self.access,
            reason=wanted["reason"],
            source="api",
            apply_at=wanted["apply_at"],
            well_formed=True,
        )
        services.ask_impact(change=change, access=self.access, just_planned=True)
        return self.made(change)

    def _seen(self, *, needed: bool = True) -> services.Reviewed | None:
        version = expected_version(self.request, needed=needed)
        return None if version is None else services.Reviewed(version=version)

    def _for(self, act: Act) -> QuotaChange:
        """The change of the address, for who may do this with it: that is asked before the body is looked at."""
        change: QuotaChange = self.get_object()
        refused = refusal(change, self.access, act)
        if refused is not None and refused.status in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
            raise refused
        return change

    def _cluster(self, wanted: dict[str, Any]) -> Any:
        return referred(visible_clusters(self.access), wanted["cluster"], "/cluster", by="slug")

    @extend_schema(request=ChangePatch, responses=ChangeDocument, parameters=[IF_MATCH])
    def partial_update(self, request: Request, pk: int) -> Response:
        """Edit a draft. New figures, another reason or hour take back an approval. Role: the author."""
        change = self._for(Act.EDIT)
        wanted = checked_body(ChangePatch, request)
        change = services.edit_draft(
            change=change, access=self.access, seen=self._seen(needed=False), well_formed=True, **wanted
        )
        services.ask_impact(change=change, access=self.access)
        return self.changed(change)

    @extend_schema(responses={200: PLAN_SCHEMA}, parameters=[IMPACT])
    @action(detail=True, methods=["get"])
    def plan(self, request: Request, pk: int) -> Response:
        """Show a change's plan. What it would do to the tree of now, or did, and what prevents it."""
        change = self.get_object()
        wanted = true_or_false(request, "impact", default=True)
        with_impact = wanted and change.state in QuotaChange.OPEN
        return Response(services.shown_plan(change=change, access=self.access, impact=with_impact, server=with_impact))

    @extend_schema(responses=ForecastDocument)
    @action(detail=True, methods=["get"])
    def forecast(self, request: Request, pk: int) -> Response:
        """Show a change's forecast. What it was expected to do beside what came of it in its cluster."""
        change = self.get_object()
        found = forecast_of(change, self.access)
        kept = found.forecast if found is not None else None
        document = {
            "state": kept.state if kept else ForecastState.VOID,
            "session": kept.made_in if kept else None,
            "sessions": kept.sessions if kept else 0,
            "counted": kept.counted if kept else False,
            "compared_at": kept.compared_at if kept else None,
            "rows": found.rows if found is not None else [],
            "hidden": found.hidden if found is not None else 0,
            "record": record_of(self.access, change.cluster),
        }
        return Response(ForecastDocument(document).data)

    @extend_schema(request=SayWhy, responses=_ACCEPTED, parameters=ACTS)
    @action(detail=True, methods=["post"])
    @idempotent
    def approve(self, request: Request, pk: int) -> Response:
        """Approve a quota change.

        As a second person: the author cannot approve (403), nor can an account that the author made or gave its role,
        one that made the author's or gave it its role, one that the same tenant admin invited, nor one whose role is
        younger than the change (403 `approver_not_independent` with `cause`: `made_by_author`,
        `author_made_by_approver`, `same_maker`, `younger_than_change`). A change that was to be applied is applied. One
        that asks for more quota of a tenant itself (`asks_beyond`) is approved by platform admins alone, once its
        author has asked to apply it (409 before). Role: admin of the tenant.
        """
        change = self._for(Act.APPROVE)
        wanted = checked_body(SayWhy, request)
        return accepted(
            self, services.approve(change=change, access=self.access, reason=wanted["reason"], seen=self._seen())
        )

    @extend_schema(request=SayWhy, responses=_ACCEPTED, parameters=ACTS)
    @action(detail=True, methods=["post"])
    @idempotent
    def reject(self, request: Request, pk: int) -> Response:
        """Reject a quota change. It ends for good, with the reason. Role: admin of the tenant."""
        change = self._for(Act.REJECT)
        wanted = checked_body(SayWhy, request)
        return accepted(
            self, services.reject(change=change, access=self.access, reason=wanted["reason"], seen=self._seen())
        )

    @extend_schema(request=SayWhy, responses=_ACCEPTED, parameters=ACTS)
    @action(detail=True, methods=["post"])
    @idempotent
    def cancel(self, request: Request, pk: int) -> Response:
        """Cancel a quota change. Before it is written to the tree. Role: the author, or platform admin."""
        change = self._for(Act.CANCEL)
        wanted = checked_body(SayWhy, request)
        return accepted(
            self, services.cancel(change=change, access=self.access, reason=wanted["reason"], seen=self._seen())
        )

    @extend_schema(
        request=ApplyInput, responses=_ACCEPTED, parameters=[IF_MATCH_NEEDED, IDEMPOTENCY, DRY_RUN_PARAMETER]
    )
    @action(detail=True, methods=["post"])
    def apply(self, request: Request, pk: int) -> Response:
        """Apply a quota change.

        Now, or at `apply_at`. 409 with what changed meanwhile where the tree has moved since its base. Where approval
        is due it waits for that first (`waiting`), as does a tenant admin's change that asks for more quota of the
        tenant itself; once that is approved, only a platform admin applies it before its time (403). An approval holds
        for the hour and the reason that were approved: with others the change waits again, unless the caller is a
        second person whose approval counts, who approves it by this act (`approved_by`). With `dry_run=true` the answer
        is 200 `{dry_run, plan}`. Role: admin of the tenant.
        """
        if is_dry_run(request):
            change = self._for(Act.APPLY)
            checked_body(ApplyInput, request)
            services.require_reviewed(change, self._seen(needed=False))
            plan = services.shown_plan(change=change, access=self.access)
            return Response({"dry_run": True, "plan": plan})
        return self._apply(request)

    @idempotent
    def _apply(self, request: Request) -> Response:
        change = self._for(Act.APPLY)
        wanted = checked_body(ApplyInput, request)
        done = services.apply(
            change=change,
            access=self.access,
            at=wanted["apply_at"],
            reason=wanted.get("reason"),
            base_version=wanted["base_version"],
            seen=self._seen(),
        )
        return accepted(self, done)

    @extend_schema(request=None, responses=_ACCEPTED, parameters=ACTS)
    @action(detail=True, methods=["post"])
    @idempotent
    def retry(self, request: Request, pk: int) -> Response:
        """Send a change's failed objects again. Those that the cluster refused. Role: admin of the tenant."""
        return accepted(self, services.retry(change=self.get_object(), access=self.access, seen=self._seen()))

    @extend_schema(request=RollBackInput, responses=_ACCEPTED, parameters=ACTS)
    @action(detail=True, methods=["post"])
    @idempotent
    def rollback(self, request: Request, pk: int) -> Response:
        """Roll back a quota change.

        Makes a new draft that undoes it, to be reviewed and applied like any other; with `apply: true` it is applied at
        once. What only platform admins set is rolled back by them alone (403). Role: admin of the tenant.
        """
        change = self._for(Act.ROLL_BACK)
        wanted = checked_body(RollBackInput, request)
        back = services.roll_back(change=change, access=self.access, reason=wanted["reason"], seen=self._seen())
        if wanted["apply"]:
            back = services.apply(change=back, access=self.access)
        else:
            services.ask_impact(change=back, access=self.access)
        return accepted(self, back)
