"""Clusters, nodes, gangs, sessions, reclaims, usage, alerts and jobs: the words of their operations."""

from tidesched_web.api.document.operation import PLATFORM_ADMIN, PLATFORM_SIGHT, Operation

_ADMIN = ("admin",)

OPERATIONS = {
    "clusters_list": Operation(
        "List clusters",
        "The clusters in which the caller sees something: all of them for platform admins and auditors, for a member "
        "those with a queue of one of the caller's tenants.",
    ),
    "clusters_create": Operation(
        "Connect a cluster",
        "The connection is tested first (nine steps). A test that finds something missing is a 409 with the whole test "
        "in `test`, unless the body has `accept: true`. With `dry_run=true` the cluster is tested and not kept. Give "
        "exactly one of `kubeconfig`, `api_url` (with `token`) and `in_cluster`.",
        role=PLATFORM_ADMIN,
        scopes=_ADMIN,
    ),
    "clusters_retrieve": Operation(
        "Show a cluster",
        "Its mode, clock, guards, newest session and open alerts. The ETag is its `version`.",
    ),
    "clusters_partial_update": Operation(
        "Change a cluster's settings",
        "Name, mode, limits of evictions, period of sessions. A reason is needed.",
        role=PLATFORM_ADMIN,
        scopes=_ADMIN,
    ),
    "clusters_destroy": Operation(
        "Remove a cluster",
        "Removes a disconnected cluster with everything that is known of it; the audit log stays. `name` in the body "
        "has to be the cluster's slug, so that no other cluster is removed by mistake.",
        role=PLATFORM_ADMIN,
        scopes=_ADMIN,
    ),
    "clusters_connection_retrieve": Operation(
        "Show how a cluster is reached",
        "Address, kind of credentials, their end, the newest test and the newest push. No secret is ever shown.",
        role=PLATFORM_SIGHT,
    ),
    "clusters_connection_update": Operation(
        "Replace a cluster's connection",
        "Other credentials, another address, or a new connection of a disconnected cluster. It is tested first, as a "
        "new cluster is; with `dry_run=true` it is only tested.",
        role=PLATFORM_ADMIN,
        scopes=_ADMIN,
    ),
    "clusters_connection_destroy": Operation(
        "Disconnect a cluster",
        "The credentials are forgotten and no session runs until the cluster is connected again.",
        role=PLATFORM_ADMIN,
        scopes=_ADMIN,
    ),
    "clusters_connection_test_create": Operation(
        "Test a cluster's connection",
        "Starts the test as a job and answers at once; `Location` and `job` are the job's address. `mode` tests the "
        "rights of another mode than the present one.",
        role=PLATFORM_ADMIN,
        scopes=_ADMIN,
    ),
    "clusters_connection_tests_list": Operation(
        "List a cluster's connection tests",
        "Every test of this cluster's connections with its findings.",
        role=PLATFORM_SIGHT,
    ),
    "clusters_pause_create": Operation(
        "Pause a cluster",
        "From the next write on nothing is sent to the cluster until it is resumed: no binding, no eviction, no quota. "
        "409 where it is paused already.",
        role=PLATFORM_ADMIN,
        scopes=_ADMIN,
    ),
    "clusters_resume_create": Operation(
        "Resume a cluster",
        "Lets sessions send to the cluster again. 409 where it is not paused.",
        role=PLATFORM_ADMIN,
        scopes=_ADMIN,
    ),
    "clusters_policy_retrieve": Operation(
        "Show the scheduler policy",
        "The newest valid revision. The ETag is the number of the newest revision; send it with the next PUT.",
    ),
    "clusters_policy_update": Operation(
        "Store a scheduler policy",
        "A text that no session could run under is refused (400, with the line) and the last good one goes on. What "
        "sessions decide under a new text is only shown until it is released. With `dry_run=true` nothing is stored "
        "and the answer has `findings`, `difference` and `impact`.",
        role=PLATFORM_ADMIN,
        scopes=_ADMIN,
    ),
    "clusters_policy_partial_update": Operation(
        "Store a scheduler policy (PATCH)",
        "The same as PUT: the text is the only member that can change.",
        role=PLATFORM_ADMIN,
        scopes=_ADMIN,
    ),
    "clusters_policy_release_create": Operation(
        "Release the scheduler policy",
        "From now on sessions send what they decide under the newest valid revision. Before that their decisions are "
        "only shown.",
        role=PLATFORM_ADMIN,
        scopes=_ADMIN,
    ),
    "nodes_list": Operation(
        "List nodes",
        "Nodes of the clusters in sight. With `gone=true` only those that have left a cluster, else only those in it.",
    ),
    "nodes_retrieve": Operation("Show a node", "Its cards, cpu, memory, labels and taints as the cluster says them."),
    "gangs_list": Operation(
        "List gangs",
        "Gangs in the queues of the caller's tenants, the newest first. `waiting=true` leaves those that ask for cards "
        "and have a place in the line. With `gone=true` only those that have left the cluster, else only those in it.",
    ),
    "gangs_retrieve": Operation(
        "Show a gang",
        "With why it waits (`reason`: a stable code, figures and a sentence) and when each step happened.",
    ),
    "gangs_pods_list": Operation("List a gang's pods", "The members of a gang with their node and cards."),
    "gangs_timeline_list": Operation(
        "List a gang's events",
        "What happened to the gang, the first event first: submitted, reasons, admitted, bound, reclaimed, finished.",
    ),
    "sessions_list": Operation(
        "List sessions", "Runs of the scheduler in the clusters in sight, the newest first, with counts and timings."
    ),
    "sessions_retrieve": Operation(
        "Show a session",
        "`now` is the cluster's clock, `started_at` wall time. `result_hash` is equal for equal decisions.",
    ),
    "sessions_decisions_list": Operation(
        "List a session's decisions",
        "What the session decided and what came of it. A member sees the decisions about gangs of their own tenants.",
    ),
    "reclaims_list": Operation(
        "List reclaims",
        "Cards that were taken back for another gang, the newest first, where a queue of the caller's tenants gained "
        "or lost. Amounts, pods and votes of other tenants are null or left out; the names of gangs are always there.",
    ),
    "reclaims_retrieve": Operation(
        "Show a reclaim",
        "Who gained, who lost what, which rule and which votes allowed it, and when the cards arrived.",
    ),
    "usage_list": Operation(
        "Read usage over time",
        "An array of points in order: a step function at its change points, or with `step` its value at each step. "
        "Without `queue` it is the sum of the cluster's queues in sight, without `card` the sum of all cards. Before "
        "the first known point there is a gap, not a zero.",
    ),
    "alerts_list": Operation(
        "List alerts",
        "One row for each condition from its beginning to its end, the newest first. Figures of other tenants are "
        "shown to platform admins and auditors only.",
    ),
    "alerts_retrieve": Operation("Show an alert", "What it is about, since when, and who has acknowledged it."),
    "alerts_acknowledge_create": Operation(
        "Acknowledge an alert",
        "Says that a person looks after it; it ends when its condition ends. 409 where it is acknowledged already or "
        "has ended.",
        role=PLATFORM_ADMIN,
        scopes=_ADMIN,
    ),
    "alerts_hand_back_create": Operation(
        "Hand an alert back",
        "Takes an acknowledgement back: the alert is open again, and counts. 409 where it is not acknowledged or has "
        "ended.",
        role=PLATFORM_ADMIN,
        scopes=_ADMIN,
    ),
    "alerts_resolve_create": Operation(
        "Resolve an alert",
        "Marks it as dealt with. Resolving the alert of the eviction budget lets one session pass. 409 where it has "
        "ended.",
        role=PLATFORM_ADMIN,
        scopes=_ADMIN,
    ),
    "jobs_list": Operation("List jobs", "The caller's own jobs, the newest first; a platform admin sees all of them."),
    "jobs_retrieve": Operation(
        "Show a job", "State, progress from 0 to 1, log and result. A token that is limited to a tenant sees no jobs."
    ),
    "jobs_cancel_create": Operation(
        "Cancel a job",
        "A waiting job ends at once, a running one at its next step.",
        scopes=("quota:write",),
    ),
}
