"""A good request for each unsafe route: what the world's admin of acme, or the platform's, may send."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import orjson

from tests.api.page_forms import version_of
from tests.matrix.stage import H200, NIGHT, Stage, address, routes

REASON = {"reason": "drill"}
POLICY = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n'
LOWER = {"queue/acme-online": {"card_quota": {H200: 5}}}
# An address that no cluster has: nothing is asked, and no worker is waited for.
NOWHERE = {"api_url": "https://169.254.169.254", "token": "x", **REASON}
PLAN = {
    "name": "days", "time_zone": "UTC", "layer": "0", "l0-days": "mon", "l0-start": "08:00", "l0-end": "20:00",
    "l0-line": "0", "l0-x0-queue": "acme-online", "l0-x0-card": H200, "l0-x0-act": "take", "l0-x0-cards": "1", **REASON,
}  # fmt: skip
QUEUE = {"weight": "1", "priority": "20000", "reclaimable": "on", f"card:{H200}": "5", **REASON}
GIVEN = {"api_url": "https://10.0.0.9:6443", "token": "a-secret-of-the-browser", "mode": "observe"}
SETTINGS = {
    "name": "East", "mode": "observe", "scheduler_names": "tidesched", "session_period_seconds": "1",
    "volcano_namespace": "volcano-system", "volcano_config_map": "volcano-scheduler-configmap",
    "evict_gangs_per_minute": "60", "evict_cards_per_minute": "600", "evict_share_of_training": "0.5", **REASON,
}  # fmt: skip

PROVIDER = {"name": "Corp", "client_id": "x", "scopes": "openid"}

# Forms of the console, by the route's name; the others send a reason. A text may name a key or a text of the stage.
FORMS: dict[str, dict[str, str]] = {
    "gang_try": {}, "gang_withdraw": REASON,
    "tokens": {"name": "robot", "scopes": "quota:read", "expires": "30d"},
    "pause": {**REASON, "confirm": "on"},
    "tenant_new": {"slug": "new", "name": "New"},
    "tenant_edit": {"name": "Acme and daughters"},
    "members": {"user": "newcomer", "role": "member"},
    "member_invite": {"username": "new", "role": "member"},
    "member_role": {"m{members}-role": "admin"},
    "project_new": {"tenant": "acme", "slug": "new"},
    "project_edit": {"name": "Chat"},
    "business_line_new": {"tenant": "acme", "slug": "new"},
    "business_line_edit": {"name": "Research"},
    "user_new": {"username": "new"},
    "user_edit": {"first_name": "Mei"},
    "provider_new": PROVIDER | {"slug": "new", "issuer": "https://new.example"},
    "provider_edit": PROVIDER | {"issuer": "http://127.0.0.1:9", "version": "1"},
    "provider_remove": {**REASON, "version": "1"},
    "sign_in_rule_new": {"provider": "corp", "claim": "groups", "value": "ops", "role": "auditor"},
    "sign_in_rule_edit": {"provider": "corp", "claim": "groups", "value": "ops", "role": "auditor", "version": "1"},
    "sign_in_rule_remove": {**REASON, "version": "1"},
    "sign_in_settings": {"local_accounts": "on", "mfa_roles": "auditor", "version": "1"},
    "queue_new": {
        "name": "new", "service_type": "inference", "owner": "project-{projects}", f"card:{H200}": "0", **REASON,
    },
    "queue_edit": QUEUE,
    "grant_new": {"namespace": "new", "queue": "acme-online", **REASON},
    "card_type_new": {"name": "NVIDIA-B300", "kind": "whole"},
    "card_type_edit": {"kind": "whole", "resource": "nvidia.com/b200"},
    "priority_class_new": {"name": "pc-new", "value": "1", "preemption_policy": "Never", **REASON},
    "priority_class_replace": {"value": "7", "preemption_policy": "Never", "confirm": "on", **REASON},
    "policy": {"text": POLICY, "act": "apply", **REASON},
    "rules": {"overcommit_inference_percent": "120", "overcommit_training_percent": "100", **REASON},
    "invite": {"new_password": "a long enough secret", "repeated": "a long enough secret"},
    "audit_seal": {"days": "0", **REASON},
    "audit_drop": {**REASON, "confirm": "on"},
    "tree_file": {"text": "format: 1\n", "format": "yaml", "keep": "on", "act": "compare"},
    "drift_decide": {"act": "ignore", "ids": "{drift}", **REASON},
    "tide_plan_new": PLAN,
    "tide_plan_week": PLAN,
    "tide_plan_edit": PLAN | {"version": "1"},
    "cluster_new": GIVEN,
    "cluster_offer": REASON | {"name": "Hall 9", "accept": "on"},
    "connection_replace": GIVEN,
    "connection_offer": REASON | {"accept": "on"},
    "cluster_remove": REASON | {"name": "east"},
    "cluster_settings": SETTINGS,
    "quota_review": {"edits": json.dumps(LOWER).replace("{", "{{").replace("}", "}}")},
    "change_act": {**REASON, "when": "now", "revision": "1"},
}  # fmt: skip
# Whose form stands on another page than its own.
PAGE_OF = {"console:member_role": "console:members"}
# Ends of the names of forms that edit an object, close it, or delete it.
VERSIONED = (
    "_edit", "_close", "_delete", "_replace", "_switch", "_role", "_remove", "_approval", "_settings", "_roll_back",
    ":rules", ":policy",
)  # fmt: skip
# Addresses that take JSON of a page's script.
SCRIPTS: dict[str, Any] = {"quota_check": LOWER, "quota_table": LOWER}

# Operations, by the route's name and method; the others send a reason.
DOCUMENTS: dict[tuple[str, str], Callable[[Stage], Any]] = {
    ("tenants-list", "post"): lambda _: {"slug": "new-tenant"},
    ("tide-plans-list", "post"): lambda _: {"cluster": "east", "name": "days", "layers": [NIGHT], **REASON},
    ("tide-plans-detail", "patch"): lambda _: {"position": 4, **REASON},
    ("tenants-detail", "patch"): lambda _: {"name": "Acme & Sons"},
    ("projects-list", "post"): lambda stage: {"tenant": stage.keys["tenants"], "slug": "new-project"},
    ("projects-detail", "patch"): lambda _: {"name": "Chat"},
    ("business-lines-list", "post"): lambda _: {"tenant": "acme", "slug": "new-line"},
    ("business-lines-detail", "patch"): lambda _: {"name": "Research"},
    ("queues-list", "post"): lambda _: {
        "cluster": "east", "name": "new", "service_type": "inference", "project": "acme-chat", "tenant": "acme",
        **REASON,
    },
    ("queues-detail", "patch"): lambda _: {"card_quota": {H200: 5}, **REASON},
    ("priority-classes-list", "post"): lambda _: {"cluster": "east", "name": "pc-new", "value": 5, **REASON},
    ("priority-classes-detail", "patch"): lambda _: {"description": "new", **REASON},
    ("card-types-list", "post"): lambda _: {"cluster": "east", "name": "NVIDIA-B200", **REASON},
    ("grants-list", "post"): lambda _: {"cluster": "east", "namespace": "more", "queue": "acme-online", **REASON},
    ("drift-list", "post"): lambda stage: {"ids": [stage.keys["drift"]], "act": "ignore", **REASON},
    ("clusters-list", "post"): lambda _: {"name": "Hall 9", **NOWHERE},
    ("clusters-connection", "put"): lambda _: NOWHERE,
    ("clusters-connection-test", "post"): lambda _: {},
    ("clusters-detail", "delete"): lambda _: {"name": "east", **REASON},
    ("clusters-detail", "patch"): lambda _: {"name": "East hall", **REASON},
    ("clusters-tree", "post"): lambda _: {"tree": {"format": 1}, "keep": True, **REASON},
    ("clusters-policy", "put"): lambda _: {"text": POLICY, **REASON},
    ("clusters-policy", "patch"): lambda _: {"text": POLICY, **REASON},
    ("members-list", "post"): lambda _: {"tenant": "acme", "user": "rival"},
    ("members-detail", "patch"): lambda _: {"role": "admin"},
    ("quota-changes-list", "post"): lambda _: {"cluster": "east", "edits": LOWER, **REASON},
    ("quota-changes-approve", "post"): lambda _: {},
    ("quota-changes-retry", "post"): lambda _: {},
    ("tokens-list", "post"): lambda _: {"scopes": ["quota:read"]},
    ("users-list", "post"): lambda _: {"username": "mei", "memberships": [{"tenant": "acme"}]},
    ("users-detail", "patch"): lambda _: {"first_name": "Mei"},
    ("users-link", "post"): lambda _: {},
}  # fmt: skip


def _versions(stage: Stage, route: str) -> dict[str, str]:
    """What the page of a form says of the version of its object, as who sees everything opens it."""
    known = stage.versions.get(route)
    if not route.endswith(VERSIONED):
        known = {}
    elif known is None:
        name = PAGE_OF.get(route, route)
        page = next(each for each in routes() if each.name == name)
        known = stage.versions[route] = version_of(stage.client("platform-admin"), address(stage, page))
    return known


def body_of(stage: Stage, route: str, method: str) -> dict[str, Any]:
    """The named arguments of `Client.generic` for a good request."""
    namespace, _, name = route.rpartition(":")
    if namespace == "api":
        document = DOCUMENTS.get((name, method), lambda _: REASON)(stage)
        headers = {"If-Match": "*"}  # what was looked at is another test's question
        return {"data": orjson.dumps(document), "content_type": "application/json", "headers": headers}
    if name in SCRIPTS:
        return {"data": orjson.dumps(SCRIPTS[name]), "content_type": "application/json"}
    found = {**stage.keys, **stage.texts}
    form = {key.format(**found): value.format(**found) for key, value in FORMS.get(name, REASON).items()}
    form = _versions(stage, route) | form
    return {"data": urlencode(form), "content_type": "application/x-www-form-urlencoded"}
