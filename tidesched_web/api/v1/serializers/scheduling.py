from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tidesched_web.api.v1.serializers.briefs import AddressField, BriefCluster, BriefSession, ShownAsIs
from tidesched_web.api.v1.serializers.json_shapes import ALERT_NUMBERS, CARDS, ref
from tidesched_web.scheduling.models import (
    AlertSeverity,
    DecisionKind,
    DecisionState,
    ReachState,
    ReclaimMaker,
    ReclaimSource,
    ReclaimState,
    SessionState,
)

_REACH_CODES = [f"cluster_{state}" for state in ReachState.values if state != ReachState.CONNECTED]
ALERT_CODES = [
    (code, code)
    for code in (
        "quota_over_hardware", "node_lost", "node_not_ready", "node_recut", "foreign_scheduler", "partial_reclaim",
        "object_unreadable", "write_refused", "went_back", "pod_stays",
        "policy_invalid", "session_failed", "no_policy", "card_lost", "quota_without_card", "drift", "push_refused",
        *_REACH_CODES, "promise_unused", "audit_broken", "eviction_budget",
        "break_glass", "identity_provider_fails",
    )
]  # fmt: skip


@extend_schema_field(CARDS)
class TimingsField(ShownAsIs):
    """Name of a step → milliseconds, or name of a thing → how many."""


class SessionDocument(serializers.Serializer[Any]):
    """One run of the scheduler. ``now`` is of the cluster's clock, the other times are wall time."""

    id = serializers.IntegerField()
    url = AddressField("sessions")
    display = serializers.SerializerMethodField()
    cluster = BriefCluster()
    number = serializers.IntegerField()
    state = serializers.ChoiceField(choices=SessionState.choices)
    mode = serializers.CharField()
    trigger = serializers.CharField()
    now = serializers.DateTimeField()
    started_at = serializers.DateTimeField()
    decided_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    policy = serializers.IntegerField(source="policy.number", default=None, allow_null=True)
    engine_version = serializers.CharField()
    result_hash = serializers.CharField()
    timings_ms = TimingsField()
    counts = serializers.SerializerMethodField()
    error = serializers.SerializerMethodField()

    def get_display(self, session: Any) -> str:
        return f"Session {session.number}"

    @extend_schema_field(TimingsField)
    def get_counts(self, session: Any) -> dict[str, Any]:
        """For others than those who see everything without the gangs that were taken back, of all tenants."""
        everything = self.context["access"].everything
        return {name: value for name, value in session.counts.items() if everything or name != "taken_back"}

    def get_error(self, session: Any) -> str:
        """For those who see everything: an error may name gangs of all tenants."""
        return str(session.error) if self.context["access"].everything else ""


class DecisionDocument(serializers.Serializer[Any]):
    """One write to the cluster and what came of it."""

    id = serializers.IntegerField()
    kind = serializers.ChoiceField(choices=DecisionKind.choices)
    state = serializers.ChoiceField(choices=DecisionState.choices)
    at = serializers.DateTimeField()
    gang = serializers.CharField()
    target = serializers.CharField()
    node = serializers.CharField()
    reclaim = serializers.IntegerField(source="reclaim_id", allow_null=True)
    outcome = serializers.CharField()
    settled_at = serializers.DateTimeField(allow_null=True)


class AmountDocument(serializers.Serializer[Any]):
    """An amount of everything that is given out: the sum of what pods ask for."""

    cpu_milli = serializers.IntegerField(
        help_text="Always there; 0 where no pod asks for CPU. Of a queue's use what counts against its quota: 0 too "
        "where the policy counts no CPU of pods with cards (`cardUnlimitedCpuMemory`)."
    )
    memory_bytes = serializers.IntegerField(help_text="Always there; 0 where `cpu_milli` would be.")
    cards = serializers.DictField(
        child=serializers.FloatField(), help_text="Card name → count; empty where no pod asks for a card."
    )


