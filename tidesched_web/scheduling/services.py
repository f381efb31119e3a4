import datetime as dt

from django.db import transaction
from django.utils import timezone

from tidesched_web.audit import services as audit
from tidesched_web.clusters.models import Cluster
from tidesched_web.common import live
from tidesched_web.common.errors import DomainError
from tidesched_web.scheduling.gang_selectors import kept_from, unused_promises
from tidesched_web.scheduling.holds import GUARD_KEY
from tidesched_web.scheduling.models import Alert, AlertSeverity
from tidesched_web.scheduling.pipeline import requests
from tidesched_web.scheduling.pipeline.alerts import keep_open
from tidesched_web.waking import wake_holder
from tidesched_web.workloads.models import Gang, GangState

# A promise that has not been used for so long (by the cluster's clock) is worth a look.
UNUSED_FOR = dt.timedelta(minutes=30)
# Reasons take turns and a gang is admitted for a moment. The alert rises once a gang has waited for the quota for so
# long without a break, and ends once that has not been seen for so long; both by the wall's clock, as it is looked.
RISES_AFTER = dt.timedelta(minutes=3)
ENDS_AFTER = dt.timedelta(minutes=5)


def watch_promises() -> None:
    """Level-triggered, may run twice."""
    for cluster in Cluster.objects.filter(disconnected_at__isnull=True):
        _watch(cluster)


