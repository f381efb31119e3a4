"""Card-hours of a tenant as the API shows them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from tidesched_web.api.v1.serializers.briefs import BriefCluster
from tidesched_web.common.models import ServiceType
from tidesched_web.scheduling.card_hours_selectors import PERIODS


class CardHoursOfType(serializers.Serializer[Any]):
    """What the tenant's queues of one service type used of one card type. A slice counts as a slice."""

    service_type = serializers.ChoiceField(choices=ServiceType.choices)
    card = serializers.CharField()
    card_hours = serializers.FloatField()


class CardHoursDocument(serializers.Serializer[Any]):
    """One cluster in one period of full hours by its clock.

    ``measured_hours`` of ``hours`` are in the figures: what was in use while no session ran is not known.
    """

    cluster = BriefCluster()
    period = serializers.ChoiceField(choices=list(PERIODS))
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    hours = serializers.IntegerField()
    measured_hours = serializers.IntegerField()
    cards = CardHoursOfType(many=True)
