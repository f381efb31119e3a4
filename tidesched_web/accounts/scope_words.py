"""What each scope lets a token do: the page of tokens, the REST document and the docs say it in these words."""

from __future__ import annotations

from django.utils.translation import gettext_noop

from tidesched_web.accounts.models import Scope

SCOPE_WORDS = {
    Scope.CLUSTER_READ: gettext_noop("read clusters and their policy, nodes, card types, gangs, sessions, alerts"),
    Scope.QUOTA_READ: gettext_noop(
        "read tenants, projects, business lines, members, everything of quota and its changes, gangs, usage"
    ),
    Scope.QUOTA_WRITE: gettext_noop("change quota and everything that is carried out as a change; read changes, jobs"),
    Scope.RECLAIM_READ: gettext_noop("read reclaims, sessions, alerts"),
    Scope.AUDIT_READ: gettext_noop("read the audit log and accounts"),
    Scope.METRICS_READ: gettext_noop("read usage"),
    Scope.ADMIN: gettext_noop("all of the above; tokens, members, accounts, and the acts of platform admins"),
}
