"""How the story's cluster is reached: a test that found much missing, one under way, and a connection on offer."""

from __future__ import annotations

import datetime as dt

from django.utils import timezone

from tests.cluster.answering_server import pair, pem
from tests.web.console.cast import World
from tidesched_web.clusters import connection_services
from tidesched_web.clusters.connection_input import by_token
from tidesched_web.clusters.kubernetes.probe import FAILED, GOOD, NOTE, WARNING, Finding
from tidesched_web.clusters.models import ConnectionTest

URL = "https://10.20.30.40:6443"


def findings() -> list[dict[str, object]]:
    """A bit of everything."""
    missing = {"resource": "pods/binding", "verb": "create", "namespace": "", "names": [], "why": "bind"}
    lease = {
        "resource": "leases.coordination.k8s.io",
        "verb": "update",
        "namespace": "kube-system",
        "names": ["tidesched-scheduler"],
        "why": "keep a second installation out",
    }
    end = (timezone.now() + dt.timedelta(days=3)).isoformat()
    found = [
        Finding("credentials", "ends_soon", WARNING, {"at": end}),
        Finding("reach", "reached", GOOD, {"url": URL, "ms": 12}),
        Finding("identity", "known_as", GOOD, {"user": "system:serviceaccount:tidesched:tidesched"}),
        Finding("version", "version", GOOD, {"version": "v1.34.1"}),
        Finding("apis", "apis", GOOD, {"count": 6}),
        Finding("volcano", "crds", GOOD),
        Finding("policy", "card_quota_ignored", NOTE, {"plugins": ["gang", "drf", "capacity"]}),
        Finding("others", "volcano_runs", FAILED, {"names": ["volcano-system/volcano-scheduler"]}),
        Finding("verbs", "verb_missing", FAILED, missing),
        Finding("verbs", "verb_missing", FAILED, lease),
    ]
    return [finding.to_json() for finding in found]


def tested(world: World) -> World:
    """The world with tests and an offer; ``named`` has the offer's number."""
    cluster, authority = world.cluster, pem(pair("kubernetes")[0])
    cluster.ca_certificate, cluster.api_url, cluster.simulated = authority, URL, False
    cluster.credentials_subject = "system:serviceaccount:tidesched:tidesched"
    cluster.credentials_expire_at = timezone.now() + dt.timedelta(days=3)
    cluster.credentials_set_at, cluster.credentials_set_by = timezone.now() - dt.timedelta(days=87), "admin"
    cluster.save()
    done = {"mode": "schedule", "actor": "admin", "percent": 100, "finished_at": timezone.now()}
    ConnectionTest.objects.create(cluster=cluster, findings=findings(), **done)
    ConnectionTest.objects.create(cluster=cluster, mode="schedule", actor="admin", percent=44)
    given = by_token(api_url="https://hall-9.example.com:6443", token="a-token", ca_certificate=authority)
    offer = connection_services.offer(offered=given, mode="schedule", actor="admin", owner_id=None)
    ConnectionTest.objects.filter(pk=offer.pk).update(
        findings=findings(), percent=100, finished_at=timezone.now(), context="hall-9", contexts=["hall-9", "hall-10"]
    )
    return world
