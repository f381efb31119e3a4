from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tidesched_web.api.v1.serializers.briefs import AddressField, BriefCluster
from tidesched_web.api.v1.serializers.json_shapes import NAME, TEXT, list_of, ref
from tidesched_web.api.v1.serializers.owners import ReferenceField
from tidesched_web.api.v1.serializers.tree_shapes import LAYERS, PLAN_NAME
from tidesched_web.quota.models import TideAnswer

_EXCEPTIONS = ref("TideExceptions")


@extend_schema_field(LAYERS)
class LayersField(serializers.JSONField):
    """The layers of a plan; the services look at them."""


@extend_schema_field(_EXCEPTIONS)
class ExceptionsField(serializers.JSONField):
    """Dates that count as another day; the services look at them."""


class TideOverlap(serializers.Serializer[Any]):
    """A figure that two plans turn in the same hours. ``decides``: whose figure holds then, null where both add up."""

    code = serializers.ChoiceField(choices=["plans_overlap"])
    detail = serializers.CharField()
    first = serializers.CharField()
    last = serializers.CharField()
    decides = serializers.CharField(allow_null=True)
    by = serializers.ChoiceField(choices=["position", "name"])
    queue = serializers.CharField()
    card = serializers.CharField()
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()


class TidePlanDocument(serializers.Serializer[Any]):
    """Layers over the base quota by the clock. ``hidden_queues``: how many queues out of sight it is about too.

    ``warnings``: figures that another plan turns in the same hours, as if this plan were on.
    """

    id = serializers.IntegerField()
    url = AddressField("tide-plans")
    display = serializers.CharField(source="name")
    name = serializers.CharField()
    cluster = BriefCluster()
    enabled = serializers.BooleanField()
    position = serializers.IntegerField()
    time_zone = serializers.CharField()
    exceptions = ExceptionsField()
    layers = serializers.SerializerMethodField()
    hidden_queues = serializers.SerializerMethodField()
    open_layers = serializers.SerializerMethodField()
    next_change = serializers.SerializerMethodField(allow_null=True)
    warnings = serializers.SerializerMethodField()
    version = serializers.IntegerField()

    @extend_schema_field(LAYERS)
    def get_layers(self, plan: Any) -> Any:
        return self.context["plans"][plan.pk].layers

    @extend_schema_field(int)
    def get_hidden_queues(self, plan: Any) -> int:
        return int(self.context["plans"][plan.pk].hidden)

    @extend_schema_field(list_of(TEXT))
    def get_open_layers(self, plan: Any) -> list[str]:
        return list(self.context["plans"][plan.pk].open)

    @extend_schema_field({**NAME, "format": "date-time"})
    def get_next_change(self, plan: Any) -> str | None:
        moment = self.context["plans"][plan.pk].next_change
        return moment.isoformat() if moment else None

    @extend_schema_field(TideOverlap(many=True))
    def get_warnings(self, plan: Any) -> list[dict[str, Any]]:
        return [one.as_json() for one in self.context["plans"][plan.pk].overlaps]


class TideTakenBack(serializers.Serializer[Any]):
    """A layer that a person has ended; ``by`` is empty where that is not known, ``opens_next`` null for never."""

    plan = serializers.CharField()
    layer = serializers.CharField()
    by = serializers.CharField()
    opens_next = serializers.DateTimeField(allow_null=True)


class TideStepDocument(serializers.Serializer[Any]):
    """One figure that tide plans made another one. ``since``: when its layers opened or closed; null without any.

    ``after`` is what was sent; ``wanted`` what the layers make of the base: inference keeps what it uses, and what
    others get waits for that.
    """

    id = serializers.IntegerField()
    queue = serializers.CharField(source="queue.name")
    card = serializers.CharField()
    plans = serializers.ListField(child=serializers.CharField())
    layers = serializers.ListField(child=serializers.CharField())
    taken_back = TideTakenBack(many=True, source="ended_by_hand")
    since = serializers.DateTimeField(allow_null=True)
    at = serializers.DateTimeField()
    before = serializers.IntegerField()
    after = serializers.IntegerField()
    wanted = serializers.IntegerField()
    answer = serializers.ChoiceField(choices=TideAnswer.choices)
    message = serializers.CharField(help_text="What the cluster answered, where it did not take it.")
    answered_at = serializers.DateTimeField()


class TidePlanPatch(serializers.Serializer[Any]):
    """Fields of a plan and the reason; what is left out stays, an exception that is null goes."""

    reason = serializers.CharField(max_length=1000, required=False, allow_blank=True, default="")
    enabled = serializers.BooleanField(required=False)
    position = serializers.IntegerField(required=False, min_value=0, max_value=32767)
    time_zone = serializers.CharField(max_length=64, required=False)
    exceptions = ExceptionsField(required=False)
    layers = LayersField(required=False)


class TidePlanInput(TidePlanPatch):
    """A new plan."""

    cluster = ReferenceField()
    name = serializers.RegexField(PLAN_NAME, max_length=120)
