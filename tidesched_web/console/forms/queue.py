from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tidesched_web.accounts.models import BusinessLine, Project
from tidesched_web.common.card_names import card_label
from tidesched_web.common.models import ServiceType
from tidesched_web.common.sentences import listed
from tidesched_web.console import amounts
from tidesched_web.console.forms.edit import EditForm, reason_field
from tidesched_web.quota import names

MIB, GIB = 2**20, 2**30
CARD = "card:"


@dataclass(frozen=True, slots=True)
class OwnerRoom:
    name: str
    left: str


class QueueEditForm(EditForm):
    """What may change in a queue. An empty cpu or memory is no limit, an empty card is 0."""

    pointers: Mapping[str, str] = {"cpu_milli": "cores", "memory_bytes": "memory"}

    weight = forms.IntegerField(
        label=_("Weight"),
        min_value=1,
        max_value=65535,
        help_text=_("How queues of one priority share what is left, where the policy shares by weight."),
    )
    priority = forms.IntegerField(
        label=_("Priority"),
        min_value=0,
        max_value=2**31 - 1,
        help_text=_("Queues of higher priority come first. Inference 80,000 and training 20,000 are the tide."),
    )
    reclaimable = forms.BooleanField(
        label=_("Its cards may be taken back"),
        required=False,
        help_text=_("Training gives cards back when inference needs them; inference never does."),
    )
    cores = forms.DecimalField(
        label=_("CPU cores"), required=False, min_value=0, decimal_places=3, help_text=_("Empty: no limit.")
    )
    memory = forms.DecimalField(
        label=_("Memory, GiB"), required=False, min_value=0, decimal_places=3, help_text=_("Empty: no limit.")
    )
    reason = reason_field()

    def __init__(
        self,
        *args: Any,
        cards: Iterable[str],
        quota: Mapping[str, int] | None = None,
        in_use: Mapping[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.cards = sorted({*cards, *(quota or {})})
        for name in self.cards:
            now = {"now": (quota or {}).get(name, 0), "used": amounts.number((in_use or {}).get(name, 0))}
            field = forms.IntegerField(
                label=card_label(name),
                required=False,
                min_value=0,
                initial=(quota or {}).get(name),
                help_text=gettext("now %(now)s, in use %(used)s") % now if quota is not None else "",
                widget=forms.NumberInput(attrs={"class": "form-control", "title": name}),
            )
            self.fields[CARD + name] = field
        # The review asks for the reason, and the service where it is made or saved at once.
        self.fields["reason"].required = False
        self.pointers = {**type(self).pointers, **{name: CARD + name for name in self.cards}}
        self.order_fields([*(name for name in self.fields if name != "reason"), "reason"])

    def plain(self) -> list[forms.BoundField]:
        return [field for field in self.visible_fields() if not field.name.startswith(CARD) and field.name != "reason"]

    def card_fields(self) -> list[forms.BoundField]:
        return [self[CARD + name] for name in self.cards]

    def document(self) -> dict[str, Any]:
        values = self.cleaned_data
        cards = {name: values.get(CARD + name) for name in self.cards}
        found: dict[str, Any] = {
            "cpu_milli": None if values["cores"] is None else int(values["cores"] * 1000),
            "memory_bytes": None if values["memory"] is None else int(values["memory"] * GIB) // MIB * MIB,
            "card_quota": {name: count or None for name, count in cards.items()},
        }
        for name in ("weight", "priority", "reclaimable"):
            if values.get(name) is not None:
                found[name] = values[name]
        return found


class QueueForm(QueueEditForm):
    name = forms.RegexField(
        f"^{names.QUEUE.form}$",
        label=_("Name"),
        max_length=names.QUEUE.most,
        help_text=_("Lower-case letters, digits, “-” and “.”: its name in the cluster, which stays."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        error_messages={"invalid": names.QUEUE.refusal},
    )
    service_type = forms.ChoiceField(label=_("Service type"), choices=ServiceType.choices)
    owner = forms.ChoiceField(
        label=_("Belongs to"),
        help_text=_("An inference queue belongs to a project, a training queue to a business line."),
    )
    pointers: Mapping[str, str] = {
        **QueueEditForm.pointers,
        "project": "owner",
        "business_line": "owner",
        "tenant": "owner",
    }
    field_order = ("name", "service_type", "owner", "priority", "reclaimable", "weight", "cores", "memory")

    def __init__(
        self,
        *args: Any,
        projects: Iterable[Project],
        lines: Iterable[BusinessLine],
        decides: bool,
        room: Callable[[Project | BusinessLine], Mapping[str, int]],
        **kwargs: Any,
    ) -> None:
        self._room = room
        self.projects = {f"project-{project.pk}": project for project in projects}
        self.lines = {f"line-{line.pk}": line for line in lines}
        super().__init__(*args, **kwargs)
        listed: list[tuple[Any, Any]] = [("", _("choose one"))]
        if self.projects:
            named = [
                (key, f"{row.tenant.name} › {row.name}{self._left(room(row))}") for key, row in self.projects.items()
            ]
            listed.append((_("Projects, for inference"), named))
        if self.lines:
            platform = gettext("the platform")
            rows = self.lines.items()
            named = [
                (key, f"{row.tenant.name if row.tenant else platform} › {row.name}{self._left(room(row))}")
                for key, row in rows
            ]
            listed.append((_("Business lines, for training"), named))
        self.fields["owner"].choices = listed  # type: ignore[attr-defined]
        for name in ("weight", "priority"):
            self.fields[name].required = False
        self.fields["priority"].widget.attrs["placeholder"] = gettext("as the service type says")
        self.fields["weight"].widget.attrs["placeholder"] = "1"
        del self.fields["reclaimable"]
        if not decides:  # ranking a queue against those of other tenants is the platform's
            del self.fields["weight"], self.fields["priority"]

    def chosen(self) -> OwnerRoom | None:
        key = str(self["owner"].value() or "")
        row = self.projects.get(key) or self.lines.get(key)
        known = {name: left for name, left in self._room(row).items() if name in self.cards} if row else {}
        if row is None or not known:
            return None
        left = listed(f"{card_label(name)} {amounts.number(count)}" for name, count in sorted(known.items()) if count)
        return OwnerRoom(row.name, left)

    def _left(self, room: Mapping[str, int]) -> str:
        known = {name: room[name] for name in self.cards if name in room}
        most = sorted((name for name, left in known.items() if left), key=lambda name: (-known[name], name))[:4]
        if not known:
            return ""
        if not most:
            return gettext(" – nothing left to give out")
        cards = listed(f"{card_label(name)} {amounts.number(known[name])}" for name in most)
        return gettext(" – left: %(cards)s") % {"cards": cards}

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        kind, owner = values.get("service_type"), values.get("owner", "")
        if kind == ServiceType.INFERENCE and owner in self.lines:
            self.add_error("owner", gettext("An inference queue belongs to a project."))
        elif kind == ServiceType.TRAINING and owner in self.projects:
            self.add_error("owner", gettext("A training queue belongs to a business line."))
        return values

    def document(self) -> dict[str, Any]:
        values = self.cleaned_data
        found = {name: value for name, value in super().document().items() if value is not None}
        found["card_quota"] = {name: count for name, count in found["card_quota"].items() if count}
        found["service_type"] = values["service_type"]
        owner = self.projects.get(values["owner"]) or self.lines[values["owner"]]
        found["project" if isinstance(owner, Project) else "business_line"] = owner.slug
        if owner.tenant is not None:
            found["tenant"] = owner.tenant.slug
        return found
