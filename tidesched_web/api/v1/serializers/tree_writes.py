from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tidesched_web.api.v1.serializers.briefs import AddressField, BriefCluster, ShownAsIs
from tidesched_web.api.v1.serializers.json_shapes import ref
from tidesched_web.api.v1.serializers.owners import ReasonMixin, ReferenceField
from tidesched_web.api.v1.serializers.tree_shapes import CARD_NAME, MOST_AMOUNT
from tidesched_web.changes.documents import MOST_ALIASES
from tidesched_web.clusters.models import CardKind
from tidesched_web.common.models import ServiceType
from tidesched_web.quota import names

TREE_SCHEMA = ref("Tree")


@extend_schema_field(TREE_SCHEMA)
class TreeField(ShownAsIs):
    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            raise serializers.ValidationError("A tree is a map with sections such as queues.")
        return data


class TreeInput(serializers.Serializer[Any]):
    """What the tree has to say: `tree`, or `file` with the text of a YAML file."""

    tree = TreeField(required=False)
    file = serializers.CharField(required=False, trim_whitespace=False)
    keep = serializers.BooleanField(
        required=False, default=False, help_text="What is not named stays as it is instead of being deleted."
    )
    reason = serializers.CharField(max_length=1000, required=False, allow_blank=True, default="")


# A closed queue is Closing until it is drained, which no request sets.
PREEMPTION = [("PreemptLowerPriority", "PreemptLowerPriority"), ("Never", "Never")]
WANTED_STATES = [("Open", "Open"), ("Closed", "Closed")]


class NameField(serializers.RegexField):
    def __init__(self, rule: names.Rule) -> None:
        super().__init__(f"^{rule.form}$", max_length=rule.most, error_messages={"invalid": rule.refusal})


@extend_schema_field(ref("CardCounts"))
class CardQuotaField(ShownAsIs):
    """Card name → count. In a PATCH a merge patch: null takes a card away, a card that is left out stays."""

    def to_internal_value(self, data: Any) -> Any:
        return data


@extend_schema_field(ref("QuantitiesEdit"))
class QuantitiesField(CardQuotaField):
    """Resource → quantity as Kubernetes writes it; a merge patch."""


class QueuePatch(ReasonMixin):
    """What may change in a queue. Null takes a limit away; closing is ``state: "Closed"``."""

    weight = serializers.IntegerField(required=False, min_value=1, max_value=65535)
    priority = serializers.IntegerField(required=False, min_value=0, max_value=2**31 - 1)
    reclaimable = serializers.BooleanField(required=False)
    cpu_milli = serializers.IntegerField(required=False, allow_null=True, min_value=0, max_value=MOST_AMOUNT)
    memory_bytes = serializers.IntegerField(required=False, allow_null=True, min_value=0, max_value=MOST_AMOUNT)
    card_quota = CardQuotaField(required=False, allow_null=True)
    state = serializers.ChoiceField(choices=WANTED_STATES, required=False)
    parent = serializers.CharField(  # type: ignore[assignment]  # a member of the document, not of the serializer
        max_length=253, required=False, allow_null=True, allow_blank=True
    )
    deserved = QuantitiesField(required=False, allow_null=True)
    guarantee = QuantitiesField(required=False, allow_null=True)


class QueueInput(QueuePatch):
    """A queue to make: an inference queue names its project, a training queue its business line."""

    cluster = ReferenceField()
    name = NameField(names.QUEUE)
    service_type = serializers.ChoiceField(choices=ServiceType.choices)
    tenant = ReferenceField(required=False, allow_null=True)
    project = ReferenceField(required=False, allow_null=True)
    business_line = ReferenceField(required=False, allow_null=True)


class PriorityClassPatch(ReasonMixin):
    """What may change in a class. Another value or preemption policy needs ``replace: true``: it is made anew."""

    value = serializers.IntegerField(required=False, min_value=-(2**31), max_value=1_000_000_000)
    global_default = serializers.BooleanField(required=False)
    preemption_policy = serializers.ChoiceField(choices=PREEMPTION, required=False)
    description = serializers.CharField(max_length=2000, required=False, allow_blank=True, allow_null=True)
    replace = serializers.BooleanField(required=False)


class PriorityClassInput(ReasonMixin):
    """A class to make."""

    cluster = ReferenceField()
    name = NameField(names.SUBDOMAIN)
    value = serializers.IntegerField(min_value=-(2**31), max_value=1_000_000_000)
    global_default = serializers.BooleanField(required=False)
    preemption_policy = serializers.ChoiceField(choices=PREEMPTION, required=False)
    description = serializers.CharField(max_length=2000, required=False, allow_blank=True)


class CardTypePatch(ReasonMixin):
    """What may change in a card type that was declared ahead; of one that nodes have shown only its aliases."""

    resource = serializers.CharField(max_length=120, required=False, allow_null=True, allow_blank=True)
    kind = serializers.ChoiceField(choices=CardKind.choices, required=False)
    parent = serializers.CharField(  # type: ignore[assignment]  # as above
        max_length=120, required=False, allow_null=True, allow_blank=True
    )
    aliases = serializers.ListField(
        child=serializers.RegexField(CARD_NAME, max_length=120),
        required=False,
        max_length=MOST_ALIASES,
        help_text="Other names that may be used for it wherever quota is written; answers use the canonical one.",
    )


class CardTypeInput(CardTypePatch):
    """A card type to declare before a node carries it."""

    cluster = ReferenceField()
    name = serializers.RegexField(CARD_NAME, max_length=120)


class GrantInput(ReasonMixin):
    """A namespace that may use a queue."""

    cluster = ReferenceField()
    namespace = NameField(names.LABEL)
    queue = NameField(names.QUEUE)


class GrantDocument(serializers.Serializer[Any]):
    """A namespace that may use a queue. A cluster without any grant lets every namespace use every queue."""

    id = serializers.IntegerField()
    url = AddressField("grants")
    display = serializers.SerializerMethodField()
    cluster = BriefCluster()
    namespace = serializers.CharField()
    queue = serializers.CharField(source="queue.name")
    version = serializers.IntegerField()

    def get_display(self, grant: Any) -> str:
        return str(grant)


class PolicyInput(serializers.Serializer[Any]):
    """Another text for the cluster's policy."""

    text = serializers.CharField(max_length=200_000, trim_whitespace=False)
    reason = serializers.CharField(max_length=1000, trim_whitespace=True, help_text="Goes into the audit log.")
