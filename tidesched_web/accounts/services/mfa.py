from collections.abc import Iterator
from contextlib import contextmanager

from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from django.db import transaction

from tidesched_web.accounts.models import User
from tidesched_web.accounts.selectors import user_actor
from tidesched_web.audit import services as audit

# What of an authenticator is a secret; of a passkey the public half alone is here.
SECRETS = ("secret", "seed")


@contextmanager
def changing(*, user: User, action: str) -> Iterator[None]:
    """What a person changes of their own two-step sign-in, and its entry, in one transaction."""
    with transaction.atomic():
        yield
        audit.append(
            chain=audit.PLATFORM_CHAIN,
            actor=user_actor(user),
            action=action,
            object_type="user",
            object_id=user.pk,
            object_label=user.username,
        )


@transaction.atomic
def encrypt_anew() -> int:
    rows = list(Authenticator.objects.filter(data__has_any_keys=SECRETS).order_by("pk").select_for_update(no_key=True))
    adapter = get_adapter()
    for row in rows:
        row.data |= {key: adapter.encrypt(adapter.decrypt(row.data[key])) for key in SECRETS if key in row.data}
        row.save(update_fields=["data"])
    return len(rows)
