"""Tenants, queues, grants, classes, card types, tide plans, changes and drift: the words of their operations."""

from tidesched_web.api.document.operation import PLATFORM_ADMIN, TENANT_ADMIN, Operation

_DECIDES = ("quota:write",)
_AS_CHANGE = (
    "It is carried out as a quota change and answered when it is done; where approval is due the answer is 202 with "
    "the change. `dry_run=true` answers with the plan of the change."
)
_REVIEWED = (
    "`If-Match` names the version that was reviewed (428 without); where the change is another now the answer is 412 "
    "with the present `etag` and all that was `edited_since`: figures, reason and hour."
)
_IN_USE = "Refused (409 `in_use`, with `dependents`) while queues depend on it."

_OWNERS = {
    "tenants_list": Operation(
        "List tenants", "The tenants to which the caller belongs; all of them for who sees everything."
    ),
    "tenants_create": Operation(
        "Make a tenant", "`slug` is the name in addresses and quota files and stays.", role=PLATFORM_ADMIN
    ),
    "tenants_retrieve": Operation(
        "Show a tenant", "With its projects, business lines and quota in each cluster. The ETag is its `version`."
    ),
    "tenants_card_hours_list": Operation(
        "Read a tenant's card-hours",
        "Of the last 24 hours and 7 days of each cluster's clock, by service type and card type: cards in use × hours. "
        "`measured_hours` says of how many of the `hours`: what was in use while no session ran is not known, and not "
        "counted. Full hours alone are counted, so the newest one may be missing.",
    ),
    "tenants_partial_update": Operation(
        "Change a tenant",
        "Members that are left out stay. With `quota` it is a quota change: `If-Match` and `reason` are needed then. "
        "An admin of the tenant may only ask for more than there is: 202 with the change, which waits for a platform "
        "admin.",
        role=TENANT_ADMIN,
    ),
    "tenants_destroy": Operation(
        "Delete a tenant",
        _IN_USE
        + " A tenant that has quotas is refused too. The answer names the `clusters`, and in `changes` for each "
        "of them without a gang in its queues the `edits` of the quota change that deletes the queues and takes the "
        "quotas back first (`edits` alone where it is one cluster, or where there are quotas only). A dry run answers "
        "the same.",
        role=PLATFORM_ADMIN,
    ),
    "projects_list": Operation("List projects", "Projects (what inference is for) of the caller's tenants."),
    "projects_create": Operation(
        "Make a project", "A project of a tenant; `slug` is unique in the tenant.", role=TENANT_ADMIN
    ),
    "projects_retrieve": Operation("Show a project", "With its quota in each cluster. The ETag is its `version`."),
    "projects_partial_update": Operation(
        "Change a project",
        "Members that are left out stay. With `quota` it is a quota change: `If-Match` and `reason` are needed then.",
        role=TENANT_ADMIN,
    ),
    "projects_destroy": Operation(
        "Delete a project",
        _IN_USE + " Where all of them are in one cluster and no gang is in them, the answer has the `edits` of the "
        "one quota change that deletes the project with them. A project that has quotas goes by a quota change (202 "
        "with the change, which waits where approval is due and can be rolled back); quotas in several clusters are "
        "taken back first (409 with `clusters` and `edits`). With queues in several clusters `changes` has the `edits` "
        "for each. A dry run answers the same, and 200 with `plan` and `edits` in the place of the 202.",
        role=TENANT_ADMIN,
    ),
    "business_lines_list": Operation(
        "List business lines",
        "Business lines (what training is for) of the caller's tenants, and those of the platform for who sees "
        "everything.",
    ),
    "business_lines_create": Operation(
        "Make a business line", "Of a tenant, or of the platform where `tenant` is left out or null.", role=TENANT_ADMIN
    ),
    "business_lines_retrieve": Operation("Show a business line", "The ETag is its `version`."),
    "business_lines_partial_update": Operation(
        "Rename a business line", "The slug, which is in quota files, stays.", role=TENANT_ADMIN
    ),
    "business_lines_destroy": Operation("Delete a business line", _IN_USE, role=TENANT_ADMIN),
}

