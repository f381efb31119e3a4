from typing import Any

from django import forms
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from tidesched_web.accounts.models import PlatformRole, TenantRole
from tidesched_web.console.forms.edit import EditForm, reason_field
from tidesched_web.console.forms.filters import FilterForm
from tidesched_web.console.forms.owners import TenantChoice

ROLE_HELP = _("An admin splits the tenant's quota over projects and queues and keeps its members. A member looks.")
_PLATFORM_ROLES = [("", _("none: rights come from memberships")), *((r.value, r.label) for r in PlatformRole if r)]


def _role_field() -> forms.ChoiceField:
    return forms.ChoiceField(
        label=_("Role"), choices=TenantRole.choices, initial=TenantRole.MEMBER, help_text=ROLE_HELP
    )


def _platform_role_field() -> forms.ChoiceField:
    return forms.ChoiceField(
        label=_("Role on the platform"),
        required=False,
        choices=_PLATFORM_ROLES,
        help_text=_("A platform admin changes everything; an auditor reads everything and changes nothing."),
    )


class MemberForm(EditForm):
    user = forms.CharField(
        label=_("User name"),
        max_length=150,
        help_text=_("Exactly as the person signs in. Who has no account yet is invited."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    role = _role_field()


class InviteMemberForm(EditForm):
    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text=_("The person signs in with it."),
    )
    email = forms.EmailField(label=_("E-mail"), required=False)
    role = _role_field()


class RoleForm(EditForm):
    role = forms.ChoiceField(label=_("Role"), choices=TenantRole.choices)


class InviteForm(TenantChoice):
    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    email = forms.EmailField(label=_("E-mail"), required=False)
    platform_role = _platform_role_field()
    role = forms.ChoiceField(
        label=_("Role in the tenant"), choices=TenantRole.choices, initial=TenantRole.MEMBER, help_text=ROLE_HELP
    )
    field_order = ("username", "email", "platform_role", "tenant", "role")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        tenant = self.fields["tenant"]
        tenant.required = self.fields["role"].required = False
        listed = [choice for choice in tenant.choices if choice[0]]  # type: ignore[attr-defined]  # a ChoiceField
        tenant.choices = [("", _("none yet")), *listed]  # type: ignore[attr-defined]
        tenant.help_text = _("More memberships can be added on the page of each tenant.")

    def values(self) -> dict[str, Any]:
        found = super().values()
        tenant, role = found.pop("tenant"), found.pop("role") or TenantRole.MEMBER
        return found | {"memberships": {tenant: role} if tenant else {}}


class UserForm(EditForm):
    first_name = forms.CharField(label=_("First name"), max_length=150, required=False)
    last_name = forms.CharField(label=_("Last name"), max_length=150, required=False)
    email = forms.EmailField(label=_("E-mail"), required=False)
    platform_role = _platform_role_field()
    reason = reason_field(required=False)


class UserFilter(FilterForm):
    q = forms.CharField(label=_("Name"), max_length=63)
    platform_role = forms.ChoiceField(
        label=_("Role on the platform"),
        choices=[("", _("any")), *((role.value, role.label) for role in PlatformRole if role)],
    )
    state = forms.ChoiceField(
        label=_("State"), choices=[("", _("any")), ("active", _("Active")), ("off", _("Switched off"))]
    )

    def apply(self, users: QuerySet[Any]) -> QuerySet[Any]:
        if text := self.value("q").replace("\0", ""):
            users = users.filter(Q(username__icontains=text) | Q(email__icontains=text) | Q(last_name__icontains=text))
        if role := self.value("platform_role"):
            users = users.filter(platform_role=role)
        if state := self.value("state"):
            users = users.filter(is_active=state == "active")
        return users


class MemberFilter(FilterForm):
    q = forms.CharField(label=_("Name"), max_length=63)
    role = forms.ChoiceField(label=_("Role"), choices=[("", _("any")), *TenantRole.choices])

    def apply(self, members: QuerySet[Any]) -> QuerySet[Any]:
        if text := self.value("q").replace("\0", ""):
            members = members.filter(user__username__icontains=text)
        if role := self.value("role"):
            members = members.filter(role=role)
        return members


class NewPasswordForm(EditForm):
    new_password = forms.CharField(
        label=_("New password"),
        strip=False,
        help_text=_("At least ten characters, not a common one, not like your name."),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    repeated = forms.CharField(
        label=_("New password again"), strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "new-password"})
    )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if values.get("new_password") and values.get("repeated") and values["new_password"] != values["repeated"]:
            self.add_error("repeated", _("This is not the same as above."))
        return values
