"""What was done to what, in words: the audit log keeps codes such as ``queue.create``, a person reads "Queue: made".

The code is beside the words on the page of an entry: it is what the REST API and the exports have.
"""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from tidesched_web.audit.models import AuditEntry
from tidesched_web.common.card_names import card_label
from tidesched_web.console.alert_words import alert_name
from tidesched_web.console.change_words import FIELDS
from tidesched_web.console.differences import STEP

OBJECTS: dict[str, Promise] = {
    "alert": _("Alert"),
    "audit": _("Audit log"),
    "audit_segment": _("Segment of the audit log"),
    "business_line": _("Business line"),
    "card_type": _("Card type"),
    "cluster": _("Cluster"),
    "drift": _("Drift"),
    "grant": _("Namespace grant"),
    "identity_provider": _("Provider of sign-in"),
    "gang": _("Gang"),
    "guard": _("Guard"),
    "membership": _("Membership"),
    "namespace_grant": _("Namespace grant"),
    "policy": _("Policy"),
    "policy_revision": _("Policy"),
    "priority_class": _("Priority class"),
    "project": _("Project"),
    "promise": _("Promise"),
    "queue": _("Queue"),
    "quota_change": _("Change"),
    "reclaim": _("Reclaim"),
    "rules": _("Rules of the tree"),
    "sign_in": _("Sign-in"),
    "sign_in_rule": _("Rule of sign-in"),
    "signing_key": _("Signing key"),
    "tenant": _("Tenant"),
    "tide_plan": _("Tide plan"),
    "token": _("Token"),
    "user": _("User"),
}
ACTS: dict[str, Promise] = {
    "settings": _("settings changed"),
    "save": _("saved"),
    "sign_in_refused": _("sign-in through a provider refused"),
    "no_longer_vouched": _("no longer vouched for by the provider"),
    "break_glass": _("came in by the break-glass account"),
    "acknowledge": _("acknowledged"),
    "activate": _("activated"),
    "adopt": _("adopted"),
    "apply": _("applied"),
    "approve": _("approved"),
    "cancel": _("cancelled"),
    "change_password": _("password changed"),
    "change_password_failed": _("present password wrong at a change"),
    "change_password_limited": _("password change refused by a limit"),
    "close": _("closed"),
    "confirm_failed": _("password or code, asked for again, was wrong"),
    "create": _("made"),
    "deactivate": _("deactivated"),
    "decide": _("decided"),
    "declare": _("declared"),
    "delete": _("deleted"),
    "draft": _("drafted"),
    "drop": _("dropped"),
    "export": _("exported"),
    "fail": _("failed"),
    "hand_back": _("handed back"),
    "ignore": _("left as it is"),
    "invite_link": _("invitation made"),
    "mfa_codes": _("recovery codes made anew"),
    "mfa_failed": _("second step of a sign-in failed"),
    "mfa_reset": _("two-step sign-in reset"),
    "mfa_totp_off": _("authenticator app removed"),
    "mfa_totp_on": _("authenticator app set up"),
    "name": _("gainer named"),
    "new_key": _("new key"),
    "observe": _("observed"),
    "observe_more": _("further losses observed"),
    "observed": _("observed"),
    "pause": _("paused"),
    "plan": _("planned"),
    "reject": _("rejected"),
    "release": _("released"),
    "remove": _("removed"),
    "reopen": _("opened again"),
    "replace": _("replaced"),
    "repush": _("sent again"),
    "reset_link": _("reset link made"),
    "resolve": _("resolved"),
    "resume": _("resumed"),
    "retry": _("tried again"),
    "revoke": _("revoked"),
    "roll_back": _("rolled back"),
    "rolled_back": _("rolled back"),
    "schedule": _("scheduled"),
    "seal": _("sealed"),
    "set": _("set"),
    "set_card_quota": _("card quota set"),
    "set_compute_quota": _("CPU and memory quota set"),
    "passkey_add": _("passkey added"),
    "passkey_remove": _("passkey removed"),
    "passkey_rename": _("passkey renamed"),
    "connect": _("connected"),
    "set_connection": _("connection set"),
    "disconnect": _("disconnected"),
    "set_settings": _("settings set"),
    "sign_in": _("signed in"),
    "sign_in_failed": _("sign-in failed"),
    "sign_in_limited": _("sign-in refused by a limit"),
    "sign_ins_counted": _("further sign-ins failed or refused"),
    "sign_out": _("signed out"),
    "submit": _("submitted"),
    "update": _("changed"),
    "use_invite_link": _("first password set"),
    "use_reset_link": _("new password set by a link"),
    "withdraw": _("withdrawn"),
}
# Actions of the scheduler by which gangs lose their place.
EVICTIONS: dict[str, Promise] = {
    "reclaim": _("Reclaim"),
    "gangreclaim": _("Reclaim of gangs"),
    "preempt": _("Preemption"),
    "gangpreempt": _("Preemption of gangs"),
    "shuffle": _("Shuffle"),
    "tdm": _("Time window over"),
}
# Fields that no change of intent has: of accounts, tokens, clusters and acts.
_FIELDS: dict[str, Promise] = {
    "active": _("switched on"),
    "alert": _("alert"),
    "api_url": _("address of the API server"),
    "approved_by": _("approved by"),
    "card_quota": _("card quota"),
    "chain": _("chain"),
    "created_by": _("author"),
    "credentials_changed": _("credentials replaced"),
    "email": _("e-mail"),
    "evict_cards_per_minute": _("cards evicted a minute, at most"),
    "evict_gangs_per_minute": _("gangs evicted a minute, at most"),
    "evict_share_of_training": _("share of training evicted, at most"),
    "expires_at": _("valid until"),
    "first_name": _("first name"),
    "last_name": _("last name"),
    "limit": _("limit"),
    "memory_mib": _("memory, MiB"),
    "message": _("message"),
    "methods": _("methods"),
    "mode": _("mode"),
    "namespace": _("namespace"),
    "number": _("number"),
    "numbers": _("figures"),
    "objects": _("objects"),
    "paused_at": _("paused at"),
    "platform_role": _("role on the platform"),
    "queue": _("queue"),
    "quota": _("quota"),
    "released": _("released"),
    "released_at": _("released at"),
    "role": _("role"),
    "scheduler_names": _("names of schedulers"),
    "scopes": _("scopes"),
    "seconds_to_wait": _("seconds to wait"),
    "session_period_seconds": _("seconds between sessions"),
    "simulated": _("simulated"),
    "slug": _("short name"),
    "text": _("text"),
    "tokens_revoked": _("tokens revoked"),
    "volcano_config_map": _("ConfigMap of Volcano's scheduler"),
    "volcano_namespace": _("namespace of Volcano"),
    "went_along": _("deleted with it"),
    "withdrawn_until": _("not admitted before"),
}


