"""What changes were expected to do, and what came, as the API shows it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tidesched_web.api.v1.serializers.workloads import REASON_CODES, NumbersField
from tidesched_web.changes.forecast_selectors import Record
from tidesched_web.changes.forecasts import KINDS
from tidesched_web.changes.models import ForecastState


class WhyDocument(serializers.Serializer[Any]):
    """The reason that the gang had when it was missed; of an overtaken one ``numbers.change`` is the other change."""

    code = serializers.ChoiceField(choices=REASON_CODES, allow_blank=True)
    numbers = NumbersField()
    message = serializers.CharField(allow_blank=True)


class ForecastRowDocument(serializers.Serializer[Any]):
    """One gang that the impact named: what was expected of it, and what came."""

    gang = serializers.CharField()
    queue = serializers.CharField()
    expects = serializers.ChoiceField(choices=KINDS)
    pods = serializers.IntegerField(
        required=False, help_text="Of a running gang that was expected to grow: how many of its pods have a node then."
    )
    outcome = serializers.ChoiceField(
        choices=["open", "held", "missed", "gone", "overtaken"],
        help_text="Only held and missed rows are counted. An overtaken one cannot be judged, came it or not.",
    )
    session = serializers.IntegerField(allow_null=True, help_text="The number of the session that brought it.")
    at = serializers.DateTimeField(
        allow_null=True, help_text="When it came, wall time; of a missed row: after the time that was promised."
    )
    why = WhyDocument(allow_null=True)


class HeldDocument(serializers.Serializer[Any]):
    """How many gangs something was expected of and is decided, and of how many it came."""

    expects = serializers.ChoiceField(choices=KINDS)
    expected = serializers.IntegerField()
    held = serializers.IntegerField()


class RecordDocument(serializers.Serializer[Any]):
    """How often the forecasts of a cluster's last changes held."""

    changes = serializers.IntegerField()
    expected = serializers.IntegerField()
    held = serializers.IntegerField()
    kinds = serializers.SerializerMethodField()

    @extend_schema_field(HeldDocument(many=True))
    def get_kinds(self, record: Record) -> list[dict[str, Any]]:
        return [{"expects": kind, "expected": pair[0], "held": pair[1]} for kind, pair in record.kinds.items()]


class ForecastDocument(serializers.Serializer[Any]):
    """What a change was expected to do beside what came in the sessions after it; ``void`` where nothing is followed.

    ``hidden`` rows are of other tenants. ``counted``: it enters the record, since the impact was at most ten minutes
    old when the change was written.
    """

    state = serializers.ChoiceField(choices=ForecastState.choices)
    session = serializers.IntegerField(allow_null=True, help_text="The session that the impact was tried on.")
    sessions = serializers.IntegerField(help_text="Sessions after it that were compared, four at most.")
    counted = serializers.BooleanField()
    compared_at = serializers.DateTimeField(allow_null=True)
    rows = ForecastRowDocument(many=True)
    hidden = serializers.IntegerField()
    record = RecordDocument()
