"""Who may open and do what: each address of the resolver, by method, in a class of answers.

A class is the answers to the callers in the order of `stage.PEOPLE`: anonymous, without a role, member, tenant admin,
admin of another tenant of the same cluster, admin of a tenant elsewhere, auditor, platform admin. `in` leads to the
sign-in page. What is out of sight is a 404, what is in sight and not one's own to do a 403. A body that names what its
caller does not see is a 400. An address that is in no class fails the test.
"""

from __future__ import annotations

CONSOLE_GET = {
    # class: (answers, addresses)
    "public": ("200 200 200 200 200 200 200 200", "invite"),
    "leads everybody to the mark": ("302 302 302 302 302 302 302 302", "favicon"),
    "only a POST": (
        "405 405 405 405 405 405 405 405",
        """sign_out gang_try resolve_alert acknowledge_alert resolve_platform_alert acknowledge_platform_alert
        connection_test audit_verify audit_seal token_revoke density drift_decide tide_plan_week job_cancel member_link
        member_role priority_class_defaults policy_release quota_check quota_table quota_review change_act
        change_steps tide_plan_switch tide_plan_take_back tide_plan_delete""",
    ),
    "signed out": ("200 302 302 302 302 302 302 302", "sign_in"),
    "signed in": (
        "in 200 200 200 200 200 200 200",
        """password profile tokens help clusters audit jobs tenants projects project_new business_lines
        business_line_new all_alerts""",
    ),
    "home": ("in 200 200 200 200 200 302 302", "overview"),
    "approver": ("in 403 403 200 200 200 403 200", "inbox"),
    "sees everything": ("in 403 403 403 403 403 200 200", "audit_integrity"),
    "platform admin": (
        "in 403 403 403 403 403 403 200",
        """cluster_new cluster_rights cluster_offer audit_drop tenant_new user_new all_tokens provider_new provider_edit
        provider_remove sign_in_rule_new sign_in_rule_edit sign_in_rule_remove""",
    ),
    "sees the cluster": (
        "in 404 200 200 200 404 200 200",
        """cluster_overview tide search queues gangs reclaims reclaims_taken reclaims_day reclaim sessions
        session_timings session nodes alerts
        tree_file tree_export drift tide_plans tide_steps quota_at grants grant_new card_types priority_classes policy
        policies policy_revision quota_tree quota_map changes""",
    ),
    "sees the tenant": (
        "in 404 200 200 404 404 200 200",
        """queue queue_usage tenant_use tenant_hours gang audit_entry tide_plan tide_plan_preview tenant members project
        quota_branch change change_impact change_server change_day""",
    ),
    "leads on where the tenant is seen": ("in 404 302 302 404 404 302 302", "gang_by_name"),
    "writes quota of the cluster": ("in 404 403 200 200 404 403 200", "quota_editor quota_editor_data queue_new"),
    "administers the tenant": (
        "in 404 403 200 404 404 403 200",
        """tenant_edit member_invite member_remove project_edit project_delete business_line_edit business_line_delete
        queue_edit queue_close queue_delete grant_delete gang_withdraw""",
    ),
    "administers the cluster": (
        "in 404 403 403 403 404 403 200",
        """pause connection_replace connection_offer disconnect cluster_remove cluster_settings tide_plan_new
        card_type_new card_type_edit card_type_delete priority_class_new priority_class_edit priority_class_replace
        priority_class_delete rules policy_roll_back policy_trial""",
    ),
    "sees all of the cluster": ("in 404 403 403 403 404 200 200", "adoption"),
    "platform admin, where the tenant is seen": (
        "in 404 403 403 404 404 403 200",
        "tide_plan_edit tenant_delete tenant_approval",
    ),
    "one's own": ("in 404 404 200 404 404 404 200", "job"),
    "sees everything, else not there": (
        "in 404 404 404 404 404 200 200", "connection connection_tested status users user sign_in_settings",
    ),
    "administers accounts": ("in 404 404 404 404 404 403 200", "user_edit user_switch user_mfa_reset"),
}  # fmt: skip

