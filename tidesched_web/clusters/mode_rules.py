"""Which mode a cluster may have: two schedulers would write the same PodGroups and queues."""

from __future__ import annotations

from django.utils.translation import gettext as _

from tidesched_web.clusters.connection_selectors import other_installation, volcano_runs
from tidesched_web.clusters.models import Cluster, ClusterMode
from tidesched_web.common.errors import DomainError


def refuse_mode(*, cluster: Cluster, mode: str) -> None:
    """Refuse mode schedule where another scheduler was found at work, by a test of whichever mode."""
    if mode == ClusterMode.SCHEDULE and (volcano_runs(cluster) or other_installation(cluster)):
        raise DomainError.for_field("/mode", two_schedulers(), code="conflict")


def two_schedulers() -> str:
    return _(
        "Another scheduler is at work in this cluster: two of them would write the same PodGroups and queues. "
        "Stop it first, or choose mode quota."
    )
