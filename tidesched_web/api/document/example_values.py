"""What stands in the examples: one small story of tenant acme, its queues and a gang that waits for cards."""

from __future__ import annotations

from typing import Any

_CARD = "NVIDIA-H200"
_HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
# What the examples were looked at in, the tree that their plan stands on, and the drift that they decide about.
VERSION, BASE_VERSION, DRIFT_IDS = 1, 12, (301, 302)
_WHY = "Launch of the chat assistant"
_EDITS = {"queue/acme-online": {"card_quota": {_CARD: 8}}}
_LAYER = {
    "name": "night", "days": ["mon", "tue", "wed", "thu", "fri"], "start": "22:00", "end": "07:00",
    "quota": {"acme-train": {_CARD: {"add": 1}}},
}  # fmt: skip
_DIFFERENCE = {
    "field": "spec.weight", "intent": "1", "pushed": "1", "live": "7", "changed_by": "kubectl-edit",
    "changed_at": "2026-03-01T11:58:20Z",
}  # fmt: skip

# schema → the first part of its object's address
PATHS = {
    "AlertDocument": "alerts", "AuditEntryDocument": "audit", "BriefCluster": "clusters", "BriefProject": "projects",
    "BriefSession": "sessions", "BriefTenant": "tenants", "BusinessLineDocument": "business-lines",
    "CardTypeDocument": "card-types", "ChangeDocument": "quota-changes", "ChangeSummary": "quota-changes",
    "ClusterDocument": "clusters", "DriftDocument": "drift", "GangDetailDocument": "gangs", "GangDocument": "gangs",
    "GangQueueDocument": "queues", "GrantDocument": "grants", "InvitedUserDocument": "users", "JobDocument": "jobs",
    "JobSummary": "jobs", "MadeClusterDocument": "clusters", "MemberDocument": "members", "NewTokenDocument": "tokens",
    "NewestSessionDocument": "sessions", "NodeDocument": "nodes", "PriorityClassDocument": "priority-classes",
    "ProjectDocument": "projects", "QueueDocument": "queues", "ReclaimDocument": "reclaims", "RoleInTenant": "members",
    "SessionDocument": "sessions", "TenantDocument": "tenants", "TidePlanDocument": "tide-plans",
    "TokenDocument": "tokens", "UserDocument": "users",
}  # fmt: skip

