"""What a policy or a workload says that is allowed and yet is not what its author means."""

from scheduler_core.model.finding import Finding, Severity
from scheduler_core.serde.lint.policy import lint_policy
from scheduler_core.serde.lint.workload import lint_workloads

__all__ = ["Finding", "Severity", "lint_policy", "lint_workloads"]
