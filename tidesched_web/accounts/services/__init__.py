from tidesched_web.accounts.services.links import invite_again, invite_user, make_link, use_link
from tidesched_web.accounts.services.memberships import remove_membership, set_membership
from tidesched_web.accounts.services.tokens import LAST_USED_STEP, create_token, note_token_use, revoke_token
from tidesched_web.accounts.services.users import (
    activate_user,
    change_password,
    create_user,
    deactivate_user,
    ensure_admin,
    reset_mfa,
    set_density,
    set_preferences,
    update_user,
)

__all__ = [
    "LAST_USED_STEP",
    "activate_user",
    "change_password",
    "create_token",
    "create_user",
    "deactivate_user",
    "ensure_admin",
    "invite_again",
    "invite_user",
    "make_link",
    "note_token_use",
    "remove_membership",
    "reset_mfa",
    "revoke_token",
    "set_density",
    "set_membership",
    "set_preferences",
    "update_user",
    "use_link",
]