# member → its value, wherever a schema has a member of this name and kind
VALUES: dict[str, Any] = {
    "acknowledged_at": None, "acknowledged_by": "", "action": "queue.update", "actor": "user:mei", "actor_id": "7",
    "actor_kind": "user", "address": "10.0.3.7", "after": {"card_quota": {_CARD: 8}}, "aliases": ["H200"],
    "allocated": 6.0, "api_url": "https://east.example:6443", "apply_at": None, "approved_by": "user:li",
    "asked": "", "base_version": BASE_VERSION, "before": {"card_quota": {_CARD: 6}}, "borrowed": 2.0,
    "broken_seq": None, "by": "mei",
    "card": _CARD, "card_indices": [0, 1], "card_quota": {_CARD: 8}, "cards": {_CARD: 4.0}, "chain": "platform",
    "closed_by": "", "closed_reason": "", "code": "WaitingForCards", "counts": {"binds": 3, "evictions": 1},
    "cpu_milli": 32000, "created_by": "user:mei", "decided_by": "", "decided_at": None,
    "description": "Chat and search",
    "detail": {"node": "gpu-node-07"}, "disconnected_at": None, "discovered": True, "dropped_at": None, "edits": _EDITS,
    "effective_quota": {_CARD: 8}, "elastic": 2.0, "email": "mei@acme.example", "enabled": True, "end": None,
    "ended_at": None, "engine_version": "1.0", "entries": 1000, "error": "", "exceptions": {"2026-10-01": "sun"},
    "exported_at": None, "failure": None, "fingerprint": _HASH, "first_name": "Mei", "gang": "acme/chat-7b",
    "gone_at": None, "grants": "", "hash": _HASH, "hardware": 128, "instead": None, "intact": True, "job": None,
    "key": "node_lost:gpu-node-07", "key_id": "a1b2c3d4", "labels": {"zone": "a"}, "last_hash": _HASH,
    "last_name": "Chen", "last_seq": 1000, "layer": "night", "lent": 0.0, "live": "7", "layers": [_LAYER],
    "memory_bytes": 274877906944,
    "message": "4 NVIDIA-H200 are asked for and none is free.", "min_member": 2, "name": "acme-online",
    "namespace": "acme", "node": "gpu-node-07", "note": "", "numbers": {"requested": 4, "free": 0},
    "object_id": "12", "object_label": "acme-online", "object_type": "queue", "opens_next": None, "outcome": "",
    "owner": "user:mei", "owner_kind": "Job", "owner_name": "chat-7b", "parent": None, "pause": None, "payload": None,
    "percent": 100, "phase": "Pending", "plugin": "capacity-card", "policy": 1,
    "preemption_policy": "PreemptLowerPriority",
    "prefix": "tide_7Fq2", "prev_hash": _HASH, "priority": 80000, "priority_class": "inference-high", "problem": "",
    "progress": 1.0, "pushed": "1", "quota": 8.0, "inqueue": 0.0, "rate": 1.0, "reason": _WHY,
    "reclaimer": "acme/chat-7b", "refusal": "", "remedy": "", "request_id": "4f0c2b7e9a13d5680c1e7f42",
    "resolved_at": None, "resolved_by": "", "resource": "nvidia.com/gpu", "result": None, "result_hash": _HASH,
    "revoked_at": None, "role": "member", "rolls_back": None, "rule": "inference takes from training",
    "scheduler_names": ["volcano"], "scopes": ["quota:read", "reclaim:read"], "sealed_by": "system",
    "service_type": "inference", "session_period_seconds": 1.0, "sha256": _HASH, "signature": "MEUCIQDx",
    "slug": "acme", "source": "api", "statement": "tidesched-audit-head:1", "step": "reach", "subject": "mei",
    "sync_error": "", "taints": [], "target": "acme/chat-7b-0", "time_zone": "Asia/Shanghai",
    "timings_ms": {"allocate": 3.2}, "tls_server_name": "", "trigger": "timer",
    "uid": "5b1c4a1e-7f42-4f0c-9a13-d5680c1e7f42",
    "username": "mei", "value": 80000, "version": VERSION, "victims": [],
    "volcano_config_map": "volcano-scheduler-configmap",
    "volcano_namespace": "volcano-system", "vote": "permit", "weight": 1, "work_lost_card_seconds": 40.0,
    "state": "applied", "display": "acme-online",
}  # fmt: skip