class VictimDocument(serializers.Serializer[Any]):
    """An evicted gang. Of another tenant's only the name is shown; the rest is null."""

    gang = serializers.CharField()
    queue = serializers.CharField(allow_null=True)
    pods = serializers.ListField(child=serializers.CharField(), allow_null=True)
    cards = serializers.DictField(child=serializers.FloatField(), allow_null=True)
    work_lost_card_seconds = serializers.FloatField(allow_null=True)
    restarting_pods = serializers.IntegerField(
        allow_null=True,
        help_text="Pods that another scheduler did not evict and that restart with those, since the gang restarts as a "
        "whole. Their work is in the work lost, their cards are not in the cards.",
    )
    ended_pods = serializers.ListField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="Those of the pods that had left by themselves when their eviction was sent: nothing was taken from "
        "them.",
    )
    queue_priority = serializers.IntegerField(
        allow_null=True, help_text="With the priority and the work lost: what it cost to take the gang."
    )
    priority = serializers.IntegerField(allow_null=True)
    last_restart = serializers.BooleanField(
        allow_null=True,
        help_text="Its Volcano Job has been restarted as often as maxRetry lets it, so that this eviction fails it. "
        "Null where it is not known.",
    )


class QueueMomentDocument(serializers.Serializer[Any]):
    """A queue that gained or lost: its quota at that moment, and its use just before and just after the decision."""

    queue = serializers.CharField()
    base = serializers.DictField(
        child=serializers.FloatField(), allow_null=True, help_text="Quota without tide plans; null if not known here."
    )
    plans = serializers.ListField(
        child=serializers.CharField(), help_text="Tide plans with a layer that was open and is about this queue."
    )
    quota = serializers.DictField(
        child=serializers.FloatField(), help_text="What held, plans included. A card that is missing has no limit."
    )
    before = AmountDocument()
    after = AmountDocument()


class NodeRoomDocument(serializers.Serializer[Any]):
    """What a pod of the reclaimer would have found on one node if the gang alone had left.

    Amounts of ``resource`` in the units of a reason's numbers: cards, milli-cores, bytes, counts. Of cards those that
    the pod could use: wholly free ones, or the most that is free on one card where a share is asked for.
    """

    node = serializers.CharField()
    resource = serializers.CharField(help_text="A card type, or cpu, memory, pods or another resource of nodes.")
    free = serializers.FloatField(help_text="Free before.")
    frees = serializers.FloatField(help_text="Added by the gang's leaving.")
    needs = serializers.FloatField(help_text="Of one pod of the reclaimer.")
    fits = serializers.IntegerField(help_text="Pods of the reclaimer that would have fitted.")
    short = serializers.FloatField(help_text="For one pod; 0 where one would have fitted.")


class AloneDocument(serializers.Serializer[Any]):
    """What the gang's leaving alone would have made room for."""

    fits = serializers.IntegerField(help_text="Pods that would have fitted, of those that looked for room.")
    wanted = serializers.IntegerField(help_text="Pods of the reclaimer that looked for room.")
    nodes = NodeRoomDocument(many=True, help_text="Up to three nodes, those nearest to enough first.")
    more_nodes = serializers.IntegerField()


class CandidateDocument(serializers.Serializer[Any]):
    """A gang that came into question and was not taken. Costs are compared in the order of these members."""

    gang = serializers.CharField()
    queue = serializers.CharField()
    queue_priority = serializers.IntegerField()
    priority = serializers.IntegerField()
    work_lost_card_seconds = serializers.FloatField()
    frees = serializers.FloatField(help_text="Cards of all types; cores where no cards were asked for.")
    rule = serializers.CharField(help_text="What kept it, or why a gang of the chosen set was taken before it.")
    alone = AloneDocument(
        allow_null=True, help_text="Where room decided, its figures; for who sees the reclaimer's side."
    )


class VoteDocument(serializers.Serializer[Any]):
    """What a plugin said about the victims."""

    tier = serializers.IntegerField()
    plugin = serializers.CharField()
    vote = serializers.CharField()


class RefusedDocument(serializers.Serializer[Any]):
    """A gang that could have fallen and did not, and the rule that saved it."""

    gang = serializers.CharField()
    rule = serializers.CharField()


@extend_schema_field(ref("Facts4"))
class InsteadField(ShownAsIs):
    """Session, what was found (reclaims, places, waits, stands, unseen), sums, and the reclaims themselves."""


