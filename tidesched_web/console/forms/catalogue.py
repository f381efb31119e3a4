from collections.abc import Iterable
from typing import Any

from django import forms
from django.core.validators import RegexValidator
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from tidesched_web.clusters.models import CardKind
from tidesched_web.common.card_names import card_label
from tidesched_web.console.forms.edit import EditForm, reason_field
from tidesched_web.console.forms.filters import FilterForm

_PLAIN = {"autocomplete": "off", "spellcheck": "false"}
MOST = 1_000_000_000  # Kubernetes keeps higher values for itself


def _names(text: str) -> list[str]:
    return sorted(set(text.replace(",", " ").split()))


class CardAliasesForm(EditForm):
    aliases = forms.CharField(
        label=_("Other names"),
        max_length=2500,
        required=False,
        widget=forms.TextInput(attrs=_PLAIN),
        help_text=_(
            "For instance H200, H200-SXM. They may be used wherever quota is written: in files, tables and the API. "
            "What is kept is the canonical name."
        ),
    )
    reason = reason_field(required=False)

    def document(self) -> dict[str, Any]:
        return {"aliases": _names(self.cleaned_data["aliases"])}


class CardTypeEditForm(CardAliasesForm):
    resource = forms.CharField(
        label=_("Kubernetes resource"),
        max_length=120,
        required=False,
        help_text=_("As the device plugin names it, for instance nvidia.com/gpu or nvidia.com/mig-1g.18gb."),
        widget=forms.TextInput(attrs=_PLAIN),
    )
    kind = forms.ChoiceField(label=_("How it is given out"), choices=CardKind.choices)
    parent = forms.ChoiceField(
        label=_("Cut from"), required=False, help_text=_("The whole card that a slice or share is a part of.")
    )
    field_order: tuple[str, ...] = ("kind", "parent", "resource", "aliases", "reason")

    def __init__(self, *args: Any, parents: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        listed = [(name, card_label(name)) for name in parents]
        self.fields["parent"].choices = [("", _("none")), *listed]  # type: ignore[attr-defined]  # a ChoiceField

    def document(self) -> dict[str, Any]:
        values = self.cleaned_data
        return {
            **super().document(),
            "kind": values["kind"],
            "resource": values["resource"] or None,
            "parent": values["parent"] or None,
        }


class CardTypeForm(CardTypeEditForm):
    name = forms.CharField(
        label=_("Canonical name"),
        max_length=120,
        help_text=_("For instance NVIDIA-H200, NVIDIA-H200/mig-1g.18gb-mixed or NVIDIA-H800/mps-80g*1/2."),
        widget=forms.TextInput(attrs=_PLAIN),
        validators=[RegexValidator(r"^\S+$", _("A name has no blanks."))],
    )
    field_order = ("name", "kind", "parent", "resource", "aliases", "reason")


class CardTypeFilter(FilterForm):
    q = forms.CharField(label=_("Name"), max_length=120)
    kind = forms.ChoiceField(label=_("How it is given out"), choices=[("", _("any")), *CardKind.choices])

    def apply(self, cards: QuerySet[Any]) -> QuerySet[Any]:
        if text := self.value("q").replace("\0", ""):
            cards = cards.filter(Q(name__icontains=text) | Q(aliases__icontains=text))
        if kind := self.value("kind"):
            cards = cards.filter(kind=kind)
        return cards


class PriorityClassEditForm(EditForm):
    description = forms.CharField(
        label=_("Description"), max_length=2000, required=False, widget=forms.Textarea(attrs={"rows": 2})
    )
    global_default = forms.BooleanField(
        label=_("For pods that name no class"),
        required=False,
        help_text=_("One class of a cluster at most can be this."),
    )
    reason = reason_field()

    def document(self) -> dict[str, Any]:
        values = self.cleaned_data
        return {"description": values["description"] or None, "global_default": values["global_default"]}


def _value_field() -> forms.IntegerField:
    return forms.IntegerField(
        label=_("Value"),
        min_value=-(2**31),
        max_value=MOST,
        help_text=_("Higher comes first. The four defaults are 80,000, 60,000, 40,000 and 20,000."),
    )


def _policy_field() -> forms.ChoiceField:
    return forms.ChoiceField(
        label=_("May its pods preempt?"),
        choices=[("PreemptLowerPriority", _("yes, those of lower priority")), ("Never", _("never"))],
    )


class PriorityClassForm(PriorityClassEditForm):
    name = forms.CharField(
        label=_("Name"),
        max_length=253,
        widget=forms.TextInput(attrs=_PLAIN),
        help_text=_("Lower-case letters, digits, “-” and “.”."),
    )
    value = _value_field()
    preemption_policy = _policy_field()
    field_order = ("name", "value", "preemption_policy", "global_default", "description", "reason")

    def document(self) -> dict[str, Any]:
        values = self.cleaned_data
        return {**super().document(), "value": values["value"], "preemption_policy": values["preemption_policy"]}


class ReplaceClassForm(EditForm):
    """Another value for a live class: the object is deleted and made anew."""

    value = _value_field()
    preemption_policy = _policy_field()
    confirm = forms.BooleanField(
        label=_("I have read what happens then"), error_messages={"required": _("Tick this box to go on.")}
    )
    reason = reason_field()

    def document(self) -> dict[str, Any]:
        values = self.cleaned_data
        return {"value": values["value"], "preemption_policy": values["preemption_policy"], "replace": True}


class NameFilter(FilterForm):
    q = forms.CharField(label=_("Name"), max_length=253)

    def apply(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        text = self.value("q").replace("\0", "")
        return rows.filter(name__icontains=text) if text else rows


class GrantForm(EditForm):
    namespace = forms.CharField(
        label=_("Namespace"),
        max_length=63,
        widget=forms.TextInput(attrs=_PLAIN),
        help_text=_("As it is in the cluster."),
    )
    queue = forms.ChoiceField(label=_("Queue"))
    reason = reason_field()

    def __init__(self, *args: Any, queues: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        listed = [(name, name) for name in queues]
        self.fields["queue"].choices = [("", _("choose one")), *listed]  # type: ignore[attr-defined]  # a ChoiceField


class GrantFilter(FilterForm):
    q = forms.CharField(label=_("Namespace or queue"), max_length=253)

    def apply(self, grants: QuerySet[Any]) -> QuerySet[Any]:
        text = self.value("q").replace("\0", "")
        return grants.filter(Q(namespace__icontains=text) | Q(queue__name__icontains=text)) if text else grants
