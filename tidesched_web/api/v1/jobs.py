import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from tidesched_web.accounts.models import Scope
from tidesched_web.api.filters import OneOf, ReferenceFilter, TextFilter
from tidesched_web.api.idempotency import idempotent
from tidesched_web.api.v1.serializers.jobs import JobDocument, JobSummary
from tidesched_web.api.views import Documents, ReadView, Rows
from tidesched_web.api.writes import IDEMPOTENCY
from tidesched_web.changes.impact_sight import result_within_sight
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.permissions import require_scope
from tidesched_web.jobs import services
from tidesched_web.jobs.models import Job, JobKind, JobState
from tidesched_web.jobs.selectors import visible_jobs


class JobFilters(django_filters.FilterSet):
    cluster = ReferenceFilter(relation="cluster", by="slug", among=visible_clusters)
    kind = OneOf(choices=JobKind.choices)
    state = OneOf(choices=JobState.choices)
    subject = TextFilter(label="What the job is about, as `subject` of a job says it.")


class Jobs(ReadView):
    """The caller's own jobs, the newest first; a platform admin sees everybody's."""

    scopes = (Scope.QUOTA_READ, Scope.QUOTA_WRITE)
    act_scopes = (Scope.QUOTA_WRITE,)
    model = Job
    filterset_class = JobFilters
    newest_first = True

    def visible(self) -> QuerySet[Job]:
        jobs = visible_jobs(self.access, self.caller)
        return jobs if self.action == "list" else jobs.defer(None).defer("params", "checkpoint")

    def get_serializer_class(self) -> type[BaseSerializer[Job]]:
        return JobSummary if self.action == "list" else JobDocument

    def documents(self, rows: Rows) -> Documents:
        rows = list(rows)
        places = services.places_of(rows)
        for row in rows:
            row.place = places.get(row.pk)
        if self.action != "list":
            for row in rows:
                row.result = result_within_sight(row, self.access)
        return super().documents(rows)

    @extend_schema(request=None, responses=JobDocument, parameters=[IDEMPOTENCY])
    @action(detail=True, methods=["post"])
    @idempotent
    def cancel(self, request: Request, pk: int) -> Response:
        """Cancel a job. A waiting job ends at once, a running one at its next step."""
        job = self.get_object()
        require_scope(self.access, *self.act_scopes)
        services.cancel(job=job)
        return self.shown(self.visible().get(pk=job.pk))
