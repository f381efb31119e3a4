from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tidesched_web.api.v1.serializers.briefs import AddressField, ShownAsIs
from tidesched_web.api.v1.serializers.clusters import ClusterDocument
from tidesched_web.api.v1.serializers.json_shapes import TEXT, ref
from tidesched_web.api.v1.serializers.tree_shapes import DNS_NAME, SUBDOMAIN
from tidesched_web.clusters import finding_words
from tidesched_web.clusters.kubernetes.credential_facts import authorities
from tidesched_web.clusters.models import Cluster, ClusterMode, ConnectionKind, ConnectionTest

# What the checks of the address and the token begin with; the host itself is looked at by the services.
API_ADDRESS = r"^https?://[^\s@\x00]+$"
VISIBLE = r"^[!-~]+$"
LEVEL_CHOICES = [(level, level) for level in ("good", "note", "warning", "failed")]
VERDICT_CHOICES = [(verdict, verdict) for verdict in ("running", "good", "warning", "failed")]


def _way(*names: str, without: tuple[str, ...]) -> dict[str, Any]:
    """One of several ways to reach a cluster: what it needs, and what belongs to the others."""
    asked = {name: {"const": True} if name == "in_cluster" else TEXT for name in names}
    others = {name: {"const": False} if name == "in_cluster" else False for name in without}
    return {"type": "object", "required": [*names], "properties": asked | others}


# Members of the bodies below that depend on each other.
CONNECTION_WAYS = [
    _way("kubeconfig", without=("api_url", "in_cluster")),
    _way("api_url", "token", without=("kubeconfig", "in_cluster")),
    _way("in_cluster", without=("kubeconfig", "api_url")),
]


class ConnectionInput(serializers.Serializer[Any]):
    """A kubeconfig, or address and token, or `in_cluster`. Nothing of it is ever given out again."""

    kubeconfig = serializers.CharField(
        required=False, max_length=300_000, trim_whitespace=False, write_only=True, help_text="Inline data only."
    )
    context = serializers.CharField(  # type: ignore[assignment]  # declared fields leave the class
        required=False, max_length=300, help_text="Else the file's current one."
    )
    api_url = serializers.RegexField(API_ADDRESS, required=False, max_length=300)
    token = serializers.RegexField(VISIBLE, required=False, max_length=20_000, write_only=True)
    ca_certificate = serializers.CharField(required=False, max_length=200_000, help_text="PEM.")
    tls_server_name = serializers.CharField(required=False, max_length=253)
    in_cluster = serializers.BooleanField(required=False, help_text="The cluster that TideSched itself runs in.")
    accept = serializers.BooleanField(
        default=False, help_text="Save it although the connection test has found something missing."
    )
    reason = serializers.CharField(max_length=1000, trim_whitespace=True, help_text="Goes into the audit log.")


class ClusterInput(ConnectionInput):
    """A new cluster."""

    name = serializers.CharField(max_length=120)
    slug = serializers.SlugField(required=False, max_length=63)
    mode = serializers.ChoiceField(choices=ClusterMode.choices, default=ClusterMode.OBSERVE)


class ClusterPatch(serializers.Serializer[Any]):
    """What may change in a cluster without connecting it anew."""

    name = serializers.CharField(required=False, max_length=120)
    mode = serializers.ChoiceField(required=False, choices=ClusterMode.choices)
    scheduler_names = serializers.ListField(
        required=False, child=serializers.CharField(max_length=63), min_length=1, max_length=20
    )
    volcano_namespace = serializers.RegexField(
        DNS_NAME, required=False, max_length=63, help_text="Where Volcano's scheduler has its ConfigMap."
    )
    volcano_config_map = serializers.RegexField(
        SUBDOMAIN, required=False, max_length=253, help_text="The ConfigMap's name."
    )
    session_period_seconds = serializers.FloatField(required=False, min_value=0.1, max_value=3600)
    evict_gangs_per_minute = serializers.IntegerField(required=False, min_value=0, max_value=1_000_000)
    evict_cards_per_minute = serializers.IntegerField(required=False, min_value=0, max_value=1_000_000)
    evict_share_of_training = serializers.FloatField(required=False, min_value=0, max_value=1)
    time_zone = serializers.CharField(
        required=False, allow_blank=True, max_length=64, help_text="Empty = that of its first tide plan that is on."
    )
    reason = serializers.CharField(max_length=1000, trim_whitespace=True, help_text="Goes into the audit log.")


class RemoveInput(serializers.Serializer[Any]):
    """Its name, so that it is this cluster that is meant, and why."""

    name = serializers.CharField(max_length=120)
    reason = serializers.CharField(max_length=1000, trim_whitespace=True, help_text="Goes into the audit log.")


