from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tidesched_web.api.v1.serializers.briefs import AddressField, BriefCluster, MemoryField, ShownAsIs, WholeCountsField
from tidesched_web.api.v1.serializers.json_shapes import TAINT, TEXT, list_of, map_of
from tidesched_web.clusters.models import CardKind, Cluster, ClusterMode
from tidesched_web.scheduling.holds import STOPS, sending_stop
from tidesched_web.scheduling.models import SessionState


class ClockDocument(serializers.Serializer[Any]):
    """The cluster's own time, and how many of its seconds pass in one of ours."""

    now = serializers.DateTimeField()
    rate = serializers.FloatField()


class PauseDocument(serializers.Serializer[Any]):
    """Who stopped the sessions from sending, when and why."""

    at = serializers.DateTimeField()
    by = serializers.CharField()
    reason = serializers.CharField()


class SendingStopDocument(serializers.Serializer[Any]):
    """Why sessions decide, but nothing is sent to the cluster."""

    code = serializers.ChoiceField(choices=[str(code) for code in STOPS])
    since = serializers.DateTimeField()
    by = serializers.CharField(help_text="Who paused it or stored the policy; empty for the others.")
    rule = serializers.CharField(help_text="The limit that the guard's session would have exceeded; empty for others.")
    session = serializers.IntegerField(allow_null=True, help_text="Number of the session that the guard stopped.")


class OvercommitDocument(serializers.Serializer[Any]):
    """How much of the hardware quotas may promise, by service type."""

    inference = serializers.FloatField()
    training = serializers.FloatField()


class GuardsDocument(serializers.Serializer[Any]):
    """Beyond these a session stops before it sends, and waits for a person."""

    evict_gangs_per_minute = serializers.IntegerField()
    evict_cards_per_minute = serializers.IntegerField()
    evict_share_of_training = serializers.FloatField()


class NewestSessionDocument(serializers.Serializer[Any]):
    """The newest session of a cluster."""

    id = serializers.IntegerField()
    url = AddressField("sessions")
    number = serializers.IntegerField()
    state = serializers.ChoiceField(choices=SessionState.choices)
    now = serializers.DateTimeField(help_text="The cluster's clock.")
    started_at = serializers.DateTimeField()


class ClusterDocument(serializers.Serializer[Any]):
    """A cluster with its mode, clock, guards, newest session and open alerts."""

    id = serializers.IntegerField()
    url = AddressField("clusters")
    display = serializers.CharField(source="name")
    name = serializers.CharField()
    slug = serializers.CharField()
    mode = serializers.ChoiceField(choices=ClusterMode.choices)
    simulated = serializers.BooleanField()
    clock = serializers.SerializerMethodField()
    pause = serializers.SerializerMethodField()
    sending_stop = serializers.SerializerMethodField()
    overcommit = serializers.SerializerMethodField()
    guards = serializers.SerializerMethodField()
    scheduler_names = serializers.ListField(child=serializers.CharField())
    volcano_namespace = serializers.CharField()
    volcano_config_map = serializers.CharField()
    session_period_seconds = serializers.FloatField()
    time_zone = serializers.CharField(help_text="Its own; empty = that of its first tide plan that is on.")
    local_time_zone = serializers.CharField(
        source="local_zone", help_text="What holds: its own, else that of its first tide plan that is on, else UTC."
    )
    session = serializers.SerializerMethodField()
    open_alerts = serializers.IntegerField()
    version = serializers.IntegerField()

    @extend_schema_field(ClockDocument)
    def get_clock(self, cluster: Cluster) -> Any:
        return ClockDocument({"now": cluster.clock(), "rate": cluster.clock_rate}).data

    @extend_schema_field(PauseDocument(allow_null=True))
    def get_pause(self, cluster: Cluster) -> Any:
        if not cluster.paused:
            return None
        return PauseDocument({"at": cluster.paused_at, "by": cluster.paused_by, "reason": cluster.paused_reason}).data

    @extend_schema_field(SendingStopDocument(allow_null=True))
    def get_sending_stop(self, cluster: Cluster) -> Any:
        stop = sending_stop(cluster)
        if stop is None:
            return None
        rule = str(stop.numbers.get("rule", ""))
        facts = {"code": stop.code, "since": stop.since, "by": stop.by, "rule": rule, "session": stop.session}
        return SendingStopDocument(facts).data

    @extend_schema_field(OvercommitDocument)
    def get_overcommit(self, cluster: Cluster) -> Any:
        ratios = {"inference": cluster.overcommit_inference, "training": cluster.overcommit_training}
        return OvercommitDocument(ratios).data

    @extend_schema_field(GuardsDocument)
    def get_guards(self, cluster: Cluster) -> Any:
        return GuardsDocument(cluster).data

    @extend_schema_field(NewestSessionDocument(allow_null=True))
    def get_session(self, cluster: Any) -> Any:
        if cluster.session_id is None:
            return None
        newest = {
            "id": cluster.session_id,
            "number": cluster.session_number,
            "state": cluster.session_state,
            "now": cluster.session_now,
            "started_at": cluster.session_at,
        }
        return NewestSessionDocument(newest, context=self.context).data


