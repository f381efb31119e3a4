from tidesched_web.audit.selectors import chain_checks
from tidesched_web.clusters.models import Cluster
from tidesched_web.scheduling.models import AlertSeverity
from tidesched_web.scheduling.pipeline import alerts

KEY = "audit_chain"


def look() -> int:
    clusters = set(Cluster.objects.values_list("pk", flat=True))
    broken = 0
    for chain, check in chain_checks().items():
        kind, _colon, number = chain.partition(":")
        cluster_id = int(number) if kind == "cluster" and number.isdigit() and int(number) in clusters else None
        key = f"{KEY}:{chain}"
        if not check.problem:
            alerts.resolve(cluster_id=cluster_id, key=key)
            continue
        broken += 1
        alerts.raise_alert(
            cluster_id=cluster_id,
            key=key,
            severity=AlertSeverity.CRITICAL,
            code="audit_broken",
            message=f"Chain {chain} of the audit log does not hold or cannot be verified: {check.problem}"[:1000],
            numbers={"chain": chain, "entry": check.broken_seq},
        )
    return broken