class ReclaimDocument(serializers.Serializer[Any]):
    """Which gang needed what, which were evicted. Of a reclaimer of another tenant only the gang's name is shown."""

    id = serializers.IntegerField()
    url = AddressField("reclaims")
    display = serializers.CharField()
    cluster = BriefCluster()
    session = BriefSession(allow_null=True)
    at = serializers.DateTimeField(help_text="The cluster's clock.")
    wall_at = serializers.DateTimeField()
    source = serializers.ChoiceField(choices=ReclaimSource.choices)  # type: ignore[assignment]
    made_by = serializers.ChoiceField(choices=ReclaimMaker.choices)
    instead = InsteadField(
        allow_null=True,
        help_text="Of an observed one: what the own session decided at that moment. For who sees everything. Without "
        "sums where the session had not seen the reclaimer (unseen): there is nothing to compare.",
    )
    state = serializers.ChoiceField(choices=ReclaimState.choices)
    action = serializers.CharField()
    reclaimer = serializers.CharField()
    queue = serializers.CharField(allow_null=True)
    needed = AmountDocument(allow_null=True)
    freed = AmountDocument(allow_null=True)
    victims = VictimDocument(many=True)
    work_lost_card_seconds = serializers.FloatField(allow_null=True)
    rule = serializers.CharField()
    votes = VoteDocument(many=True)
    refused = RefusedDocument(many=True)
    queues = QueueMomentDocument(many=True, help_text="Those in sight; empty of reclaims that others made.")
    candidates = CandidateDocument(many=True, help_text="At most 10, the cheapest first; those in sight.")
    more_candidates = serializers.IntegerField(
        allow_null=True, help_text="How many more came into question. For who sees everything."
    )
    unknown = serializers.ListField(
        child=serializers.ChoiceField(choices=["reclaimer", "use", "votes", "candidates", "gain"]),
        help_text="Of a reclaim that others made, what nothing in the cluster says: for whom, use at that moment (of "
        "old rows), what the plugins said, whom else it looked at, what was assigned afterwards. Empty of own ones.",
    )
    audit_entry = serializers.IntegerField(allow_null=True)
    promised_at = serializers.DateTimeField(allow_null=True)
    running_at = serializers.DateTimeField(allow_null=True)


class UsagePointDocument(serializers.Serializer[Any]):
    """The step function from ``at`` (the cluster's clock) on, in cards."""

    at = serializers.DateTimeField()
    quota = serializers.FloatField()
    allocated = serializers.FloatField()
    inqueue = serializers.FloatField()
    elastic = serializers.FloatField()


@extend_schema_field(ALERT_NUMBERS, component_name="AlertNumbers")
class FiguresField(ShownAsIs):
    """Name → figure."""


class AlertDocument(serializers.Serializer[Any]):
    """A condition that a person should know of: one row until it ends."""

    id = serializers.IntegerField()
    url = AddressField("alerts")
    display = serializers.SerializerMethodField()
    cluster = BriefCluster(allow_null=True, help_text="Null for the platform itself.")
    key = serializers.CharField()
    code = serializers.ChoiceField(choices=ALERT_CODES)
    severity = serializers.ChoiceField(choices=AlertSeverity.choices)
    state = serializers.ChoiceField(
        choices=[("open", "open"), ("acknowledged", "acknowledged"), ("resolved", "resolved")]
    )
    message = serializers.SerializerMethodField()
    numbers = FiguresField()
    session = serializers.IntegerField(source="session_id", allow_null=True)
    raised_at = serializers.DateTimeField()
    acknowledged_at = serializers.DateTimeField(allow_null=True)
    acknowledged_by = serializers.CharField()
    note = serializers.CharField()
    resolved_at = serializers.DateTimeField(allow_null=True)
    resolved_by = serializers.CharField()

    def get_display(self, alert: Any) -> str:
        return f"{alert.code} ({alert.state})"

    def get_message(self, alert: Any) -> str:
        """For those who see everything: it may name gangs of all tenants."""
        return str(alert.message) if self.context["access"].everything else ""

    def to_representation(self, instance: Any) -> dict[str, Any]:
        shown: dict[str, Any] = super().to_representation(instance)
        if not self.context["access"].everything:
            shown["numbers"], shown["note"] = {}, ""
        return shown
