"""What kubelets and controllers make of a session's decisions, in the plainest way, on Kubernetes objects.

Bound pods run. Evicted pods are gone at once; then the Job's PodEvicted policy ends or restarts the job, and anything
else gets its pod again. PodGroups take the phase that the result gives them.
"""

from __future__ import annotations

import copy

from tests.builders import at


def carry_out(objects, result, seconds):
    """The cluster after the decisions of ``result``, ``seconds`` after the epoch of the tests."""
    bound = {bind.pod: bind for bind in result.binds}
    evicted = {eviction.pod: eviction.gang for eviction in result.evictions}
    phases = {gang.name: gang.phase.value for gang in result.podgroups}
    policies = {_key(o): _evicted_policy(o) for o in objects if o["kind"] == "Job"}
    owners = {
        _key(o): f"{o['metadata'].get('namespace', 'default')}/{o['metadata']['ownerReferences'][0]['name']}"
        for o in objects
        if o["kind"] == "PodGroup" and o["metadata"].get("ownerReferences")
    }
    falls = {gang: policies.get(owners.get(gang, ""), "") for gang in evicted.values()}
    aborted = {owners.get(gang) for gang, policy in falls.items() if policy == "AbortJob"}
    after = []
    for original in objects:
        body = copy.deepcopy(original)
        key = _key(body)
        if body["kind"] == "PodGroup":
            body["status"]["phase"] = phases[key]
        elif body["kind"] == "Pod":
            name = body["metadata"]["annotations"].get("scheduling.k8s.io/group-name")
            policy = falls.get(f"{body['metadata'].get('namespace', 'default')}/{name}", "")
            if key in bound:
                _run(body, bound[key], seconds)
            elif policy in ("AbortJob", "TerminateJob"):
                continue
            elif key in evicted or policy == "RestartJob":
                _pending_again(body, seconds)
            elif body["metadata"].get("deletionTimestamp"):
                continue
        elif key in aborted and body["kind"] == "Job":
            body["status"] = {"state": {"phase": "Aborted"}}
        after.append(body)
    return after


def _key(body):
    return f"{body['metadata'].get('namespace', 'default')}/{body['metadata']['name']}"


def _evicted_policy(job):
    for policy in job["spec"].get("policies", []):
        if policy.get("event") == "PodEvicted":
            return policy["action"]
    return ""


def _run(body, bind, seconds):
    body["spec"]["nodeName"] = bind.node
    body["status"] = {"phase": "Running", "startTime": at(seconds)}
    if bind.card_indices:
        body["metadata"]["annotations"]["tidesched.io/card-indices"] = ",".join(map(str, bind.card_indices))


def _pending_again(body, seconds):
    body["spec"].pop("nodeName", None)
    body["metadata"].pop("deletionTimestamp", None)
    body["metadata"]["annotations"].pop("tidesched.io/card-indices", None)
    body["metadata"]["creationTimestamp"] = at(seconds)
    body["metadata"]["uid"] += "'"
    body["status"] = {"phase": "Pending"}
