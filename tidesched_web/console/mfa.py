"""allauth's pages of two-step sign-in in the console's design, under the names that allauth knows them by."""

from collections.abc import Callable
from typing import Any

from allauth.account.views import ReauthenticateView
from allauth.mfa.base.views import AuthenticateView
from allauth.mfa.base.views import ReauthenticateView as ReauthenticateByCodeView
from allauth.mfa.recovery_codes.views import GenerateRecoveryCodesView, ViewRecoveryCodesView
from allauth.mfa.totp.views import ActivateTOTPView, DeactivateTOTPView
from allauth.mfa.webauthn.views import (
    AddWebAuthnView,
    EditWebAuthnView,
    LoginWebAuthnView,
    ReauthenticateWebAuthnView,
    RemoveWebAuthnView,
)
from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.urls import path, reverse_lazy
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache

from tidesched_web.accounts.mfa import demanded_of
from tidesched_web.accounts.services import mfa, sign_ins
from tidesched_web.console import accounts
from tidesched_web.console.forms.mfa import AddForm, ConfirmForm, RenameForm, SecondStepForm, SignInForm
from tidesched_web.console.methods import takes_forms


class Step:
    """A card with one form. ``passkey``: what allauth's script does where its button is pressed."""

    template_name = "accounts/mfa.html"
    request: Any
    title: Promise
    text: str | Promise = ""
    submit: str | Promise = ""
    passkey = ""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found: dict[str, Any] = super().get_context_data(**kwargs)  # type: ignore[misc]
        return found | {"demanded": demanded_of(self.request.user)}


class Proof(Step):
    """A wrong answer is in the audit log as a wrong password is."""

    failure = "user.confirm_failed"

    def who(self) -> str:
        return str(self.request.user.get_username())

    def form_invalid(self, form: forms.Form) -> HttpResponse:
        sign_ins.record_failure(name=self.who(), action=self.failure)
        answer: HttpResponse = super().form_invalid(form)  # type: ignore[misc]
        return answer


class Change(Step):
    action = ""
    done: Promise

    def form_valid(self, form: forms.Form) -> HttpResponse:
        with mfa.changing(user=self.request.user, action=self.action):
            answer: HttpResponse = super().form_valid(form)  # type: ignore[misc]
        messages.success(self.request, str(self.done))
        return answer


class SecondStep(Proof, AuthenticateView):
    webauthn_form_class = SecondStepForm
    failure = "user.mfa_failed"
    title, submit = _("Second step"), _("Sign in")
    text = _("Type the code that your authenticator app shows, or one of your recovery codes.")
    passkey = "authenticateForm"

    def who(self) -> str:
        return str(self.stage.login.user.get_username())


class PasskeySignIn(Proof, LoginWebAuthnView):
    form_class = SignInForm
    failure = "user.sign_in_failed"

    def who(self) -> str:
        return ""


class ConfirmByPassword(Step, ReauthenticateView):
    title, submit = _("Confirm that it is you"), _("Confirm")
    text = _("What you are about to do asks for your password once more.")


class ConfirmByCode(Proof, ReauthenticateByCodeView):
    title, submit = _("Confirm that it is you"), _("Confirm")
    text = _("Type the code that your authenticator app shows, or one of your recovery codes.")


class ConfirmByPasskey(Proof, ReauthenticateWebAuthnView):
    form_class = ConfirmForm
    title = _("Confirm that it is you")
    passkey = "authenticateForm"


class TotpOn(Change, ActivateTOTPView):
    action, done = "user.mfa_totp_on", _("Your authenticator app is set up.")
    title, submit = _("Set up two-step sign-in"), _("Switch on")
    text = _("Scan the picture with an authenticator app, or type its key there. Then type the code that it shows.")


class TotpOff(Change, DeactivateTOTPView):
    action, done = "user.mfa_totp_off", _("The authenticator app is removed.")
    title, submit = _("Remove the authenticator app?"), _("Remove")
    text = _("Its codes no longer sign you in. Without a passkey, your recovery codes go too.")


class Codes(Step, ViewRecoveryCodesView):
    title = _("Recovery codes")


class NewCodes(Change, GenerateRecoveryCodesView):
    action, done = "user.mfa_codes", _("The recovery codes are made anew.")
    success_url = reverse_lazy("mfa_view_recovery_codes")
    title, submit = _("Make new recovery codes?"), _("Make new ones")
    text = _("The codes that you have no longer work.")


class PasskeyNew(Change, AddWebAuthnView):
    form_class = AddForm
    action, done = "user.passkey_add", _("The passkey is added.")
    passkey = "addForm"
    title, submit = _("Add a passkey"), _("Add")
    text = _("It is kept by this device, by a phone or by a security key.")


class PasskeyName(Change, EditWebAuthnView):
    form_class = RenameForm
    action, done = "user.passkey_rename", _("The passkey is renamed.")
    title, submit = _("Rename the passkey"), _("Save")


class PasskeyRemove(Change, RemoveWebAuthnView):
    action, done = "user.passkey_remove", _("The passkey is removed.")
    title, submit = _("Remove the passkey?"), _("Remove")
    text = _("It no longer signs you in. Without another second step, your recovery codes go too.")


def _shown(view: Any) -> Callable[..., HttpResponse]:
    return takes_forms(never_cache(view.as_view()))


urlpatterns = [
    path("sign-in/second-step/", _shown(SecondStep), name="mfa_authenticate"),
    path("sign-in/passkey/", _shown(PasskeySignIn), name="mfa_login_webauthn"),
    path("profile/confirm/", _shown(ConfirmByPassword), name="account_reauthenticate"),
    path("profile/confirm/code/", _shown(ConfirmByCode), name="mfa_reauthenticate"),
    path("profile/confirm/passkey/", _shown(ConfirmByPasskey), name="mfa_reauthenticate_webauthn"),
    path("profile/", accounts.profile, name="mfa_index"),
    path("profile/", accounts.profile, name="mfa_list_webauthn"),
    path("profile/authenticator-app/", _shown(TotpOn), name="mfa_activate_totp"),
    path("profile/authenticator-app/remove/", _shown(TotpOff), name="mfa_deactivate_totp"),
    path("profile/recovery-codes/", never_cache(Codes.as_view()), name="mfa_view_recovery_codes"),
    path("profile/recovery-codes/new/", _shown(NewCodes), name="mfa_generate_recovery_codes"),
    path("profile/passkeys/new/", _shown(PasskeyNew), name="mfa_add_webauthn"),
    path("profile/passkeys/<int:pk>/", _shown(PasskeyName), name="mfa_edit_webauthn"),
    path("profile/passkeys/<int:pk>/remove/", _shown(PasskeyRemove), name="mfa_remove_webauthn"),
]
