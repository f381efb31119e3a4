from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tidesched_web.api.v1.serializers.briefs import AddressField, BriefCluster, ShownAsIs
from tidesched_web.api.v1.serializers.json_shapes import JOB_RESULT
from tidesched_web.jobs.models import Job, JobKind, JobState


class LogLineDocument(serializers.Serializer[Any]):
    """One line of a job's log."""

    at = serializers.DateTimeField()
    message = serializers.SerializerMethodField()

    def get_message(self, line: dict[str, Any]) -> str:
        return str(line["text"]) % line["values"]


class JobSummary(serializers.Serializer[Any]):
    """A job in a list: what it is, how far it is."""

    id = serializers.IntegerField()
    url = AddressField("jobs")
    display = serializers.SerializerMethodField()
    kind = serializers.ChoiceField(choices=JobKind.choices)
    subject = serializers.CharField(help_text="What it is about, such as `change:12`.")
    cluster = BriefCluster(allow_null=True)
    owner = serializers.CharField(source="actor")
    state = serializers.ChoiceField(choices=JobState.choices)
    position = serializers.SerializerMethodField()
    progress = serializers.FloatField(help_text="0 to 1.")
    cancelling = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField()

    def get_display(self, job: Job) -> str:
        return f"{job.get_kind_display()} {job.pk}"

    @extend_schema_field({"type": ["integer", "null"], "description": "Which turn a job that waits is waiting for."})
    def get_position(self, job: Job) -> int | None:
        return getattr(job, "place", None)

    def get_cancelling(self, job: Job) -> bool:
        return job.open and job.cancel_asked_at is not None


@extend_schema_field(JOB_RESULT, component_name="JobResult")
class ResultField(ShownAsIs):
    """What a job has found so far."""


class JobDocument(JobSummary):
    """A job with its log and what it has found so far, as far as the caller may see it."""

    log = LogLineDocument(many=True)
    result = ResultField()
