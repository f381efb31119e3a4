from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tidesched_web.api.v1.serializers.briefs import AddressField, BriefCluster, CountsField, MemoryField, ShownAsIs
from tidesched_web.api.v1.serializers.json_shapes import REASON_NUMBERS, ref
from tidesched_web.engine.model import ReasonCode
from tidesched_web.workloads.models import Gang, GangEventKind, GangState
from tidesched_web.workloads.reason_figures import as_of
from tidesched_web.workloads.remedies import remedy_of
from tidesched_web.workloads.sight import shown_reason, shown_remedy

REASON_CODES = [(code.value, code.value) for code in ReasonCode]


class GangQueueDocument(serializers.Serializer[Any]):
    """The queue that a gang names; without id where this is no queue of TideSched's."""

    id = serializers.IntegerField(allow_null=True)
    url = serializers.URLField(allow_null=True)
    display = serializers.CharField()
    name = serializers.CharField()


@extend_schema_field(REASON_NUMBERS, component_name="ReasonNumbers")
class NumbersField(ShownAsIs):
    """The figures behind a reason: resource, requested, limit, allocated, inqueue, free, short, holders, nodes."""


@extend_schema_field(ref("Facts4"))
class DetailField(ShownAsIs):
    """What a point of a timeline says: of a reason its code and figures, of a move where to."""


class RemedyDocument(serializers.Serializer[Any]):
    """The smallest single change that a session has shown to admit the gang. Its fields depend on ``change``.

    ``quota``: ``queue``, ``card`` (a card name, ``cpu`` in milli-cores or ``memory`` in bytes) and ``by``;
    ``gang_ends``: ``gang``; ``priority``: ``above``. A name or an amount of another tenant is null.
    """

    change = serializers.ChoiceField(choices=["quota", "gang_ends", "priority"])
    queue = serializers.CharField(required=False, allow_null=True)
    card = serializers.CharField(required=False, allow_null=True)
    by = serializers.FloatField(required=False, allow_null=True)
    gang = serializers.CharField(required=False, allow_null=True)
    above = serializers.IntegerField(required=False)
    verified = serializers.BooleanField()


class WorkedOutDocument(serializers.Serializer[Any]):
    """When ``remedy`` was worked out, over which session, and until when the gang is expected to wait."""

    at = serializers.DateTimeField(source="worked_out_at", help_text="When it was worked out; wall time.")
    session = serializers.IntegerField(source="number", help_text="The number of the session in the cluster.")
    session_at = serializers.DateTimeField(source="at", help_text="When that session was, by the cluster's clock.")
    starts = serializers.BooleanField(
        allow_null=True,
        help_text="With the remedy the gang starts (or is promised cards); false: only its admission was shown; null "
        "where no remedy was found.",
    )
    until = serializers.DateTimeField(
        allow_null=True, help_text="By the cluster's clock; null where nothing says when it goes on by itself."
    )
    until_why = serializers.CharField(help_text="pods_leave, back_off, or empty.")


class FiguresOfDocument(serializers.Serializer[Any]):
    """The session that figures are of."""

    session = serializers.IntegerField(help_text="The number of the session in the cluster.")
    at = serializers.DateTimeField(help_text="When that session was, by the cluster's clock.")


class ReasonDocument(serializers.Serializer[Any]):
    """Why a gang waits. ``code`` and ``numbers`` are the contract, ``message`` is the sentence.

    ``figures_of`` is the session of which ``numbers`` and ``message`` are: the same one for all waiting gangs of a
    cluster, or a later one where the gang itself has changed since.
    ``remedy`` is worked out outside of the sessions: while ``remedy_worked_out`` is null nothing is known, or what was
    known was the answer to other figures and is worked out again; with it a remedy of null says that none of the
    changes that were tried helps, and ``numbers.short`` what is missing.
    """

    code = serializers.ChoiceField(choices=REASON_CODES)
    numbers = NumbersField()
    message = serializers.CharField()
    figures_of = FiguresOfDocument(allow_null=True)
    remedy = RemedyDocument(allow_null=True)
    remedy_worked_out = WorkedOutDocument(allow_null=True)


