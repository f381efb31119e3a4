"""Which pods are never taken, whatever the switches of the policy say. Source: contracts 3.2, volcano-semantics 4.3."""

from scheduler_core.model.pod import Pod
from scheduler_core.model.rules import Rule

PROTECTED_NAMESPACE = "kube-system"
CRITICAL_CLASSES = ("system-cluster-critical", "system-node-critical")


def system_rule(pod: Pod) -> str | None:
    """Why a pod belongs to the system and stays, or None."""
    if pod.namespace == PROTECTED_NAMESPACE:
        return Rule.SYSTEM_NAMESPACE.text(namespace=PROTECTED_NAMESPACE)
    if pod.priority_class in CRITICAL_CLASSES:
        return Rule.SYSTEM_CLASS.text(name=pod.priority_class)
    return None