# schema → members that are otherwise here than the table says
OF: dict[str, dict[str, Any]] = {
    "AlertDocument": {
        "display": "Node gpu-node-07 is lost",
        "code": "node_lost",
        "message": "Node gpu-node-07 is lost.",
        "numbers": {"node": "gpu-node-07", "cards": {_CARD: 8}},
    },
    "BriefBusinessLine": {"display": "Research", "slug": "research"},
    "BriefCluster": {"display": "East", "slug": "east"},
    "BriefProject": {"display": "Chat", "slug": "chat"},
    "BriefSession": {"display": "Session 4711", "number": 4711},
    "BriefTenant": {"display": "Acme", "slug": "acme"},
    "BriefUser": {"display": "Mei Chen", "username": "mei"},
    "BusinessLineDocument": {"display": "Research", "slug": "research", "name": "Research"},
    "CandidateDocument": {
        "gang": "research/llm-sft-004",
        "queue": "research-training",
        "queue_priority": 20000,
        "priority": 20000,
        "work_lost_card_seconds": 5400.0,
        "frees": 2.0,
        "rule": "its leaving would not make enough room: on gpu-node-07 it frees 2 of NVIDIA-H200, 0 more free, "
        "a pod needs 8, 6 short",
    },
    "CardTypeDocument": {"display": _CARD, "name": _CARD, "kind": "whole"},
    "ChangeDocument": {"display": "change 1 of East"},
    "ChangeSummary": {"display": "change 1 of East"},
    "ClusterDocument": {"display": "East", "name": "East", "slug": "east"},
    "DriftDocument": {"display": "Queue acme-online", "kind": "Queue", "differences": [_DIFFERENCE], "state": "open"},
    "FindingDocument": {"values": {}, "message": "The API server answers."},
    "GangDetailDocument": {"display": "acme/chat-7b", "name": "chat-7b", "state": "waiting", "position": 1},
    "GangDocument": {"display": "acme/chat-7b", "name": "chat-7b", "state": "waiting", "position": 1},
    "GrantDocument": {"display": "acme → acme-online", "queue": "acme-online"},
    "InvitedUserDocument": {"display": "Mei Chen"},
    "JobDocument": {"display": "impact 1", "state": "done", "position": None},
    "JobSummary": {"display": "impact 1", "state": "done", "position": None},
    "LinkDocument": {"kind": "invite", "address": "https://tidesched.example/invite/8Zk3"},
    "LogLineDocument": {"message": "12 of 12 windows are compared"},
    "MadeClusterDocument": {"display": "East", "name": "East", "slug": "east"},
    "NewTokenDocument": {"display": "platform", "name": "platform", "token": "tide_7Fq2…", "tenant": None},
    "NodeDocument": {"display": "gpu-node-07", "name": "gpu-node-07", "cards": {_CARD: 8.0}, "pods": 110},
    "PodDocument": {"name": "chat-7b-0", "cards": 2.0, "role": "worker"},
    "PolicyDocument": {"text": 'actions: "enqueue, allocate, reclaim"\n', "valid": True},
    "PriorityClassDocument": {"display": "inference-high", "name": "inference-high"},
    "ProjectDocument": {"display": "Chat", "slug": "chat", "name": "Chat"},
    "QueueMomentDocument": {
        "queue": "acme-online",
        "base": {_CARD: 8.0},
        "plans": ["nights"],
        "quota": {_CARD: 16.0},
        "before": {"cpu_milli": 0, "memory_bytes": 0, "cards": {_CARD: 4.0}},
        "after": {"cpu_milli": 0, "memory_bytes": 0, "cards": {_CARD: 8.0}},
    },
    "ReasonDocument": {"code": "WaitingForCards"},
    "ReclaimDocument": {"display": "acme/chat-7b", "queue": "acme-online", "action": "reclaim", "source": "own"},
    "SessionDocument": {"display": "Session 4711", "number": 4711, "mode": "schedule", "state": "done"},
    "TenantDocument": {"display": "Acme", "name": "Acme"},
    "TideOverlap": {
        "detail": "The plans days and nights both turn the H200 quota of queue acme-online in the same hours.",
        "first": "days",
        "last": "nights",
        "decides": "nights",
        "by": "position",
        "queue": "acme-online",
    },
    "Tree": {"cluster": "east", "queues": {"acme-online": {"service_type": "inference", "card_quota": {_CARD: 8}}}},
    "TidePlanDocument": {"display": "nights", "name": "nights", "position": 1},
    "TideStepDocument": {
        "queue": "acme-online",
        "plans": ["nights"],
        "layers": ["nights: night"],
        "since": "2026-03-01T22:00:00Z",
        "at": "2026-03-01T22:00:04Z",
        "before": 8,
        "after": 6,
        "wanted": 6,
        "message": "",
        "answered_at": "2026-03-01T22:00:04Z",
    },
    "TokenDocument": {"display": "platform", "name": "platform", "tenant": None},
    "UserDocument": {"display": "Mei Chen"},
}