CONSOLE_POST = {
    "only a GET": (
        "405 405 405 405 405 405 405 405",
        """favicon cluster_rights help clusters audit jobs tenants projects business_lines all_alerts overview inbox
        audit_integrity cluster_overview tide search queues gangs reclaims reclaims_taken reclaims_day reclaim
        sessions session_timings session nodes alerts tree_export drift tide_plans tide_steps quota_at grants card_types
        priority_classes policies policy_revision policy_trial quota_tree quota_map changes queue queue_usage tenant_use
        tenant_hours gang audit_entry tide_plan tide_plan_preview tenant project quota_branch change change_server
        gang_by_name quota_editor quota_editor_data job connection connection_tested status users all_tokens""",
    ),
    "public": ("302 302 302 302 302 302 302 302", "invite"),
    "signed out": ("200 302 302 302 302 302 302 302", "sign_in"),
    "ends the session": ("302 302 302 302 302 302 302 302", "sign_out"),
    # Acts.
    "one's own profile": ("in 302 302 302 302 302 302 302", "profile density"),
    "one's own password, which has to be typed": ("in 400 400 400 400 400 400 400", "password"),
    "asks what a change would do": ("in 404 200 200 404 404 200 200", "change_impact change_steps"),
    "makes it in the tenant": ("in 400 400 302 400 400 400 302", "project_new business_line_new"),
    "makes it in the tenant, in a cluster": ("in 404 400 302 400 404 400 302", "grant_new"),
    "makes it in the tenant, where they write quota of the cluster": ("in 404 403 302 400 404 403 302", "queue_new"),
    "verifies the audit log": ("in 403 403 403 403 403 302 302", "audit_verify"),
    "platform admin": (
        "in 403 403 403 403 403 403 302",
        """cluster_new cluster_offer audit_seal audit_drop tenant_new provider_new provider_edit provider_remove
        sign_in_rule_new sign_in_rule_edit sign_in_rule_remove""",
    ),
    "platform admin, and is shown what came": ("in 403 403 403 403 403 403 200", "user_new"),
    "one's own token, shown once": ("in 200 200 200 200 200 200 200", "tokens"),
    "compares or checks quota of the cluster": ("in 404 403 200 200 404 403 200", "tree_file quota_check quota_table"),
    "drafts quota of the cluster": ("in 404 403 302 302 404 403 302", "quota_review"),
    "administers the tenant": (
        "in 404 403 302 404 404 403 302",
        """gang_try tenant_edit members member_role member_remove project_edit business_line_edit queue_edit queue_close
        grant_delete change_act""",
    ),
    "administers the tenant, and is shown what came": (
        "in 404 403 200 404 404 403 200", "member_invite member_link change_day",
    ),
    "administers the tenant, and its gang holds no promise": ("in 404 403 400 404 404 403 400", "gang_withdraw"),
    # It is in use: even who may delete it only reads so.
    "administers the tenant, and it is in use": (
        "in 404 403 400 404 404 403 400", "project_delete business_line_delete queue_delete",
    ),
    "administers the cluster": (
        "in 404 403 403 403 404 403 302",
        """pause resolve_alert acknowledge_alert connection_replace connection_offer connection_test disconnect
        cluster_settings tide_plan_new card_type_new card_type_edit priority_class_defaults
        priority_class_new priority_class_edit priority_class_replace priority_class_delete rules policy
        policy_roll_back policy_release""",
    ),
    "administers the cluster, and is shown what came": (
        "in 404 403 403 403 404 403 200", "tide_plan_week card_type_delete",
    ),
    # It is connected, nothing is there to adopt, and the drift that is named has to be ticked.
    "administers the cluster, and it does not apply": (
        "in 404 403 403 403 404 403 400", "cluster_remove adoption drift_decide",
    ),
    "platform admin, where the tenant is seen": (
        "in 404 403 403 404 404 403 302",
        "tide_plan_edit tide_plan_switch tide_plan_take_back tide_plan_delete tenant_approval",
    ),
    "platform admin, where the tenant is seen, and it is in use": (
        "in 404 403 403 404 404 403 400", "tenant_delete",
    ),
    "one's own, and it ends": ("in 404 404 302 404 404 404 302", "job_cancel token_revoke"),
    "administers accounts": ("in 404 404 404 404 404 403 302", "user_edit user_switch sign_in_settings"),
    "administers accounts, and there is none": ("in 404 404 404 404 404 403 400", "user_mfa_reset"),
    "administers accounts, and is shown the link": ("in 404 404 404 404 404 403 200", "user"),
    "alerts of the platform": (
        "in 404 404 404 404 404 403 302", "resolve_platform_alert acknowledge_platform_alert",
    ),
}  # fmt: skip

