"""What a person asked to push again over what others have made of it."""

from __future__ import annotations

from tidesched_web.clusters.models import Cluster
from tidesched_web.quota.models import Drift, DriftEnd, DriftState


def asked_again(cluster: Cluster) -> set[tuple[str, str]]:
    """Kind and name of the objects whose drift is to be healed by a push: it may take every field."""
    asked = Drift.objects.filter(cluster=cluster, asked=DriftEnd.PUSHED).exclude(state=DriftState.RESOLVED)
    return set(asked.values_list("kind", "name"))
