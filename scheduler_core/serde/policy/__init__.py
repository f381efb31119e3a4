"""Policy files: ``volcano-scheduler.conf``, the ConfigMap that holds one, or a ``KubeSchedulerConfiguration``."""

from scheduler_core.serde.policy.parser import parse_policy

__all__ = ["parse_policy"]