def _watch(cluster: Cluster) -> None:
    now = cluster.clock()
    old = [promise for promise in unused_promises(cluster.pk) if now - promise.since >= UNUSED_FOR]
    waiting = kept_from(cluster.pk, old, since=cluster.clock(timezone.now() - RISES_AFTER))
    wanted = {
        f"promise:{promise.queue_id}:{promise.card}": {
            "severity": AlertSeverity.WARNING,
            "code": "promise_unused",
            "message": f"{promise.promised:g} x {promise.card} of queue {promise.queue} are promised and not used.",
            "numbers": {
                "queue": promise.queue,
                "card": promise.card,
                "promised": promise.promised,
                "waiting": waiting[promise.queue_id, promise.card],
                "hours": round((now - promise.since).total_seconds() // 3600),
            },
        }
        for promise in old
        if waiting.get((promise.queue_id, promise.card))
    }
    keep_open(cluster_id=cluster.pk, prefix="promise:", wanted=wanted, outlasts=ENDS_AFTER)


def holds_unused_promise(gang: Gang) -> bool:
    waits = gang.state == GangState.ADMITTED and gang.admitted_at is not None and gang.gone_at is None
    return waits and not gang.bound and gang.reason_code != "WaitingForReclaim"


@transaction.atomic
def withdraw_promise(*, gang: Gang, actor: str, reason: str, stopped: bool = False) -> None:
    """From the next session on the gang waits, and is admitted again no sooner than a promise counts as unused.
    ``stopped``: nothing is sent to its cluster (`sending_stop`)."""
    gang = Gang.objects.select_for_update(of=("self",)).select_related("cluster", "queue").get(pk=gang.pk)
    if not holds_unused_promise(gang):
        raise DomainError("conflict", f"{gang.key} holds no promise that is not used.")
    if not gang.cluster.evicts:
        raise DomainError("conflict", f"In mode {gang.cluster.mode} another scheduler promises quota in this cluster.")
    if stopped:
        raise DomainError("conflict", "Nothing is sent to the cluster now, so no promise can be withdrawn.")
    gang.withdrawn_until = gang.cluster.clock() + UNUSED_FOR
    gang.save(update_fields=["withdrawn_until"])
    requests.ask(gang.cluster_id, by=f"promise withdrawn by {actor}")
    audit.append(
        chain=audit.cluster_chain(gang.cluster_id),
        actor=actor,
        action="promise.withdraw",
        object_type="gang",
        object_id=gang.pk,
        object_label=gang.key,
        cluster_id=gang.cluster_id,
        tenant_ids=[gang.queue.tenant_id] if gang.queue and gang.queue.tenant_id else [],
        reason=reason,
        before={"queue": gang.queue_name, "cards": gang.cards},
        after={"withdrawn_until": gang.withdrawn_until.isoformat()},
    )
    transaction.on_commit(lambda: wake_holder(gang.cluster_id), robust=True)


@transaction.atomic
def release_guard(*, cluster: Cluster, actor: str, reason: str = "") -> None:
    """Let the next session pass the eviction budget once. Conditional: of two people one wins."""
    alert = Alert.objects.select_for_update().filter(cluster=cluster, key=GUARD_KEY, resolved_at__isnull=True).first()
    if alert is None:
        raise DomainError("conflict", f"No guard holds the sessions of {cluster.name}.")
    _resolve(alert, actor)
    requests.ask(cluster.pk, by=f"guard released by {actor}")
    audit.append(
        chain=audit.cluster_chain(cluster.pk),
        actor=actor,
        action="guard.release",
        object_type="cluster",
        object_id=cluster.pk,
        object_label=cluster.slug,
        cluster_id=cluster.pk,
        reason=reason,
        before={"alert": alert.pk, "message": alert.message, "numbers": alert.numbers},
    )
    transaction.on_commit(lambda: wake_holder(cluster.pk), robust=True)


@transaction.atomic
def resolve_alert(*, alert: Alert, actor: str, reason: str = "") -> bool:
    """Close an alert by hand; False where it was closed. Closing the eviction guard's releases the guard."""
    locked = Alert.objects.select_for_update().filter(pk=alert.pk, resolved_at__isnull=True).first()
    if locked is None:
        return False
    if locked.key == GUARD_KEY and locked.cluster is not None:
        release_guard(cluster=locked.cluster, actor=actor, reason=reason)
        return True
    _resolve(locked, actor)
    _audit(locked, "alert.resolve", actor, reason)
    return True


@transaction.atomic
def acknowledge_alert(*, alert: Alert, actor: str, note: str = "") -> bool:
    """Say that a person looks after it: it counts no more, and ends when its condition does. False where it is late."""
    done = Alert.objects.filter(pk=alert.pk, resolved_at__isnull=True, acknowledged_at__isnull=True).update(
        acknowledged_at=timezone.now(), acknowledged_by=actor[:200], note=note
    )
    if not done:
        return False
    _announce(alert, "acknowledged")
    _audit(alert, "alert.acknowledge", actor, note)
    return True


@transaction.atomic
def hand_back_alert(*, alert: Alert, actor: str, reason: str = "") -> bool:
    done = Alert.objects.filter(pk=alert.pk, resolved_at__isnull=True, acknowledged_at__isnull=False).update(
        acknowledged_at=None, acknowledged_by="", note=""
    )
    if not done:
        return False
    _announce(alert, "handed_back")
    _audit(alert, "alert.hand_back", actor, reason)
    return True


def _audit(alert: Alert, action: str, actor: str, reason: str) -> None:
    audit.append(
        chain=audit.PLATFORM_CHAIN if alert.cluster_id is None else audit.cluster_chain(alert.cluster_id),
        actor=actor,
        action=action,
        object_type="alert",
        object_id=alert.pk,
        object_label=alert.key,
        cluster_id=alert.cluster_id,
        reason=reason,
        before={"message": alert.message},
    )


def _resolve(alert: Alert, actor: str) -> None:
    alert.resolved_at, alert.resolved_by = timezone.now(), actor[:200]
    alert.save(update_fields=["resolved_at", "resolved_by"])
    _announce(alert, "resolved")


def _announce(alert: Alert, what: str) -> None:
    about = live.About("alert", alert.key, what)
    transaction.on_commit(
        lambda: live.publish("alerts", alert.key, cluster_id=alert.cluster_id, about=about), robust=True
    )
