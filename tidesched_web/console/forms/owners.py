from collections.abc import Iterable
from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from tidesched_web.accounts.models import Tenant
from tidesched_web.console.forms.edit import EditForm
from tidesched_web.console.forms.filters import FilterForm

SLUG_HELP = _(
    "Letters, digits, “-” and “_”, at most 63. It is part of addresses, labels and files, and cannot be changed later."
)
PLATFORM = "-"


def slug_field() -> forms.SlugField:
    return forms.SlugField(
        label=_("Short name"),
        max_length=63,
        help_text=SLUG_HELP,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        error_messages={"invalid": _("Only letters, digits, “-” and “_”.")},
    )


def name_field(*, required: bool = True) -> forms.CharField:
    return forms.CharField(label=_("Name"), max_length=120, required=required)


class TenantEditForm(EditForm):
    name = name_field()
    description = forms.CharField(
        label=_("Description"), max_length=2000, required=False, widget=forms.Textarea(attrs={"rows": 3})
    )


class TenantForm(TenantEditForm):
    slug = slug_field()
    field_order = ("slug", "name", "description")


class NameForm(EditForm):
    name = name_field()


class TenantChoice(EditForm):
    tenant = forms.ChoiceField(label=_("Tenant"))

    def __init__(self, *args: Any, tenants: Iterable[Tenant], platform: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tenants = {tenant.slug: tenant for tenant in tenants}
        first = [("", _("choose one"))] if len(self.tenants) + platform != 1 else []
        whole = [(PLATFORM, _("the platform itself"))] if platform else []
        listed = [(slug, f"{tenant.name} ({slug})") for slug, tenant in self.tenants.items()]
        self.fields["tenant"].choices = [*first, *whole, *listed]  # type: ignore[attr-defined]

    def values(self) -> dict[str, Any]:
        found = super().values()
        return found | {"tenant": self.tenants.get(found["tenant"])}


class ProjectForm(TenantChoice):
    slug = slug_field()
    name = name_field(required=False)
    field_order = ("tenant", "slug", "name")


class SearchFilter(FilterForm):
    q = forms.CharField(label=_("Name"), max_length=63)

    def apply(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        text = self.value("q").replace("\0", "")
        return rows.filter(Q(name__icontains=text) | Q(slug__icontains=text)) if text else rows


class OfTenantFilter(SearchFilter):
    tenant = forms.ChoiceField(label=_("Tenant"))

    def __init__(self, data: Any, tenants: Iterable[Tenant], *, platform: bool = False) -> None:
        self.listed = [(tenant.slug, tenant.name) for tenant in tenants]
        self.whole = [(PLATFORM, _("the platform itself"))] if platform else []
        super().__init__(data)

    def is_valid(self) -> bool:
        self.fields["tenant"].choices = [("", _("any")), *self.whole, *self.listed]  # type: ignore[attr-defined]
        return super().is_valid()

    def apply(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        rows = super().apply(rows)
        slug = self.value("tenant")
        if slug == PLATFORM:
            return rows.filter(tenant__isnull=True)
        return rows.filter(tenant__slug=slug) if slug else rows
