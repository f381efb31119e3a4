import math
from typing import Any

from scheduler_core.simulator.errors import WorldError
from tidesched_web.simcluster import operations
from tidesched_web.simcluster.clock import rfc3339
from tidesched_web.simcluster.errors import ApiError, bad_request, conflict, disruption_refused, invalid, success
from tidesched_web.simcluster.machine import Machine
from tidesched_web.simcluster.requests import Target
from tidesched_web.simcluster.resources import DISRUPTION_BUDGETS, PODS
from tidesched_web.simcluster.selectors import matches_selector
from tidesched_web.simcluster.steps import Bind, Evict
from tidesched_web.simcluster.store import Object, Store


def check_budgets(store: Store, pod: dict[str, Any]) -> None:
    """From the pods as they are; a real cluster uses its controller's last count. Several budgets are a 500."""
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
    if isinstance(value, str) and value.endswith("%"):
        return math.ceil(int(value[:-1]) * total / 100)
    return int(value)


CARD_TYPE = "tidesched.io/card-type"
CARD_INDICES = "tidesched.io/card-indices"


def bind(machine: Machine, target: Target, body: Object, *, dry_run: bool) -> Object:
    """409 when the node has no room, where a real API server would bind and the kubelet refuse the pod."""
    metadata = body.get("metadata") or {}
    node = (body.get("target") or {}).get("name", "")
    if not node:
        raise invalid(PODS, target.name, "target.name", "Required value")
    if (body.get("target") or {}).get("kind", "Node") not in ("", "Node"):
        raise invalid(PODS, target.name, "target.kind", "Unsupported value: supported values: Node, <empty>")
    if metadata.get("name", target.name) != target.name:
        raise bad_request("the name of the binding is not the name of the pod")
    pod = operations.read(machine.store, target)
    operations.check_delete_preconditions(target, pod, {"preconditions": metadata})
    if pod["metadata"].get("deletionTimestamp"):
        raise _binding_conflict(target, f"pod {target.name} is being deleted, cannot be assigned to a host")
    if bound_to := pod.get("spec", {}).get("nodeName"):
        raise _binding_conflict(target, f'pod {target.name} is already assigned to node "{bound_to}"')
    if pod.get("spec", {}).get("schedulingGates"):
        raise _binding_conflict(target, f"pod {target.name} has non-empty .spec.schedulingGates")
    if not dry_run:
        _do_bind(machine, target, pod, node, metadata.get("annotations") or {})
    return success(PODS, target.name, pod["metadata"]["uid"])


def _do_bind(machine: Machine, target: Target, pod: Object, node: str, annotations: dict[str, str]) -> None:
    if machine.owns(PODS, target.namespace, target.name):
        try:
            machine.run(Bind(target.key, node, annotations.get(CARD_TYPE, ""), _indices(target, annotations)))
        except WorldError as error:
            raise _binding_conflict(target, error.message) from None
        pod = operations.read(machine.store, target)
    else:
        pod["spec"]["nodeName"] = node
        status = pod.setdefault("status", {})
        conditions = [line for line in status.get("conditions", []) if line["type"] != "PodScheduled"]
        status["conditions"] = [*conditions, {"type": "PodScheduled", "status": "True"}]
    pod["metadata"]["annotations"] = {**pod["metadata"].get("annotations", {}), **annotations}
    machine.store.put(PODS, pod, now=rfc3339(machine.world.t))


def evict(machine: Machine, target: Target, body: Object, *, dry_run: bool) -> Object:
    pod = operations.read(machine.store, target)
    options = body.get("deleteOptions") or {}
    operations.check_delete_preconditions(target, pod, options)
    check_budgets(machine.store, pod)
    if not (dry_run or options.get("dryRun")):
        _leave(machine, target, pod, options)
    return success(PODS, target.name, pod["metadata"]["uid"])


def delete(machine: Machine, target: Target, options: Object, *, dry_run: bool) -> Object:
    pod = operations.read(machine.store, target)
    operations.check_delete_preconditions(target, pod, options)
    if dry_run:
        return pod
    _leave(machine, target, pod, options)
    return machine.store.get(PODS, target.namespace, target.name) or pod


def _leave(machine: Machine, target: Target, pod: Object, options: dict[str, Any]) -> None:
    if machine.owns(PODS, target.namespace, target.name):
        machine.run(Evict(target.key))
        return
    spec = pod.get("spec", {})
    grace = options.get("gracePeriodSeconds", spec.get("terminationGracePeriodSeconds", 30))
    if grace == 0 or not spec.get("nodeName") or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        machine.store.remove(PODS, target.namespace, target.name)
    elif not pod["metadata"].get("deletionTimestamp"):
        # A pod that the world does not know does not run: it stays until it is deleted without grace.
        now = machine.world.t
        pod["metadata"]["deletionTimestamp"] = rfc3339(now + grace)
        pod["metadata"]["deletionGracePeriodSeconds"] = grace
        machine.store.put(PODS, pod, now=rfc3339(now))


def _indices(target: Target, annotations: dict[str, str]) -> tuple[int, ...]:
    text = annotations.get(CARD_INDICES, "")
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        why = f"{text!r} is not a list of card numbers such as '0,3'"
        raise invalid(PODS, target.name, f"metadata.annotations[{CARD_INDICES}]", why) from None


def _binding_conflict(target: Target, why: str) -> ApiError:
    error = conflict(PODS, target.name, why)
    error.message = f'Operation cannot be fulfilled on pods/binding "{target.name}": {why}'
    return error