class ReasonInput(serializers.Serializer[Any]):
    """What an act needs: why."""

    reason = serializers.CharField(max_length=1000, trim_whitespace=True, help_text="Goes into the audit log.")


class PolicyDocument(serializers.Serializer[Any]):
    """The text of the ``volcano-scheduler.conf`` that rules in a cluster."""

    id = serializers.IntegerField()
    cluster = BriefCluster()
    number = serializers.IntegerField()
    text = serializers.CharField()
    valid = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField()
    reason = serializers.CharField()
    released_at = serializers.DateTimeField(allow_null=True)


class CardTypeDocument(serializers.Serializer[Any]):
    """A kind of card in a cluster. ``hardware`` is what the nodes have; the quotas are sums over its queues."""

    id = serializers.IntegerField()
    url = AddressField("card-types")
    display = serializers.CharField(source="name")
    name = serializers.CharField()
    cluster = BriefCluster()
    resource = serializers.CharField()
    kind = serializers.ChoiceField(choices=CardKind.choices)
    parent = serializers.CharField(source="parent.name", default=None, allow_null=True)  # type: ignore[assignment]
    hardware = serializers.IntegerField()
    inference_quota = serializers.IntegerField(
        allow_null=True, help_text="Of all queues now; null for callers who see only some tenants."
    )
    training_quota = serializers.IntegerField(allow_null=True, help_text="The same of training queues.")
    discovered = serializers.BooleanField()
    aliases = serializers.ListField(child=serializers.CharField())
    last_seen_at = serializers.DateTimeField(allow_null=True)
    version = serializers.IntegerField(help_text="Counts the edits by people.")


@extend_schema_field(map_of(TEXT))
class LabelsField(ShownAsIs):
    """Labels of a Kubernetes object."""


@extend_schema_field(list_of(TAINT))
class TaintsField(ShownAsIs):
    """Taints of a node, as Kubernetes writes them."""


class NodeDocument(serializers.Serializer[Any]):
    """A node as the cluster last said it: its cards, cpu, memory, labels and taints."""

    id = serializers.IntegerField()
    url = AddressField("nodes")
    display = serializers.CharField(source="name")
    name = serializers.CharField()
    cluster = BriefCluster()
    cpu_milli = serializers.IntegerField()
    memory_bytes = MemoryField(source="memory_mib")
    pods = serializers.IntegerField(help_text="How many pods it takes.")
    cards = WholeCountsField()
    labels = LabelsField()
    taints = TaintsField()
    unschedulable = serializers.BooleanField()
    last_seen_at = serializers.DateTimeField()
    gone_at = serializers.DateTimeField(allow_null=True)