API = {
    "public": ("200 200 200 200 200 200 200 200", "GET index GET schema GET schema-docs"),
    "signed in": (
        "401 200 200 200 200 200 200 200",
        """GET clusters-list GET tenants-list GET projects-list GET business-lines-list GET queues-list
        GET card-types-list GET priority-classes-list GET tide-plans-list GET grants-list GET gangs-list
        GET reclaims-list GET sessions-list GET nodes-list GET quota-changes-list GET jobs-list GET drift-list
        GET alerts-list GET audit-list GET members-list GET tokens-list GET users-list""",
    ),
    "makes one for oneself": ("401 201 201 201 201 201 201 201", "POST tokens-list"),
    "sees everything": (
        "401 403 403 403 403 403 200 200",
        "GET audit-bundle GET audit-chains GET audit-heads GET audit-segments GET audit-segment-file",
    ),
    "sees the cluster": (
        "401 404 200 200 200 404 200 200",
        """GET clusters-detail GET clusters-policy GET clusters-tree GET card-types-detail GET priority-classes-detail
        GET reclaims-detail GET sessions-detail GET sessions-decisions GET nodes-detail GET alerts-detail""",
    ),
    "sees the tenant": (
        "401 404 200 200 404 404 200 200",
        """GET usage GET tenants-detail GET tenants-card-hours GET projects-detail GET business-lines-detail
        GET queues-detail GET tide-plans-detail GET tide-plans-steps GET grants-detail GET gangs-detail GET gangs-pods
        GET gangs-timeline GET quota-changes-detail GET quota-changes-forecast GET quota-changes-plan GET drift-detail
        GET audit-detail GET members-detail""",
    ),
    "sees all of the cluster": (
        "401 404 403 403 403 404 200 200", "GET clusters-connection GET clusters-connection-tests",
    ),
    "sees accounts of the tenant": ("401 404 404 200 404 404 200 200", "GET users-detail"),
    "one's own": ("401 404 404 200 404 404 404 200", "GET jobs-detail GET tokens-detail POST jobs-cancel"),
    "revokes one's own": ("401 404 404 204 404 404 404 204", "DELETE tokens-detail"),
    "makes it in the tenant": (
        "401 400 403 201 400 400 403 201",
        """POST projects-list POST business-lines-list POST queues-list POST grants-list POST members-list
        POST users-list""",
    ),
    "writes quota of the cluster": ("401 404 403 200 200 404 403 200", "POST clusters-tree"),
    "drafts quota of the tenant": ("401 400 403 201 404 400 403 201", "POST quota-changes-list"),
    "administers the platform": (
        "401 403 403 403 403 403 403 201",
        "POST tenants-list POST card-types-list POST priority-classes-list POST tide-plans-list",
    ),
    "administers the platform, and it is taken up": ("401 403 403 403 403 403 403 202", "POST drift-list"),
    # An address that no cluster has.
    "administers the platform, and it is refused": ("401 403 403 403 403 403 403 400", "POST clusters-list"),
    "administers the tenant": (
        "401 404 403 200 404 404 403 200",
        """PATCH tenants-detail PATCH projects-detail PATCH business-lines-detail PATCH queues-detail
        PATCH members-detail""",
    ),
    "administers the tenant, and it is taken up": (
        "401 404 403 202 404 404 403 202", "POST quota-changes-apply POST quota-changes-reject",
    ),
    "administers the tenant, and it goes": (
        "401 404 403 204 404 404 403 204", "DELETE grants-detail DELETE members-detail",
    ),
    "administers the tenant, and its state does not allow it": (
        "401 404 403 409 404 404 403 409",
        """DELETE projects-detail DELETE business-lines-detail DELETE queues-detail POST quota-changes-approve
        POST quota-changes-retry POST quota-changes-rollback""",
    ),
    "administers the cluster": (
        "401 404 403 403 403 404 403 200",
        """PATCH clusters-detail DELETE clusters-connection POST clusters-pause PATCH clusters-policy
        PUT clusters-policy POST clusters-policy-release PATCH card-types-detail PATCH priority-classes-detail
        POST alerts-acknowledge POST alerts-resolve""",
    ),
    "administers the cluster, and it is taken up": (
        "401 404 403 403 403 404 403 202", "POST clusters-connection-test",
    ),
    "administers the cluster, and it goes": ("401 404 403 403 403 404 403 204", "DELETE priority-classes-detail"),
    "administers the cluster, and it is refused": ("401 404 403 403 403 404 403 400", "PUT clusters-connection"),
    "administers the cluster, and its state does not allow it": (
        "401 404 403 403 403 404 403 409",
        "DELETE clusters-detail POST clusters-resume DELETE card-types-detail POST alerts-hand-back",
    ),
    # The draft is the platform admin's: another may decide about it, its author alone edits it and gives it up.
    "author, or platform admin": (
        "401 404 403 403 404 404 403 200", "PATCH tide-plans-detail PATCH quota-changes-detail",
    ),
    "platform admin, where the tenant is seen": (
        "401 404 403 403 404 404 403 202", "POST quota-changes-cancel POST drift-adopt POST drift-ignore",
    ),
    "platform admin, where the tenant is seen, and it goes": (
        "401 404 403 403 404 404 403 204", "DELETE tide-plans-detail",
    ),
    "platform admin, where the tenant is seen, and its state does not allow it": (
        "401 404 403 403 404 404 403 409", "DELETE tenants-detail POST drift-repush",
    ),
    "administers accounts": (
        "401 404 404 403 404 404 403 200", "PATCH users-detail POST users-activate POST users-deactivate",
    ),
    "invites": ("401 404 404 409 404 404 403 201", "POST users-link"),
}  # fmt: skip