_WRITE = {"reason": _WHY}
_KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: north, cluster: {server: "https://10.20.0.1:6443"}}]
users: [{name: tidesched, user: {token: eyJhbGciOiJSUzI1NiJ9.e30.c2lnbmF0dXJl}}]
contexts: [{name: north, context: {cluster: north, user: tidesched}}]
current-context: north
"""
_CONNECTION = {"kubeconfig": _KUBECONFIG, "context": "north", "accept": True, "reason": "A new hall"}
_POLICY = {
    "text": 'actions: "enqueue, allocate, reclaim"\ntiers:\n- plugins:\n  - name: gang\n  - name: capacity-card\n',
    "reason": "Cards of the night",
}
# schema of a request → its body
REQUESTS: dict[str, dict[str, Any]] = {
    "ApplyInput": {"reason": _WHY, "base_version": BASE_VERSION},
    "BusinessLineInput": {"tenant": "acme", "slug": "evaluation", "name": "Evaluation"},
    "CardTypeInput": {"cluster": "east", "name": "NVIDIA-B200", "resource": "nvidia.com/gpu", "reason": "Ordered"},
    "ChangeInput": {"cluster": "east", "edits": _EDITS, "reason": _WHY},
    "ClusterInput": {"name": "North", "slug": "north", "mode": "observe", **_CONNECTION},
    "ConnectionInput": _CONNECTION,
    "DeleteInput": {"reason": "Not used any more"},
    "DriftActs": {"ids": [*DRIFT_IDS], "act": "repush", "reason": "Edited by mistake"},
    "GrantInput": {"cluster": "east", "namespace": "acme-batch", "queue": "acme-online", "reason": _WHY},
    "MemberInput": {"tenant": "acme", "user": "mei", "role": "member"},
    "CardTypePatch": {"aliases": ["H200"], "reason": "As the teams call it"},
    "ChangePatch": {"edits": _EDITS, "reason": _WHY},
    "ClusterPatch": {"mode": "quota", "evict_gangs_per_minute": 20, "reason": "Ready for quota"},
    "MemberPatch": {"role": "admin"},
    "NamePatch": {"name": "Research and evaluation"},
    "PriorityClassPatch": {"description": "Chat and search", "reason": _WHY},
    "ProjectPatch": {"name": "Chat"},
    "QueuePatch": {"card_quota": {_CARD: 8, "NVIDIA-A100": None}, **_WRITE},
    "TenantPatch": {"name": "Acme", "quota": {"east": {"inference": {"card_quota": {_CARD: 7}}}}, **_WRITE},
    "TidePlanPatch": {"enabled": False, "reason": "Holidays"},
    "UserPatch": {"first_name": "Mei", "last_name": "Chen"},
    "PolicyInput": _POLICY,
    "PriorityClassInput": {"cluster": "east", "name": "inference-high", "value": 80000, **_WRITE},
    "ProjectInput": {"tenant": "acme", "slug": "search", "name": "Search"},
    "QueueInput": {
        "cluster": "east", "name": "acme-search", "service_type": "inference", "tenant": "acme", "project": "chat",
        "card_quota": {_CARD: 2}, **_WRITE,
    },
    "ReasonInput": {"reason": "Work on the network"},
    "RemoveInput": {"name": "Old hall", "reason": "The hall is closed"},
    "RollBackInput": {"reason": "The launch is over", "apply": False},
    "SayWhy": _WRITE,
    "TenantInput": {"slug": "lumen", "name": "Lumen"},
    "TestInput": {"mode": "quota"},
    "TidePlanInput": {"cluster": "east", "name": "nights", "time_zone": "Asia/Shanghai", "layers": [_LAYER], **_WRITE},
    "TokenInput": {"name": "platform", "scopes": ["quota:read", "reclaim:read"], "expires": "90d", "tenant": "acme"},
    "TreeInput": {"tree": {"format": 1, "queues": {"acme-search": {
        "service_type": "inference", "tenant": "acme", "project": "chat", "card_quota": {_CARD: 2},
    }}}, "keep": True, **_WRITE},
    "UserInput": {"username": "li", "email": "li@acme.example", "memberships": [{"tenant": "acme", "role": "admin"}]},
}  # fmt: skip
