from typing import Any

from django.contrib.auth.backends import ModelBackend

from tidesched_web.accounts.models import User
from tidesched_web.accounts.selectors import user_of_session


class AccountBackend(ModelBackend):
    """Django's own backend, with the account as `access_of` needs it."""

    def get_user(self, user_id: Any) -> User | None:
        user = user_of_session(user_id)
        if user is None or (user.local_off and not user.issuer):  # type: ignore[attr-defined]  # annotated
            return None
        return user if self.user_can_authenticate(user) else None
