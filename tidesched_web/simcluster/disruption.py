"""PodDisruptionBudgets: may this pod be evicted now?"""

from __future__ import annotations

import math
from typing import Any

from tidesched_web.simcluster.errors import ApiError, disruption_refused
from tidesched_web.simcluster.resources import DISRUPTION_BUDGETS, PODS
from tidesched_web.simcluster.selectors import matches_selector
from tidesched_web.simcluster.store import Store


def check_budgets(store: Store, pod: dict[str, Any]) -> None:
    """Let the eviction of ``pod`` pass or refuse it.

    Budgets are counted from the pods as they are, where a real cluster uses the last count of its controller.

    Raises:
        ApiError: 429 where a budget is used up, 500 where several budgets select the pod, as in Kubernetes.
    """
    if _may_ignore_budgets(pod):
        return
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    labels = pod["metadata"].get("labels") or {}
    budgets = [
        budget
        for budget in store.all(DISRUPTION_BUDGETS, namespace)
        if matches_selector(budget.get("spec", {}).get("selector"), labels)
    ]
    if not budgets:
        return
    if len(budgets) > 1:
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise ApiError(500, "InternalError", message, kind=PODS, name=name)
    budget = budgets[0]
    allowed, healthy, desired = disruptions_allowed(store, budget)
    if allowed <= 0:
        of = budget["metadata"]["name"]
        why = f"The disruption budget {of} needs {desired} healthy pods and has {healthy} currently"
        raise disruption_refused(PODS, name, why)


def disruptions_allowed(store: Store, budget: dict[str, Any]) -> tuple[int, int, int]:
    spec = budget.get("spec", {})
    pods = [
        pod
        for pod in store.all(PODS, budget["metadata"]["namespace"])
        if matches_selector(spec.get("selector"), pod["metadata"].get("labels") or {})
        and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
    ]
    healthy = sum(1 for pod in pods if _healthy(pod))
    if spec.get("maxUnavailable") is not None:
        desired = max(0, len(pods) - _scaled(spec["maxUnavailable"], len(pods)))
    else:
        desired = _scaled(spec.get("minAvailable", 1), len(pods))
    return max(0, healthy - desired), healthy, desired


def _may_ignore_budgets(pod: dict[str, Any]) -> bool:
    leaving = bool(pod["metadata"].get("deletionTimestamp"))
    return leaving or pod.get("status", {}).get("phase") in ("Pending", "Succeeded", "Failed")


def _healthy(pod: dict[str, Any]) -> bool:
    return pod.get("status", {}).get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")


def _scaled(value: int | str, total: int) -> int:
    """A number, or a percentage rounded up."""
    if isinstance(value, str) and value.endswith("%"):
        return math.ceil(int(value[:-1]) * total / 100)
    return int(value)