# What is written into the log, by the kind of its object: what the filter offers.
_MADE = ("create", "update", "delete")
_QUOTA = ("set_card_quota", "set_compute_quota")
ACTIONS: dict[str, tuple[str, ...]] = {
    "quota_change": ("submit", "schedule", "approve", "reject", "cancel", "apply", "fail", "retry"),
    "queue": (*_MADE, "set_card_quota"),
    "tenant": (*_MADE, *_QUOTA),
    "project": (*_MADE, *_QUOTA),
    "business_line": _MADE,
    "rules": ("update",),
    "tide_plan": _MADE,
    "priority_class": (*_MADE, "replace"),
    "card_type": ("declare", *_MADE),
    "grant": _MADE,
    "reclaim": ("decide", "observe", "observe_more", "name"),
    "gangreclaim": ("decide",),
    "preempt": ("decide",),
    "gangpreempt": ("decide",),
    "shuffle": ("decide",),
    "tdm": ("decide",),
    "drift": ("adopt", "repush", "ignore"),
    "cluster": (
        "create", "connect", "set_connection", "disconnect", "set_settings", "pause", "resume", "remove",
    ),
    "policy": ("set", "release"),
    "alert": ("acknowledge", "hand_back", "resolve"),
    "guard": ("release",),
    "promise": ("withdraw",),
    "user": (
        *("create", "update", "deactivate", "activate", "invite_link", "reset_link", "use_invite_link"),
        *("use_reset_link", "sign_in", "sign_in_failed", "sign_in_limited", "sign_ins_counted", "sign_out"),
        *("change_password", "change_password_failed", "change_password_limited", "confirm_failed"),
        *("mfa_codes", "mfa_failed", "mfa_reset", "mfa_totp_on", "mfa_totp_off"),
        *("passkey_add", "passkey_remove", "passkey_rename"),
        *("break_glass", "no_longer_vouched", "sign_in_refused"),
    ),
    "identity_provider": ("save", "remove"),
    "sign_in_rule": ("save", "remove"),
    "sign_in": ("settings",),
    "membership": ("set", "remove"),
    "token": ("create", "revoke"),
    "audit": ("seal", "export", "drop", "new_key"),
}  # fmt: skip


def action_choices() -> list[tuple[str, list[tuple[str, str]]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for kind, acts in ACTIONS.items():
        word = str(OBJECTS.get(kind) or EVICTIONS[kind])
        found.setdefault(word, []).extend((f"{kind}.{act}", act_words(f"{kind}.{act}")) for act in acts)
    return sorted(found.items())


def object_word(object_type: str) -> str:
    return str(OBJECTS.get(object_type, object_type))


def object_label(entry: AuditEntry) -> str:
    if entry.object_type == "quota_change":
        return str(_("Change %(n)s")) % {"n": entry.object_id}
    if entry.object_type == "alert":
        code, colon, about = entry.object_label.partition(":")
        name = alert_name(code)
        return f"{name}: {about}" if name and colon else name or entry.object_label
    return entry.object_label or entry.object_id


def act_words(action: str) -> str:
    """An action as "Queue: made"; an unknown part shows itself."""
    kind, _dot, act = action.partition(".")
    return f"{OBJECTS.get(kind) or EVICTIONS.get(kind, kind)}: {ACTS.get(act, act)}" if act else action


def field_words(path: str) -> str:
    """A field of an entry, "card_quota › NVIDIA-H200", as "card quota › H200"; a step without a word shows itself."""
    return STEP.join(str(FIELDS.get(step) or _FIELDS.get(step) or card_label(step)) for step in path.split(STEP))
