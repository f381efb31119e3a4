import struct

from allauth.mfa.adapter import get_adapter
from allauth.mfa.webauthn import forms as passkeys
from django import forms

# What fido2 raises at an answer that no browser gives.
_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error)


class _Answer:
    def full_clean(self) -> None:
        try:
            super().full_clean()  # type: ignore[misc]
        except _MALFORMED:
            self.add_error("credential", get_adapter().validation_error("incorrect_code"))  # type: ignore[attr-defined]


class SignInForm(_Answer, passkeys.LoginWebAuthnForm):
    pass


class SecondStepForm(_Answer, passkeys.AuthenticateWebAuthnForm):
    pass


class ConfirmForm(_Answer, passkeys.ReauthenticateWebAuthnForm):
    pass


class AddForm(_Answer, passkeys.AddWebAuthnForm):
    name = forms.CharField(max_length=100, required=False)


class RenameForm(passkeys.EditWebAuthnForm):
    name = forms.CharField(max_length=100)