# A queue of the platform has no tenant: of it, and of what hangs on it, a tenant's people see nothing.
OF_PLATFORM_CLASSES = {
    "shown by a page": ("in 404 404 404 404 404 200 200", "GET console:queue GET console:queue_usage GET console:gang"),
    "edited on a page": (
        "in 404 404 404 404 404 403 200",
        """GET console:queue_edit GET console:queue_close GET console:queue_delete GET console:grant_delete
        GET console:business_line_edit GET console:business_line_delete""",
    ),
    "written on a page": (
        "in 404 404 404 404 404 403 302",
        "POST console:queue_close POST console:grant_delete POST console:business_line_edit",
    ),
    "read by REST": (
        "401 404 404 404 404 404 200 200",
        """GET api:queues-detail GET api:business-lines-detail GET api:gangs-detail GET api:gangs-pods
        GET api:gangs-timeline GET api:grants-detail GET api:drift-detail GET api:usage GET api:alerts-detail""",
    ),
    "written by REST": (
        "401 404 404 404 404 404 403 200",
        "PATCH api:business-lines-detail POST api:alerts-acknowledge POST api:alerts-resolve",
    ),
    "taken back by REST": ("401 404 404 404 404 404 403 204", "DELETE api:grants-detail"),
    "in use": (
        "401 404 404 404 404 404 403 409",
        "DELETE api:queues-detail DELETE api:business-lines-detail POST api:alerts-hand-back",
    ),
}  # fmt: skip

OTHER_GET = {
    "signed out": ("200 302 302 302 302 302 302 302", "account_login"),
    "only a POST": ("405 405 405 405 405 405 405 405", "account_logout"),
    "one's own": (
        "in 200 200 200 200 200 200 200",
        "mfa_index mfa_list_webauthn mfa_activate_totp mfa_add_webauthn mfa_generate_recovery_codes",
    ),
    "one's own, and there is none": (
        "in 404 404 404 404 404 404 404",
        "mfa_deactivate_totp mfa_view_recovery_codes mfa_edit_webauthn mfa_remove_webauthn",
    ),
    # These accounts have no password and no second step.
    "nothing to confirm by": (
        "in 403 403 403 403 403 403 403",
        "account_reauthenticate mfa_reauthenticate mfa_reauthenticate_webauthn",
    ),
    "the second step of a sign-in": ("302 302 302 302 302 302 302 302", "mfa_authenticate"),
    "asks for a passkey": ("200 200 200 200 200 200 200 200", "mfa_login_webauthn"),
    "nothing is there": ("404 404 404 404 404 404 404 404", "api_path_rest"),
    "a provider that is switched off": ("404 404 404 404 404 404 404 404", "oidc_login oidc_callback"),
}
OTHER_POST = {
    "signed out": ("200 302 302 302 302 302 302 302", "account_login"),
    "ends the session": ("302 302 302 302 302 302 302 302", "account_logout"),
    "one's own profile": ("in 302 302 302 302 302 302 302", "mfa_index mfa_list_webauthn"),
    "one's own, without a code": (
        "in 200 200 200 200 200 200 200",
        "mfa_activate_totp mfa_add_webauthn mfa_generate_recovery_codes",
    ),
    "one's own, and there is none": (
        "in 404 404 404 404 404 404 404",
        "mfa_deactivate_totp mfa_edit_webauthn mfa_remove_webauthn",
    ),
    "only a GET": ("405 405 405 405 405 405 405 405", "mfa_view_recovery_codes oidc_login oidc_callback"),
    "nothing to confirm by": (
        "in 403 403 403 403 403 403 403",
        "account_reauthenticate mfa_reauthenticate mfa_reauthenticate_webauthn",
    ),
    "second step of a sign-in": ("302 302 302 302 302 302 302 302", "mfa_authenticate mfa_login_webauthn"),
    "nothing is there": ("404 404 404 404 404 404 404 404", "api_path_rest"),
}

