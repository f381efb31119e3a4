from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tidesched_web.api.v1.serializers.briefs import (
    AddressField,
    BriefBusinessLine,
    BriefCluster,
    BriefProject,
    BriefTenant,
    MemoryField,
    WholeCountsField,
)
from tidesched_web.common.models import ServiceType
from tidesched_web.quota.models import Queue, QueueState, SyncState
from tidesched_web.quota.selectors import card_quota_of


class QueueUsageDocument(serializers.Serializer[Any]):
    """One card type in a queue now, in cards.

    ``borrowed``: what a full flood would take back from a training queue. ``lent``: the part of that which an inference
    queue leaves of its quota.
    """

    quota = serializers.FloatField()
    allocated = serializers.FloatField()
    inqueue = serializers.FloatField()
    elastic = serializers.FloatField()
    borrowed = serializers.FloatField()
    lent = serializers.FloatField()


class QueueDocument(serializers.Serializer[Any]):
    """A queue. In ``card_quota`` an absent card is 0; null cpu or memory is no limit.

    ``effective_quota`` is what tide plans make of ``card_quota`` at this moment; it is what is pushed to the cluster.
    """

    id = serializers.IntegerField()
    url = AddressField("queues")
    display = serializers.CharField(source="name")
    name = serializers.CharField()
    cluster = BriefCluster()
    service_type = serializers.ChoiceField(choices=ServiceType.choices)
    tenant = BriefTenant(allow_null=True)
    project = BriefProject(allow_null=True)
    business_line = BriefBusinessLine(allow_null=True)
    weight = serializers.IntegerField()
    priority = serializers.IntegerField()
    reclaimable = serializers.BooleanField()
    cpu_milli = serializers.IntegerField(allow_null=True)
    memory_bytes = MemoryField(source="memory_mib", allow_null=True)
    state = serializers.ChoiceField(choices=QueueState.choices)
    sync_state = serializers.ChoiceField(
        choices=SyncState.choices, help_text="Whether the Queue object agrees: failed = the cluster refuses it."
    )
    sync_error = serializers.CharField(help_text="What the cluster answered where it did not take the push.")
    card_quota = serializers.SerializerMethodField()
    effective_quota = serializers.SerializerMethodField()
    usage = serializers.SerializerMethodField()
    version = serializers.IntegerField()

    @extend_schema_field(WholeCountsField)
    def get_card_quota(self, queue: Queue) -> dict[str, int]:
        return card_quota_of(queue)

    @extend_schema_field(WholeCountsField)
    def get_effective_quota(self, queue: Queue) -> dict[str, int]:
        effective: dict[int, dict[str, int]] = self.context["effective"]
        return effective[queue.pk]

    @extend_schema_field(serializers.DictField(child=QueueUsageDocument()))
    def get_usage(self, queue: Queue) -> Any:
        usage: dict[int, Any] = self.context["usage"]
        return usage.get(queue.pk, {})


class PriorityClassDocument(serializers.Serializer[Any]):
    """A named priority of a cluster."""

    id = serializers.IntegerField()
    url = AddressField("priority-classes")
    display = serializers.CharField(source="name")
    name = serializers.CharField()
    cluster = BriefCluster()
    value = serializers.IntegerField()
    global_default = serializers.BooleanField()
    preemption_policy = serializers.CharField()
    description = serializers.CharField()
    sync_state = serializers.ChoiceField(choices=SyncState.choices)
    sync_error = serializers.CharField(help_text="What the cluster answered where it did not take the push.")
    version = serializers.IntegerField()