class GangDocument(serializers.Serializer[Any]):
    """A gang (PodGroup) as last seen. Times are of the cluster's clock."""

    id = serializers.IntegerField()
    url = AddressField("gangs")
    display = serializers.CharField(source="key")
    cluster = BriefCluster()
    namespace = serializers.CharField()
    name = serializers.CharField()
    queue = serializers.SerializerMethodField()
    service_type = serializers.CharField()
    priority = serializers.IntegerField()
    min_member = serializers.IntegerField()
    ready = serializers.IntegerField()
    phase = serializers.CharField()
    state = serializers.ChoiceField(choices=GangState.choices)
    left_without_running = serializers.BooleanField(
        source="left_waiting", help_text="Its state is finished, and it had left the cluster before it ran."
    )
    cards = CountsField()
    waiting_since = serializers.DateTimeField(allow_null=True)
    position = serializers.IntegerField(allow_null=True)
    reason = serializers.SerializerMethodField()

    @extend_schema_field(GangQueueDocument)
    def get_queue(self, gang: Gang) -> dict[str, Any]:
        url = f"{self.context['base']}queues/{gang.queue_id}/" if gang.queue_id else None
        return {"id": gang.queue_id, "url": url, "display": gang.queue_name, "name": gang.queue_name}

    @extend_schema_field(ReasonDocument(allow_null=True))
    def get_reason(self, gang: Gang) -> dict[str, Any] | None:
        if not gang.reason_code:
            return None
        queue_names = self.context["queue_names"][gang.cluster_id]
        own_queue = gang.own_queue  # type: ignore[attr-defined]  # annotated by `with_own_queue`
        numbers, message = shown_reason(
            gang.reason_code, gang.reason_numbers, gang.reason_message, own_queue=own_queue, queue_names=queue_names
        )
        found = remedy_of(gang, timezone.now()) if own_queue else None
        remedy = found.remedy if found else None
        if remedy:
            remedy = shown_remedy(remedy, gang.cluster_id, queue_names, self.context["own_gangs"])
        return {
            "code": gang.reason_code,
            "numbers": numbers,
            "message": message,
            "figures_of": FiguresOfDocument(of).data if (of := as_of(gang)) else None,
            "remedy": remedy,
            "remedy_worked_out": _worked_out(found) if found else None,
        }


def _worked_out(found: Any) -> dict[str, Any]:
    """Without a remedy there is nothing of which it could be said that the gang starts with it."""
    document: dict[str, Any] = WorkedOutDocument(found).data
    return document if found.remedy else document | {"starts": None}


class GangDetailDocument(GangDocument):
    """A gang with what its list leaves out; `pods/` and `timeline/` stand below it."""

    uid = serializers.CharField()
    owner_kind = serializers.CharField()
    owner_name = serializers.CharField()
    priority_class = serializers.CharField()
    replicas = serializers.IntegerField()
    bound = serializers.IntegerField()
    cpu_milli = serializers.IntegerField()
    memory_bytes = MemoryField(source="memory_mib")
    reason_since = serializers.DateTimeField(allow_null=True)
    submitted_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    spared_until = serializers.SerializerMethodField(
        help_text="Evicted before, it is no victim of another eviction until then (a time that is over: it was none), "
        "by the cluster's clock. Null where no eviction is known, or another scheduler evicts."
    )
    seen_at = serializers.DateTimeField(help_text="Wall time.")
    gone_at = serializers.DateTimeField(allow_null=True, help_text="Wall time when it left the cluster.")
    session = serializers.IntegerField(source="session_id", allow_null=True)

    @extend_schema_field(serializers.DateTimeField(allow_null=True))
    def get_spared_until(self, gang: Gang) -> Any:
        until = gang.spared_until if gang.cluster.evicts else None
        return serializers.DateTimeField().to_representation(until) if until else None


class PodDocument(serializers.Serializer[Any]):
    """A member of a gang."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    role = serializers.CharField()
    phase = serializers.CharField()
    leaving = serializers.BooleanField()
    node = serializers.CharField()
    card = serializers.CharField()
    cards = serializers.SerializerMethodField(help_text="How many cards it holds or asks for.")
    card_indices = serializers.ListField(child=serializers.IntegerField())
    started_at = serializers.DateTimeField(allow_null=True)

    def get_cards(self, pod: Any) -> float:
        return float(pod.card_milli) / 1000


class GangEventDocument(serializers.Serializer[Any]):
    """A point of a gang's timeline: ``at`` in the cluster's clock, ``wall_at`` when it was written."""

    id = serializers.IntegerField()
    kind = serializers.ChoiceField(choices=GangEventKind.choices)
    at = serializers.DateTimeField()
    wall_at = serializers.DateTimeField()
    session = serializers.IntegerField(source="session_id", allow_null=True)
    reclaim = serializers.IntegerField(source="reclaim_id", allow_null=True)
    detail = DetailField()
