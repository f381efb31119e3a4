"""The index, accounts, members, tokens and the audit log: the words of their operations."""

from tidesched_web.api.document.operation import PLATFORM_ADMIN, PLATFORM_SIGHT, TENANT_ADMIN, Operation

OPERATIONS = {
    "index": Operation(
        "List the collections",
        "The address of each collection, of usage, of this document and of the page that shows it.",
    ),
    "users_list": Operation(
        "List accounts",
        "All accounts for platform admins and auditors; for an admin of a tenant the accounts of its members.",
    ),
    "users_create": Operation(
        "Invite a person",
        "Makes an account without a password and the link by which its person sets one. The link's address is in this "
        "answer and nowhere else. An admin of a tenant invites into that one tenant.",
        role=TENANT_ADMIN,
    ),
    "users_retrieve": Operation("Show an account", "Names, roles, memberships and the newest sign-in."),
    "users_partial_update": Operation(
        "Change an account",
        "Name, address or role on the platform. The last platform admin who can sign in keeps the role (409).",
        role=PLATFORM_ADMIN,
    ),
    "users_link_create": Operation(
        "Make a link for a password",
        "A link for a new password, or a new invitation where the account has no password yet. Earlier links of the "
        "account end. An admin of a tenant repeats the invitation of a member who has never used it.",
        role=TENANT_ADMIN,
    ),
    "users_deactivate_create": Operation(
        "Deactivate an account",
        "No sign-in from now on; its tokens and links are dead. A reason is needed. 409 for the last platform admin.",
        role=PLATFORM_ADMIN,
    ),
    "users_activate_create": Operation(
        "Activate an account",
        "The account may sign in again, with the rights and tokens that it had.",
        role=PLATFORM_ADMIN,
    ),
    "members_list": Operation("List members", "Who belongs to the caller's tenants, and in which role."),
    "members_create": Operation(
        "Add a member",
        "Gives an account a role in a tenant. An admin of the tenant names the account by its user name.",
        role=TENANT_ADMIN,
    ),
    "members_retrieve": Operation("Show a member", "One account in one tenant, with its role there."),
    "members_partial_update": Operation(
        "Change a member's role", "`admin` or `member` of the tenant.", role=TENANT_ADMIN
    ),
    "members_destroy": Operation(
        "Remove a member", "The account stays; it sees nothing of this tenant any more.", role=TENANT_ADMIN
    ),
    "tokens_list": Operation(
        "List tokens", "The caller's own tokens, the newest first; a platform admin sees all of them."
    ),
    "tokens_create": Operation(
        "Make a token",
        "A token of the caller, by scope and, where `tenant` is given, for one tenant. Its text is in this answer and "
        "nowhere else. A token never allows more than its user may.",
    ),
    "tokens_retrieve": Operation("Show a token", "Its scopes, limits, end and last use; never its text."),
    "tokens_destroy": Operation("Revoke a token", "From now on it is answered 401."),
    "audit_list": Operation(
        "List audit entries",
        "Everything for platform admins and auditors, for a member the entries that touch their tenants; the newest "
        "first. `format=ndjson` and `format=csv` are exports: every entry that the filters leave, the oldest first.",
    ),
    "audit_retrieve": Operation(
        "Show an audit entry",
        "With its place in the chain, its hash and, for those who see all of it, its canonical bytes.",
    ),
    "audit_bundle_retrieve": Operation(
        "Download the audit log",
        "All tables of the log as one NDJSON file, without private keys, for verification on another machine.",
        role=PLATFORM_SIGHT,
    ),
    "audit_chains_list": Operation(
        "List the audit chains",
        "One chain for the platform and one for each cluster: its end, its newest signature and what its newest "
        "verification has found. All of them are on one page.",
        role=PLATFORM_SIGHT,
    ),
    "audit_heads_list": Operation(
        "List signed heads of the chains",
        "Signed ends of the chains, the newest first. `format=ndjson` has all of them, the oldest first, with the "
        "public keys.",
        role=PLATFORM_SIGHT,
    ),
    "audit_segments_list": Operation(
        "List sealed segments", "Sealed parts of the log, the newest first.", role=PLATFORM_SIGHT
    ),
    "audit_segments_file_retrieve": Operation(
        "Download a sealed segment",
        "The canonical bytes of its entries, a line each. A file that was sent whole counts as exported.",
        role=PLATFORM_SIGHT,
    ),
}
