from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tidesched_web.clusters.connection_input import Offered, by_kubeconfig, by_own_pod, by_token
from tidesched_web.clusters.kubernetes.kubeconfig import MAX_BYTES
from tidesched_web.clusters.models import ClusterMode
from tidesched_web.common.time_zones import time_zones
from tidesched_web.console.forms.edit import EditForm, reason_field
from tidesched_web.console.forms.owners import name_field, slug_field

_CODE = {"class": "form-control code", "spellcheck": "false", "autocomplete": "off", "wrap": "off"}
MODE_HELP = _("Nothing is written in mode observe; start there when in doubt.")


def mode_field(**more: Any) -> forms.ChoiceField:
    return forms.ChoiceField(label=_("Mode"), choices=ClusterMode.choices, help_text=MODE_HELP, **more)


class ConnectionForm(EditForm):
    """One way of saying how a cluster is reached. What is secret is never filled in again."""

    def offered(self) -> Offered:
        raise NotImplementedError


class KubeconfigForm(ConnectionForm):
    file = forms.FileField(
        label=_("Kubeconfig file"),
        required=False,
        help_text=_("Inline data only: a file that would run programs or read other files is refused."),
    )
    kubeconfig = forms.CharField(
        label=_("Or its text"),
        required=False,
        strip=False,
        max_length=MAX_BYTES,
        widget=forms.Textarea(attrs={"rows": 10, **_CODE}),
    )
    context = forms.CharField(
        label=_("Context"),
        required=False,
        max_length=300,
        help_text=_("Empty for the file's current one; another can be chosen on the next page too."),
    )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        uploaded = values.get("file")
        if uploaded is not None and uploaded.size > MAX_BYTES:
            self.add_error("file", gettext("A kubeconfig is not that long."))
        elif uploaded is None and not values.get("kubeconfig", "").strip():
            self.add_error("kubeconfig", gettext("Choose a file, or paste its text."))
        return values

    def offered(self) -> Offered:
        uploaded = self.cleaned_data.get("file")
        given = uploaded.read() if uploaded else self.cleaned_data["kubeconfig"]
        return by_kubeconfig(given, context=self.cleaned_data["context"].strip())


class TokenForm(ConnectionForm):
    api_url = forms.CharField(
        label=_("Address of the API server"), max_length=300, help_text=_("Such as https://10.0.0.1:6443.")
    )
    token = forms.CharField(
        label=_("Token of a service account"),
        max_length=20_000,
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text=_("kubectl -n tidesched create token tidesched --duration=8760h"),
    )
    ca_certificate = forms.CharField(
        label=_("Certificate authority"),
        required=False,
        max_length=200_000,
        widget=forms.Textarea(attrs={"rows": 6, **_CODE}),
        help_text=_("PEM. Empty where the server's certificate is trusted by this machine anyway."),
    )
    tls_server_name = forms.CharField(
        label=_("Server's name for TLS"),
        required=False,
        max_length=253,
        help_text=_("Only where the certificate has another name than the address."),
    )

    def offered(self) -> Offered:
        names = ("api_url", "token", "ca_certificate", "tls_server_name")
        return by_token(**{name: self.cleaned_data[name] for name in names})


class OwnPodForm(ConnectionForm):
    def offered(self) -> Offered:
        return by_own_pod()


WAYS: dict[str, type[ConnectionForm]] = {"kubeconfig": KubeconfigForm, "token": TokenForm, "own-pod": OwnPodForm}


class OfferModeForm(EditForm):
    mode = mode_field()


class TakeForm(EditForm):
    accept = forms.BooleanField(label=_("I know what is missing; save it all the same."), required=False)
    reason = reason_field()

    def __init__(self, *args: Any, failed: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not failed:
            del self.fields["accept"]


class ConnectForm(TakeForm):
    name = name_field()
    slug = slug_field()
    field_order = ("name", "slug", "accept", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["slug"].required = False
        self.fields["slug"].help_text = _("Made from the name where it is empty; it cannot be changed later.")


class RemoveForm(EditForm):
    name = forms.CharField(
        label=_("The cluster's name"), max_length=120, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    reason = reason_field()


def _zones() -> list[tuple[str, Any]]:
    return [("", _("that of the first tide plan")), *((name, name) for name in time_zones())]


class SettingsForm(EditForm):
    name = name_field()
    mode = mode_field()
    scheduler_names = forms.CharField(
        label=_("Names of the scheduler"),
        max_length=600,
        help_text=_("Pods with one of these as spec.schedulerName are TideSched's in mode schedule; comma-separated."),
    )
    volcano_namespace = forms.CharField(
        label=_("Namespace of Volcano's scheduler"),
        max_length=63,
        help_text=_("Where the connection test looks for the ConfigMap that says whether card quotas hold."),
    )
    volcano_config_map = forms.CharField(label=_("Name of its ConfigMap"), max_length=253)
    session_period_seconds = forms.FloatField(
        label=_("Seconds between two sessions"), min_value=0.1, max_value=3600, help_text=_("By the wall's clock.")
    )
    evict_gangs_per_minute = forms.IntegerField(
        label=_("Gangs evicted in a minute, at most"),
        min_value=0,
        max_value=1_000_000,
        help_text=_("Beyond it a session stops before it sends, and waits for a person."),
    )
    evict_cards_per_minute = forms.IntegerField(
        label=_("Cards taken back in a minute, at most"), min_value=0, max_value=1_000_000
    )
    evict_share_of_training = forms.FloatField(
        label=_("Share of the running training cards that one session may evict"),
        min_value=0,
        max_value=1,
        help_text=_("From 0 to 1."),
    )
    time_zone = forms.ChoiceField(
        label=_("Time zone"),
        required=False,
        choices=_zones,
        help_text=_("Of the clock in the head, and where a new tide plan begins. Tide plans have zones of their own."),
    )
    reason = reason_field()

    def clean_scheduler_names(self) -> list[str]:
        return [name.strip() for name in self.cleaned_data["scheduler_names"].split(",") if name.strip()]
