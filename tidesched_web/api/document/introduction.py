"""The introduction of the OpenAPI document, and what each group of operations is about."""

from django.conf import settings

from tidesched_web.accounts.scope_words import SCOPE_WORDS

_SCOPES = "\n".join(f"| `{scope}` | {words} |" for scope, words in SCOPE_WORDS.items())
_TEXT = (settings.BASE_DIR / "templates" / "api" / "introduction.md").read_text(encoding="utf-8")
INTRODUCTION = _TEXT.replace("@SCOPES@", _SCOPES)

TAGS = {
    "index": "Where everything is.",
    "clusters": "Clusters: their connection, settings, pause switch and scheduler policy.",
    "nodes": "Nodes of the clusters, as the cluster says them.",
    "card-types": "Kinds of accelerators, whole or slices, and their aliases.",
    "tenants": "Tenants: who owns queues.",
    "projects": "Projects of a tenant: what inference is for.",
    "business-lines": "Business lines of a tenant or of the platform: what training is for.",
    "queues": "Queues with their card quota, what holds now and what they use.",
    "grants": "Which namespaces may use which queues.",
    "priority-classes": "Priority classes of the clusters.",
    "tide-plans": "Quota that changes by the hour and the day.",
    "quota-changes": "Drafts of quota, their plans, approval, application and roll back.",
    "drift": "Objects that were changed in a cluster by hand, and decisions about them.",
    "gangs": "Gangs (all-or-nothing groups of pods), why they wait and what happened to them.",
    "reclaims": "Cards that were taken back: for whom, from whom and by which rule.",
    "sessions": "Runs of the scheduler and their decisions.",
    "usage": "Use of quota over time.",
    "alerts": "Conditions that a person should know of.",
    "jobs": "Work that outlasts a request.",
    "stream": "Server-sent events: which objects have changed.",
    "audit": "The audit log, its chains, signatures and sealed segments.",
    "members": "Who belongs to a tenant, and in which role.",
    "tokens": "API tokens: what each allows, its end and its last use.",
    "users": "Accounts, invitations and links for a password.",
}
