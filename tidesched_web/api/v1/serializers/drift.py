from typing import Any

from rest_framework import serializers

from tidesched_web.api.v1.serializers.briefs import AddressField, BriefCluster
from tidesched_web.quota.models import DriftEnd, DriftState, DriftWhat


class DriftFieldDocument(serializers.Serializer[Any]):
    """One field, values as text; null is not there. Who changed it as far as the cluster says, else empty."""

    field = serializers.CharField()
    intent = serializers.CharField(allow_null=True)
    pushed = serializers.CharField(allow_null=True)
    live = serializers.CharField(allow_null=True)
    changed_by = serializers.CharField()
    changed_at = serializers.CharField(help_text="By the cluster's own clock, as the cluster notes it.")


class DriftDocument(serializers.Serializer[Any]):
    """An object that differs from what was written to the cluster: one row until that ends.

    Its times are wall time; `differences.changed_at` is by the cluster's clock.
    """

    id = serializers.IntegerField()
    url = AddressField("drift")
    display = serializers.SerializerMethodField()
    cluster = BriefCluster()
    kind = serializers.CharField()
    name = serializers.CharField()
    what = serializers.ChoiceField(choices=DriftWhat.choices)
    state = serializers.ChoiceField(choices=DriftState.choices)
    differences = DriftFieldDocument(many=True, source="fields")
    refusal = serializers.CharField(help_text="What the cluster answered to the newest push, where it refused it.")
    found_at = serializers.DateTimeField()
    changed_at = serializers.DateTimeField()
    asked = serializers.CharField(help_text="pushed or adopted, while that is under way.")
    change = serializers.IntegerField(source="change_id", allow_null=True)
    decided_by = serializers.CharField()
    decided_at = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField()
    ended_at = serializers.DateTimeField(allow_null=True)
    end = serializers.ChoiceField(choices=DriftEnd.choices, allow_blank=True)

    def get_display(self, drift: Any) -> str:
        return f"{drift.kind} {drift.name}: {drift.what}"


class DriftActs(serializers.Serializer[Any]):
    """One decision about many objects of one cluster."""

    ids = serializers.ListField(
        child=serializers.IntegerField(min_value=0, max_value=2**63 - 1), min_length=1, max_length=1000
    )
    act = serializers.ChoiceField(choices=[("repush", "repush"), ("adopt", "adopt"), ("ignore", "ignore")])
    reason = serializers.CharField(max_length=1000, required=False, allow_blank=True, default="")