_TREE = {
    "queues_list": Operation(
        "List queues", "Queues of the caller's tenants with their card quota, what holds now and what they use."
    ),
    "queues_create": Operation(
        "Make a queue",
        "With its card quota in whole cards; what is left out takes the defaults of its service type. " + _AS_CHANGE,
        role=TENANT_ADMIN,
    ),
    "queues_retrieve": Operation(
        "Show a queue",
        "`card_quota` is what was set, `effective_quota` what holds now (a tide plan may be open), `usage` what it "
        "uses. The ETag is its `version`.",
    ),
    "queues_partial_update": Operation(
        "Change a queue",
        "A merge patch: a card that is left out stays, null takes it away; `state: Closed` closes the queue. "
        + _AS_CHANGE,
        role=TENANT_ADMIN,
    ),
    "queues_destroy": Operation(
        "Delete a queue", "The queue has to be closed and drained (else 409). " + _AS_CHANGE, role=TENANT_ADMIN
    ),
    "priority_classes_list": Operation("List priority classes", "Priority classes of the clusters in sight."),
    "priority_classes_create": Operation("Make a priority class", _AS_CHANGE, role=PLATFORM_ADMIN),
    "priority_classes_retrieve": Operation("Show a priority class", "The ETag is its `version`."),
    "priority_classes_partial_update": Operation(
        "Change a priority class",
        "Another `value` needs `replace: true`, since Kubernetes cannot edit the value of a live class. " + _AS_CHANGE,
        role=PLATFORM_ADMIN,
    ),
    "priority_classes_destroy": Operation(
        "Delete a priority class", "Pods that have it keep their number. " + _AS_CHANGE, role=PLATFORM_ADMIN
    ),
    "grants_list": Operation("List grants", "Which namespaces may use the queues in sight."),
    "grants_create": Operation(
        "Make a grant",
        "Lets a namespace use a queue. The first grant of a cluster closes its other queues to all namespaces without "
        "one, and is for platform admins. " + _AS_CHANGE,
        role=TENANT_ADMIN,
    ),
    "grants_retrieve": Operation("Show a grant", "One namespace and one queue."),
    "grants_destroy": Operation(
        "Delete a grant", "The namespace may use the queue no longer. " + _AS_CHANGE, role=TENANT_ADMIN
    ),
    "card_types_list": Operation(
        "List card types", "Kinds of cards in the clusters in sight: found on nodes, or declared ahead of them."
    ),
    "card_types_create": Operation(
        "Declare a card type",
        "Before a node carries it, so that quota can be written for it. " + _AS_CHANGE,
        role=PLATFORM_ADMIN,
    ),
    "card_types_retrieve": Operation("Show a card type", "Its resource, hardware and what is promised of it."),
    "card_types_partial_update": Operation(
        "Change a card type",
        "Of a card type that nodes have shown only `aliases` can be changed (else 409). " + _AS_CHANGE,
        role=PLATFORM_ADMIN,
    ),
    "card_types_destroy": Operation(
        "Delete a declared card type",
        "409 where nodes carry it: it is found there, and goes with them.",
        role=PLATFORM_ADMIN,
    ),
    "tide_plans_list": Operation(
        "List tide plans", "All plans for who sees everything, for a member those about queues of their tenants."
    ),
    "tide_plans_create": Operation("Make a tide plan", _AS_CHANGE, role=PLATFORM_ADMIN),
    "tide_plans_retrieve": Operation(
        "Show a tide plan",
        "With the layers that are open now, when the next one opens or closes, and `warnings`: figures that another "
        "plan turns in the same hours, and which of the two decides them.",
    ),
    "tide_plans_steps_list": Operation(
        "List a tide plan's steps",
        "Each figure that a layer's opening or closing made another one: from what, to what, and what the cluster "
        "answered; the newest first, by the cluster's clock. A member sees those of the queues of their tenants.",
    ),
    "tide_plans_partial_update": Operation(
        "Change a tide plan",
        "A merge patch; `enabled` switches the plan on and off. " + _AS_CHANGE,
        role=PLATFORM_ADMIN,
    ),
    "tide_plans_destroy": Operation(
        "Delete a tide plan", "The base quota holds again. " + _AS_CHANGE, role=PLATFORM_ADMIN
    ),
}

