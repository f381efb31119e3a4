from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from tidesched_web.accounts.identity_selectors import (
    identity_providers,
    sign_in_rules,
    sign_in_settings,
    who_would_get_what,
)
from tidesched_web.accounts.models import IdentityProvider, SignInRule
from tidesched_web.accounts.selectors import visible_tenants
from tidesched_web.accounts.services import sign_in_settings as services
from tidesched_web.common.public_address import absolute
from tidesched_web.console.edit_pages import delete_page, edit_page
from tidesched_web.console.forms.edit import ReasonForm
from tidesched_web.console.forms.sign_in import ProviderForm, RuleForm, SignInSettingsForm
from tidesched_web.console.methods import takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.console.rights import need_administrator, need_whole_sight


def _trail() -> list[tuple[str, str]]:
    return [(_("Sign-in"), reverse("console:sign_in_settings"))]


@takes_forms
@page(section="sign_in")
def settings(this: Page) -> HttpResponse:
    need_whole_sight(this)
    if this.request.method == "POST":
        need_administrator(this)
    said = sign_in_settings()
    start = {name: getattr(said, name) for name in ("mfa_roles", "local_accounts", "version")}
    holder = said.break_glass.username if said.break_glass else None
    form = SignInSettingsForm(this.request.POST or None, initial=start | {"break_glass": holder})
    if form.is_valid() and form.saved(services.save_settings, **form.values(), actor=this.access.actor):
        messages.success(this.request, _("The changes are saved."))
        return redirect("console:sign_in_settings")
    context = {"form": form, "providers": list(identity_providers()), "rules": list(sign_in_rules())}
    return this.render("sign_in/settings.html", context, status=form.refused_as)


@takes_forms
@page(section="sign_in")
def provider_new(this: Page) -> HttpResponse:
    need_administrator(this)
    return _provider(this, None, ProviderForm(this.request.POST or None))


@takes_forms
@page(section="sign_in")
def provider_edit(this: Page, provider: str) -> HttpResponse:
    need_administrator(this)
    found = get_object_or_404(identity_providers(), slug=provider, from_environment=False)
    names = ("name", "issuer", "client_id", "scopes", "enabled", "version")
    start = {name: getattr(found, name) for name in names}
    return _provider(this, found, ProviderForm(this.request.POST or None, initial=start, known=found))


def _provider(this: Page, found: IdentityProvider | None, form: ProviderForm) -> HttpResponse:
    if form.is_valid() and form.saved(services.save_provider, provider=found, **form.values(), actor=this.access.actor):
        messages.success(this.request, _("The changes are saved."))
        return redirect("console:sign_in_settings")
    title = _("Edit %(name)s") % {"name": found.name} if found else _("Add a provider")
    address = absolute(this.request, reverse("oidc_callback", args=[found.slug if found else "NAME"]))
    leave = absolute(this.request, reverse("console:sign_in"))
    more = {"found": found, "address": address, "leave": leave}
    return edit_page(this, "sign_in/provider.html", form, title=title, submit=_("Save"), trail=_trail(), **more)


@takes_forms
@page(section="sign_in")
def provider_remove(this: Page, provider: str) -> HttpResponse:
    need_administrator(this)
    found = get_object_or_404(identity_providers(), slug=provider, from_environment=False)
    form = ReasonForm(this.request.POST or None, initial={"version": found.version})
    if form.is_valid() and form.saved(
        services.remove_provider, provider=found, **form.values(), actor=this.access.actor
    ):
        messages.success(this.request, _("%(name)s is removed, with its rules.") % {"name": found.name})
        return redirect("console:sign_in_settings")
    text = _("People have come from %(name)s and their accounts need it: switch it off instead.") % {"name": found.name}
    protected = [text] if found.people else []  # type: ignore[attr-defined]  # annotated
    title = _("Remove %(name)s?") % {"name": found.name}
    return delete_page(this, form, title=title, submit=_("Remove"), trail=_trail(), dependents=[], protected=protected)


@takes_forms
@page(section="sign_in")
def rule_new(this: Page) -> HttpResponse:
    need_administrator(this)
    return _rule(this, None)


@takes_forms
@page(section="sign_in")
def rule_edit(this: Page, pk: int) -> HttpResponse:
    need_administrator(this)
    return _rule(this, get_object_or_404(sign_in_rules(), pk=pk))


def _rule(this: Page, found: SignInRule | None) -> HttpResponse:
    start = {}
    if found is not None:
        start = {name: getattr(found, name) for name in ("claim", "value", "role", "version")}
        start |= {"provider": found.provider.slug, "tenant": found.tenant.slug if found.tenant else None}
    form = RuleForm(
        this.request.POST or None,
        initial=start,
        providers=identity_providers().order_by("name"),
        tenants=visible_tenants(this.access).order_by("slug"),
    )
    preview = None
    if form.is_valid() and this.request.POST.get("act") == "preview":
        values = {name: form.cleaned_data[name] for name in ("provider", "claim", "value", "role", "tenant")}
        preview = who_gets(values["provider"], without=found, with_one=SignInRule(**values))
    elif form.is_valid() and form.saved(
        services.save_rule, rule=found, **form.values(), actor=this.access.actor, by=this.user.pk
    ):
        messages.success(this.request, _("The rule is saved and holds from now on."))
        return redirect("console:sign_in_settings")
    title = _("Edit the rule") if found else _("Add a rule")
    return edit_page(this, "sign_in/rule.html", form, title=title, submit=_("Save"), trail=_trail(), preview=preview)


def who_gets(
    provider: IdentityProvider, *, without: SignInRule | None, with_one: SignInRule | None
) -> dict[str, object]:
    rules = [rule for rule in sign_in_rules().filter(provider=provider) if without is None or rule.pk != without.pk]
    rows, known = who_would_get_what([*rules, with_one] if with_one is not None else rules, provider)
    return {"rows": rows, "known": known, "changes": sum(row.differs for row in rows)}


@takes_forms
@page(section="sign_in")
def rule_remove(this: Page, pk: int) -> HttpResponse:
    need_administrator(this)
    found = get_object_or_404(sign_in_rules(), pk=pk)
    form = ReasonForm(this.request.POST or None, initial={"version": found.version})
    if form.is_valid() and form.saved(services.remove_rule, rule=found, **form.values(), actor=this.access.actor):
        messages.success(this.request, _("The rule is removed."))
        return redirect("console:sign_in_settings")
    return delete_page(
        this,
        form,
        title=_("Remove the rule?"),
        submit=_("Remove"),
        trail=_trail(),
        dependents=[],
        template="sign_in/rule_remove.html",
        rule=found,
        preview=who_gets(found.provider, without=found, with_one=None),
    )
