from typing import Any

from django.db.models import Q, QuerySet

from tidesched_web.clusters.models import Cluster, ConnectionTest
from tidesched_web.common.permissions import Access


def visible_tests(access: Access) -> QuerySet[ConnectionTest]:
    """Tests of clusters, and offers that belong to no cluster yet: for those who see everything. Never the secrets."""
    rows = ConnectionTest.objects.select_related("cluster").defer("ca_certificate")
    return rows if access.everything else rows.none()


def connection_test_by_id(pk: int) -> ConnectionTest | None:
    return ConnectionTest.objects.select_related("cluster").filter(pk=pk).first()


def newest_test(cluster: Cluster) -> ConnectionTest | None:
    """The newest finished test of the connection that the cluster has now; an offer counts once it was taken."""
    return _tests(cluster).first()


def running_test(cluster: Cluster) -> ConnectionTest | None:
    return ConnectionTest.objects.filter(cluster=cluster, offer=False, finished_at__isnull=True).order_by("-id").first()


def _tests(cluster: Cluster) -> QuerySet[ConnectionTest]:
    rows = ConnectionTest.objects.filter(cluster=cluster, finished_at__isnull=False)
    return rows.exclude(offer=True, taken_at__isnull=True).order_by("-id")


def _finding(cluster: Cluster, *codes: str) -> dict[str, Any] | None:
    """What the newest test that says anything of these says: one that ended early, or may not look, says nothing."""
    said = Q()
    for code in codes:
        said |= Q(findings__contains=[{"code": code}])
    test = _tests(cluster).filter(said).first()
    return next((one for one in test.findings if one["code"] in codes), None) if test is not None else None


def card_quota_enforced(cluster: Cluster) -> bool | None:
    """Whether the cluster's own Volcano knows card quotas, as the newest test saw it; None where it is not known."""
    found = _finding(cluster, "card_quota_holds", "card_quota_ignored", "card_quota_own", "conf_missing", "conf_hidden")
    known = {"card_quota_holds": True, "card_quota_ignored": False}
    return None if found is None else known.get(found["code"])


def volcano_runs(cluster: Cluster) -> bool | None:
    """Whether Volcano's scheduler runs in the cluster, as the newest test saw it; None where it is not known."""
    found = _finding(cluster, "volcano_runs", "volcano_absent")
    return None if found is None else found["code"] == "volcano_runs"


def other_installation(cluster: Cluster) -> bool:
    test = newest_test(cluster)
    return test is not None and any(one["code"] == "other_installation" for one in test.findings)


def same_server(server_uid: str, *, but: int | None) -> Cluster | None:
    """The first connected cluster that is the same one."""
    if not server_uid:
        return None
    return reached_clusters().filter(server_uid=server_uid).exclude(pk=but or 0).order_by("pk").first()


def reached_clusters() -> QuerySet[Cluster]:
    return Cluster.objects.filter(disconnected_at__isnull=True)
