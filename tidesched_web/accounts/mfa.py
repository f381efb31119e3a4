from allauth.mfa.adapter import DefaultMFAAdapter
from django.contrib.auth.models import AnonymousUser
from django.utils.translation import gettext as _

from tidesched_web.accounts.models import User
from tidesched_web.accounts.selectors import mfa_demanded_of
from tidesched_web.common.encryption import decrypt, encrypt
from tidesched_web.common.errors import DomainError


class MFAAdapter(DefaultMFAAdapter):
    def encrypt(self, text: str) -> str:
        cipher, key = encrypt(text.encode())
        return f"{key} {cipher.decode()}"

    def decrypt(self, encrypted_text: str) -> str:
        key, _space, cipher = encrypted_text.partition(" ")
        return decrypt(cipher.encode(), key).decode()


def demanded_of(user: User | AnonymousUser | None) -> bool:
    return isinstance(user, User) and mfa_demanded_of(user)


def refuse_where_demanded(user: User) -> None:
    if mfa_demanded_of(user):
        text = _("Your role demands two-step sign-in: set it up in the console, under Profile, before anything else.")
        raise DomainError("mfa_required", text)