class TestInput(serializers.Serializer[Any]):
    """What to test for."""

    mode = serializers.ChoiceField(required=False, choices=ClusterMode.choices, help_text="Else the cluster's own.")


@extend_schema_field(ref("Facts3"))
class ValuesField(ShownAsIs):
    """The numbers and names that a sentence is made of."""


class FindingDocument(serializers.Serializer[Any]):
    """One thing that a connection test has found out. Step and code are the contract, the message is for people."""

    step = serializers.CharField()
    code = serializers.CharField()
    level = serializers.ChoiceField(choices=LEVEL_CHOICES)
    values = ValuesField()
    message = serializers.SerializerMethodField()
    remedy = serializers.SerializerMethodField()

    def get_message(self, finding: dict[str, Any]) -> str:
        return finding_words.sentence(finding)

    def get_remedy(self, finding: dict[str, Any]) -> str:
        return finding_words.helps(finding, self.context.get("mode", ""))


class ConnectionTestDocument(serializers.Serializer[Any]):
    """A connection test."""

    id = serializers.IntegerField()
    mode = serializers.ChoiceField(choices=ClusterMode.choices)
    verdict = serializers.ChoiceField(choices=VERDICT_CHOICES)
    percent = serializers.IntegerField()
    started_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    actor = serializers.CharField()
    job = serializers.SerializerMethodField()
    findings = serializers.SerializerMethodField()
    grants = serializers.SerializerMethodField(help_text="A manifest that grants the rights that are missing.")

    def get_job(self, test: ConnectionTest) -> str | None:
        return f"{self.context.get('base', '/api/v1/')}jobs/{test.job_id}/" if test.job_id else None

    @extend_schema_field(FindingDocument(many=True))
    def get_findings(self, test: ConnectionTest) -> Any:
        return FindingDocument(test.findings, many=True, context={**self.context, "mode": test.mode}).data

    def get_grants(self, test: ConnectionTest) -> str:
        return finding_words.grants(test.findings, test.mode)


class AuthorityDocument(serializers.Serializer[Any]):
    """A certificate that the server is verified against."""

    subject = serializers.CharField()
    fingerprint = serializers.CharField(help_text="SHA-256.")
    expires_at = serializers.DateTimeField()


class LastPushDocument(serializers.Serializer[Any]):
    """The newest object that was sent to the cluster, and what came of it."""

    kind = serializers.ChoiceField(choices=[(kind, kind) for kind in ("Queue", "PriorityClass")])
    name = serializers.CharField()
    at = serializers.DateTimeField(
        allow_null=True, help_text="By the real clock; null where the cluster did not answer after a refusal."
    )
    taken = serializers.BooleanField(help_text="False: the cluster has refused it.")
    message = serializers.CharField(help_text="The cluster's words where it refused; else empty.")
    refused = serializers.IntegerField(help_text="How many objects the cluster refuses now; `drift` lists them.")


class ConnectionDocument(serializers.Serializer[Any]):
    """How a cluster is reached: whose credentials they are and until when, never what they are."""

    cluster = serializers.IntegerField(source="pk")
    url = AddressField("clusters")
    api_url = serializers.CharField()
    kind = serializers.ChoiceField(choices=ConnectionKind.choices, source="connection_kind")
    subject = serializers.CharField(source="credentials_subject")
    expires_at = serializers.DateTimeField(source="credentials_expire_at", allow_null=True)
    set_at = serializers.DateTimeField(source="credentials_set_at", allow_null=True)
    set_by = serializers.CharField(source="credentials_set_by")
    tls_server_name = serializers.CharField()
    authorities = serializers.SerializerMethodField()
    disconnected_at = serializers.DateTimeField(allow_null=True)
    test = serializers.SerializerMethodField(help_text="The newest test of this connection that is over.")
    last_push = serializers.SerializerMethodField(help_text="Null where nothing has been sent yet.")

    @extend_schema_field(AuthorityDocument(many=True))
    def get_authorities(self, cluster: Cluster) -> Any:
        return AuthorityDocument(authorities(cluster.ca_certificate), many=True).data

    @extend_schema_field(ConnectionTestDocument(allow_null=True))
    def get_test(self, cluster: Any) -> Any:
        newest = self.context.get("test")
        return None if newest is None else ConnectionTestDocument(newest, context=self.context).data

    @extend_schema_field(LastPushDocument(allow_null=True))
    def get_last_push(self, cluster: Cluster) -> Any:
        push = self.context.get("push")
        return None if push is None else LastPushDocument(push).data


class TriedDocument(serializers.Serializer[Any]):
    """What a dry run found out."""

    dry_run = serializers.BooleanField()
    test = ConnectionTestDocument()


class MadeClusterDocument(ClusterDocument):
    """A cluster that was just connected, with the test that went before."""

    test = ConnectionTestDocument()
