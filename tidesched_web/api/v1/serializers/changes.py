import datetime as dt
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tidesched_web.api.v1.serializers.briefs import AddressField, BriefCluster, ShownAsIs
from tidesched_web.api.v1.serializers.json_shapes import CHANGE_ERRORS, CHANGE_FAILURE, ref
from tidesched_web.api.v1.serializers.owners import ReferenceField
from tidesched_web.api.v1.serializers.workloads import REASON_CODES, NumbersField
from tidesched_web.changes.acts import Act, allowed_actions
from tidesched_web.changes.forecast_selectors import Record
from tidesched_web.changes.forecasts import KINDS
from tidesched_web.changes.models import CarryAct, CarryState, ChangeState, ForecastState
from tidesched_web.common.calendar_bounds import OutOfCalendar, in_calendar


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


@extend_schema_field(ref("TreeEdits"))
class EditsField(ShownAsIs):
    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            raise serializers.ValidationError("Edits are a map: object → merge patch of its document.")
        return data


class MomentField(serializers.DateTimeField):
    def enforce_timezone(self, value: dt.datetime) -> dt.datetime:
        try:
            in_calendar(value if value.tzinfo else value.replace(tzinfo=dt.UTC))
        except OutOfCalendar as error:
            raise serializers.ValidationError(str(error), code="invalid") from None
        return super().enforce_timezone(value)


@extend_schema_field(CHANGE_FAILURE, component_name="ChangeFailure")
class FailureField(ShownAsIs):
    """Why nothing was written, or which objects the cluster refused."""


@extend_schema_field(CHANGE_ERRORS)
class ErrorsField(ShownAsIs):
    def get_attribute(self, instance: Any) -> Any:
        return [] if instance.committed_at else (instance.plan or {}).get("errors", [])


class CarriedDocument(serializers.Serializer[Any]):
    """One object on its way to the cluster."""

    kind = serializers.CharField()
    name = serializers.CharField()
    act = serializers.ChoiceField(choices=CarryAct.choices)
    state = serializers.ChoiceField(choices=CarryState.choices)
    reason = serializers.CharField()
    changed_at = serializers.DateTimeField()


class ChangeSummary(serializers.Serializer[Any]):
    """A change of a cluster's quota: ``committed_at`` its intent was written, ``applied_at`` the cluster had it."""

    id = serializers.IntegerField()
    url = AddressField("quota-changes")
    display = serializers.CharField(source="__str__")
    cluster = BriefCluster()
    state = serializers.ChoiceField(choices=ChangeState.choices)
    reason = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]  # the framework has an attribute of this name
    created_by = serializers.CharField()
    created_at = serializers.DateTimeField()
    approved_by = serializers.CharField()
    approved_at = serializers.DateTimeField(allow_null=True)
    approved_reason = serializers.CharField(
        help_text="Why it was approved, in the words of the approver; may be empty."
    )
    closed_by = serializers.CharField(help_text="Who rejected or cancelled it.")
    closed_reason = serializers.CharField()
    apply_at = serializers.DateTimeField(allow_null=True)
    committed_at = serializers.DateTimeField(allow_null=True)
    applied_at = serializers.DateTimeField(allow_null=True)
    base_version = serializers.IntegerField()
    tree_version = serializers.IntegerField(allow_null=True, help_text="Of the tree after it.")
    error = serializers.CharField()
    submitted_at = serializers.DateTimeField(allow_null=True, help_text="When approval was asked for.")
    revision = serializers.IntegerField(help_text="How often its figures, reason or hour were edited, and one.")
    asks_beyond = serializers.BooleanField(
        help_text="Whether its author asks for quota that only a platform admin sets."
    )
    rolls_back = serializers.IntegerField(source="rolls_back_id", allow_null=True)
    request_id = serializers.CharField()
    version = serializers.IntegerField()


class ChangeDocument(ChangeSummary):
    """A change with its edits and how far each object has come."""

    edits = EditsField()
    errors = ErrorsField(  # type: ignore[assignment]  # the framework has a property of this name
        read_only=True,
        help_text="Why it could not be applied as it is, as of its last edit; `plan/` says what prevents it now.",
    )
    failure = FailureField()
    objects = CarriedDocument(many=True, source="objects_carried.all")
    actions = serializers.SerializerMethodField(help_text="What the caller may do with it now.")

    @extend_schema_field({"type": "array", "items": {"type": "string", "enum": [act.value for act in Act]}})
    def get_actions(self, change: Any) -> list[str]:
        return [act.value for act in allowed_actions(change, self.context["access"])]


PLAN_SCHEMA = ref("Plan")


class ChangeInput(serializers.Serializer[Any]):
    """A change to draft."""

    cluster = ReferenceField()
    edits = EditsField()
    reason = serializers.CharField(max_length=1000, required=False, allow_blank=True, default="")
    apply_at = MomentField(required=False, allow_null=True, default=None)


class ChangePatch(serializers.Serializer[Any]):
    """What may change in a draft. ``rebase``: accept what was changed since it was made."""

    edits = EditsField(required=False)
    reason = serializers.CharField(max_length=1000, required=False, allow_blank=True)
    apply_at = MomentField(required=False, allow_null=True)
    rebase = serializers.BooleanField(required=False, default=False)


class ApplyInput(serializers.Serializer[Any]):
    """When to apply it (now by default), and on which plan that was decided."""

    apply_at = MomentField(required=False, allow_null=True, default=None)
    reason = serializers.CharField(max_length=1000, required=False, allow_blank=True)
    base_version = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=0, max_value=2**63 - 1
    )


class SayWhy(serializers.Serializer[Any]):
    """Why."""

    reason = serializers.CharField(max_length=1000, required=False, allow_blank=True, default="")


class RollBackInput(SayWhy):
    """Why, and whether the change that undoes it is applied at once instead of waiting for a review."""

    apply = serializers.BooleanField(required=False, default=False)