_CHANGES = {
    "clusters_tree_retrieve": Operation(
        "Show a cluster's quota tree",
        "The intent of the cluster as far as it is in the caller's sight, as JSON, or with `format=yaml` as the file "
        "that `manage.py tree export` and the console write: the same tree gives the same bytes. The ETag is another "
        "one for another tree.",
    ),
    "clusters_tree_create": Operation(
        "Make the quota tree what a file says",
        "Give exactly one of `tree` (JSON, as the GET answers it) and `file` (the text of the YAML file). What it does "
        "not name is deleted, as far as it is in the caller's sight; with `keep: true` it stays. All of it is one "
        "quota change: the answer is the tree as it is then, or 202 with the change where that waits for approval. "
        "With `dry_run=true` nothing is done and the answer is `{dry_run, plan}`: the difference, what is wrong with "
        "it, and who has to approve it. A file that cannot be read is a 400 `invalid_tree` with the place of each "
        "fault.",
        role=TENANT_ADMIN,
    ),
    "quota_changes_list": Operation(
        "List quota changes",
        "Changes that touch nothing but the caller's tenants, or are the caller's own; the newest first.",
    ),
    "quota_changes_create": Operation(
        "Draft a quota change",
        "Keeps edits as a draft. With `dry_run=true` nothing is kept and the answer is `{dry_run, plan}`; its "
        "`impact` is null, since that is worked out for a draft that is kept: make one, read its plan, and cancel it "
        "where it was only a question.",
        role=TENANT_ADMIN,
    ),
    "quota_changes_retrieve": Operation(
        "Show a quota change", "With its edits and how far each object of the cluster has come."
    ),
    "quota_changes_partial_update": Operation(
        "Edit a draft",
        "Only the author edits a draft. New edits, another reason and another hour take back an approval.",
        role="the author",
    ),
    "quota_changes_plan_retrieve": Operation(
        "Show a change's plan",
        "What it would do to the tree of now, or did: fields, objects, errors, warnings, what moved since its base, "
        "who has to approve it, and its impact.",
    ),
    "quota_changes_forecast_retrieve": Operation(
        "Show a change's forecast",
        "Which gangs the impact expected to run, beside what the sessions after it made of them, and how often the "
        "forecasts of its cluster held.",
    ),
    "quota_changes_approve_create": Operation(
        "Approve a quota change",
        "As a second person: the author cannot approve (403), nor can an account that the author made or gave its "
        "role, one that made the author's or gave it its role, one that the same tenant admin invited, nor one whose "
        "role is younger than the change (403 `approver_not_independent` with `cause`: `made_by_author`, "
        "`author_made_by_approver`, `same_maker`, `younger_than_change`). A change that was to be applied is applied. "
        "One that asks for more quota of a tenant itself (`asks_beyond`) is approved by platform admins alone, once "
        "its author has asked to apply it (409 before). " + _REVIEWED,
        role=TENANT_ADMIN,
    ),
    "quota_changes_reject_create": Operation(
        "Reject a quota change", "It ends for good, with the reason. " + _REVIEWED, role=TENANT_ADMIN
    ),
    "quota_changes_cancel_create": Operation(
        "Cancel a quota change",
        "Before it is written to the tree. " + _REVIEWED,
        role="the author, and platform admins",
    ),
    "quota_changes_apply_create": Operation(
        "Apply a quota change",
        "Now, or at `apply_at`. 409 with what changed meanwhile where the tree has moved since its base. Where "
        "approval is due it waits for that first (`waiting`), as does a tenant admin's change that asks for more quota "
        "of the tenant itself; once that is approved, only a platform admin applies it before its time (403). An "
        "approval holds for the hour and the reason that were approved: with others the change waits again, unless "
        "the caller is a second person whose approval counts, who approves it by this act (`approved_by`). With "
        "`dry_run=true` the answer is 200 `{dry_run, plan}`. " + _REVIEWED,
        role=TENANT_ADMIN,
    ),
    "quota_changes_retry_create": Operation(
        "Send a change's failed objects again",
        "What the cluster refused is sent once more. " + _REVIEWED,
        role=TENANT_ADMIN,
    ),
    "quota_changes_rollback_create": Operation(
        "Roll back a quota change",
        "Makes a new draft that undoes it, to be reviewed and applied like any other; with `apply: true` it is applied "
        "at once. What only platform admins set is rolled back by them alone (403). " + _REVIEWED,
        role=TENANT_ADMIN,
    ),
    "drift_list": Operation(
        "List drift",
        "Objects of a cluster that differ from what was written, the newest first; a member sees those of the queues "
        "of their tenants.",
    ),
    "drift_create": Operation(
        "Decide on several drifts",
        "`act` is `repush`, `adopt` or `ignore`. Adopting several is one change.",
        role=PLATFORM_ADMIN,
        scopes=_DECIDES,
    ),
    "drift_retrieve": Operation("Show a drift", "Each field with what was meant, what was sent and what is live."),
    "drift_repush_create": Operation(
        "Write the intent again",
        "The drift ends when the cluster shows the intent. 409 where the cluster is only observed.",
        role=PLATFORM_ADMIN,
        scopes=_DECIDES,
    ),
    "drift_adopt_create": Operation(
        "Adopt what is live",
        "Makes it the intent, by a quota change: `change` is its id, and it may wait for approval.",
        role=PLATFORM_ADMIN,
        scopes=_DECIDES,
    ),
    "drift_ignore_create": Operation(
        "Ignore a drift", "Until the object changes again.", role=PLATFORM_ADMIN, scopes=_DECIDES
    ),
}

OPERATIONS = _OWNERS | _TREE | _CHANGES
