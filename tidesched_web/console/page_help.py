from django.utils.translation import gettext_lazy as _

ABOUT = {
    "home": _(
        "What your tenants may use, what they use now, which of their gangs wait, and what was taken back from them."
    ),
    "overview": _(
        "Where the cards of a cluster are now, and how that was in the last two days. What needs a look is at the top."
    ),
    "inbox": _(
        "Changes that wait for your approval: look at what differs and what it would do, then approve or reject. "
        "Changes of yours that another person rejected stay here until you have opened them."
    ),
    "quota": _(
        "Who may use how many cards of which type. Its grid is edited like a sheet; a review comes "
        "before anything is applied."
    ),
    "queues": _("The queues of a cluster with quota, use and who waits. A queue's page has its figures over time."),
    "changes": _(
        "Every change of quota from draft to applied, with its impact, its approval and what the cluster answered."
    ),
    "tide_plans": _(
        "Quota by the clock: which queue gives or gets how many cards at which hours, and when the next step comes."
    ),
    "gangs": _(
        "The groups of pods that start together. A gang that waits has one reason with figures, and what would help."
    ),
    "reclaims": _("Which gang took cards from which, by which rule, and under which quota and use at that moment."),
    "nodes": _("The machines with their cards, who holds them, and which of them take no new pods."),
    "sessions": _(
        "The runs of the scheduler: how long each took, what it decided, and what was written to the cluster."
    ),
    "alerts": _(
        "What needs a person, with its cause and the page where it is put right. Say there who looks after it."
    ),
    "drift": _("Where the cluster differs from what was sent, who wrote it there, and the choice between both."),
    "audit": _(
        "Each change, decision and sign-in, in chains of hashes that prove that nothing was altered or left out."
    ),
    "tenants": _("Tenants with their limits, members, projects and use. Their admins divide what the platform gives."),
    "projects": _(
        "The projects of tenants. Inference queues belong to them, and their limits are part of the tenant's."
    ),
    "users": _(
        "Accounts, their roles and their tokens. An account is deactivated when a person leaves, "
        "and its record is kept."
    ),
    "sign_in": _(
        "Providers of single sign-on, the rules by which groups give roles, whom a second step is demanded of, and the "
        "account for the day on which no provider answers."
    ),
    "policy": _(
        "The rules by which sessions decide, checked before they are stored, with a trial against the newest snapshot."
    ),
    "grants": _("Which namespaces may use which queue. Without any grant every namespace may use every queue."),
    "tree_file": _("The whole quota as one file, out and in. A file that comes in becomes a change that is reviewed."),
    "card_types": _(
        "The card types of a cluster, whole, MIG or MPS, with the resource that counts them and their other names."
    ),
    "priority_classes": _(
        "The priority classes of a cluster: which gang comes first in its queue, and which may be preempted."
    ),
    "business_lines": _("Business lines own training queues, those of a tenant and those of the platform."),
    "connection": _(
        "How a cluster is reached and whether its rights suffice, step by step, with what to do where one is missing."
    ),
    "clusters": _("All connected clusters with their state and their newest session."),
    "jobs": _(
        "Long work such as trials of a change and connection tests: how far it is, its result, and how to cancel it."
    ),
    "status": _("TideSched's own processes and versions, and which process had to be replaced and why."),
}
