import datetime as dt
import re
from collections.abc import Iterable
from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from tidesched_web.accounts.models import Tenant
from tidesched_web.audit.models import AuditEntry
from tidesched_web.audit.selectors import touching
from tidesched_web.clusters.models import Cluster
from tidesched_web.console.audit_words import OBJECTS, act_words, action_choices
from tidesched_web.console.forms.bounded import BoundedFilterForm
from tidesched_web.console.forms.number_words import NumberWords
from tidesched_web.scheduling.reclaim_selectors import entries_of_gang

ACTION = re.compile(r"[a-z][a-z_]{0,38}\.[a-z][a-z_]{0,38}")


class AuditFilter(BoundedFilterForm):
    actor = forms.CharField(label=_("Who"), max_length=200)
    action = forms.ChoiceField(label=_("Action"))
    object_type = forms.ChoiceField(label=_("Kind of object"))
    q = forms.CharField(label=_("Object"), max_length=200)
    gang = forms.CharField(label=_("Gang that gained or lost"), max_length=320)
    cluster = forms.ChoiceField(label=_("Cluster"))
    tenant = forms.ChoiceField(label=_("Tenant"))
    request_id = forms.CharField(label=_("Request"), max_length=80)
    object_id = forms.CharField(label=_("Object number"), max_length=200, widget=forms.HiddenInput)

    def __init__(self, data: QueryDict, clusters: Iterable[Cluster], tenants: Iterable[Tenant]) -> None:
        self.clusters = [(str(cluster.pk), cluster.name) for cluster in clusters]
        self.tenants = [(str(tenant.pk), tenant.name) for tenant in tenants]
        super().__init__(data)

    def is_valid(self) -> bool:
        if "from" not in self.fields:
            seen: dict[str, str] = {}
            for value, word in OBJECTS.items():
                seen.setdefault(str(word), value)
            nothing: list[tuple[str, Any]] = [("", _("any"))]
            for name, pairs in (
                ("object_type", [(value, word) for word, value in sorted(seen.items())]),
                ("cluster", self.clusters),
                ("tenant", self.tenants),
            ):
                self.fields[name].choices = nothing + pairs  # type: ignore[attr-defined]
            self.fields["action"].choices = [*nothing, *self._actions()]  # type: ignore[attr-defined]  # a choice
        return super().is_valid()

    def _actions(self) -> list[tuple[str, Any]]:
        """The known actions; a link may name another one, such as that of an earlier version or of one's own plugin."""
        listed: list[tuple[str, Any]] = list(action_choices())
        asked = str(self.data.get("action", ""))
        if ACTION.fullmatch(asked) and not any(asked == value for _word, group in listed for value, _act in group):
            listed.append((asked, act_words(asked)))
        return listed

    def apply(self, entries: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        for name in ("actor", "action", "object_type", "request_id", "object_id"):
            if text := self.value(name):
                entries = entries.filter(**{name: text})
        if text := self.value("q"):
            entries = entries.filter(Q(object_label__icontains=text) | Q(object_id=text))
        if gang := self.value("gang"):
            entries = entries.filter(entries_of_gang(gang))
        if cluster := self.value("cluster"):
            entries = entries.filter(cluster_id=int(cluster))
        if tenant := self.value("tenant"):
            entries = touching(entries, int(tenant))
        if since := self.moment("from"):
            entries = entries.filter(at__gte=since)
        if until := self.moment("to"):
            entries = entries.filter(at__lt=until)
        return entries

    def rest_parameters(self) -> dict[str, str]:
        names = ("actor", "action", "object_type", "request_id", "cluster", "tenant", "q", "gang", "object_id")
        found = {name: self.value(name) for name in names}
        for name in ("from", "to"):
            if moment := self.moment(name):
                found[name] = moment.astimezone(dt.UTC).isoformat()
        return {name: value for name, value in found.items() if value}


class SealForm(NumberWords):
    days = forms.IntegerField(
        label=_("Older than, in days"),
        min_value=0,
        max_value=36_500,
        initial=30,
        widget=forms.NumberInput(attrs={"class": "form-control"}),
    )
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        widget=forms.TextInput(attrs={"class": "form-control"}),
        error_messages={"required": _("Say why: the reason goes into the audit log.")},
    )


class DropForm(forms.Form):
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 3, "class": "form-control"}),
        error_messages={"required": _("Say why: the reason goes into the audit log.")},
    )
    confirm = forms.BooleanField(
        label=_("The exported file is kept where it can be found"),
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
        error_messages={"required": _("Tick this box to go on.")},
    )