# resource → (scopes that let a token read, scopes that let it write); `admin` holds them all, and alone lets it do the
# rest.
_QUOTA = ("quota:read", "quota:write")
SCOPES = {
    "clusters": ("cluster:read quota:read", ""),
    "clusters-tree": ("quota:read quota:write", "quota:write"),
    "card-types": ("cluster:read quota:read", "quota:write"),
    "gangs": ("cluster:read quota:read", ""),
    "sessions": ("cluster:read reclaim:read", ""),
    "alerts": ("cluster:read reclaim:read", ""),
    "nodes": ("cluster:read", ""),
    "quota-changes": ("quota:read quota:write", "quota:write"),
    "jobs": ("quota:read quota:write", "quota:write"),
    "drift": ("quota:read quota:write", "quota:write"),
    "usage": ("quota:read metrics:read", ""),
    "tenants": _QUOTA,
    "projects": _QUOTA,
    "business-lines": _QUOTA,
    "queues": _QUOTA,
    "priority-classes": _QUOTA,
    "tide-plans": _QUOTA,
    "grants": _QUOTA,
    "members": ("quota:read", ""),
    "reclaims": ("reclaim:read", ""),
    "audit": ("audit:read", ""),
    "users": ("audit:read", ""),
    "tokens": ("", ""),
}
# Reads of a token that writes: what they leave is the proof that the file was handed out.
NOTED = {("api:audit-segment-file", "get")}
# Addresses that are a stream, or are for tokens alone although they are not of REST.
ELSEWHERE = {"api:stream": "tests/web/console/test_stream.py", "metrics": "tests/web/metrics/test_guards.py"}


def _expected() -> dict[tuple[str, str], list[str]]:
    """(route, method) → the answers to the people."""
    found: dict[tuple[str, str], list[str]] = {}

    def add(route: str, method: str, answers: str) -> None:
        assert (route, method) not in found, f"{route} {method} is in two classes"
        found[route, method] = answers.split()

    for method, table in (("get", CONSOLE_GET), ("post", CONSOLE_POST)):
        for answers, names in table.values():
            for name in names.split():
                add(f"console:{name}", method, answers)
    for answers, text in API.values():
        words = text.split()
        for verb, name in zip(words[::2], words[1::2], strict=True):
            add(f"api:{name}", verb.lower(), answers)
    for method, table in (("get", OTHER_GET), ("post", OTHER_POST)):
        for answers, names in table.values():
            for name in names.split():
                add(name, method, answers)
    return found


EXPECTED = _expected()
OF_PLATFORM = {
    (name, verb.lower()): answers.split()
    for answers, text in OF_PLATFORM_CLASSES.values()
    for verb, name in zip(text.split()[::2], text.split()[1::2], strict=True)
}


def scopes_of(route: str, method: str) -> set[str] | None:
    """Any one of these scopes lets a token in; None where no token is needed."""
    name = route.removeprefix("api:")
    if name in ("index", "schema", "schema-docs"):
        return None
    resource = next(key for key in sorted(SCOPES, key=len, reverse=True) if name.startswith(key))
    reads, writes = SCOPES[resource]
    return {"admin", *(reads if method == "get" else writes).split()}
