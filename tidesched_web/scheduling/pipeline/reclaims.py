import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from django.db import connection
from django.utils import timezone

from tidesched_web.audit import services as audit
from tidesched_web.common.actors import SCHEDULER
from tidesched_web.engine.model import Reclaim as DecidedReclaim
from tidesched_web.engine.model import Result, Snapshot, cards_to_json
from tidesched_web.quota.models import Queue
from tidesched_web.quota.tide_selectors import BaseQuota
from tidesched_web.scheduling.models import Reclaim, ReclaimState, ReclaimVictim, Session
from tidesched_web.scheduling.pipeline import receipts


class QueueOwner(msgspec.Struct, frozen=True):
    id: int
    tenant_id: int | None


def queue_owners(cluster_id: int) -> dict[str, QueueOwner]:
    rows = Queue.objects.filter(cluster_id=cluster_id).values_list(
        "name", "pk", "tenant_id", "project__tenant_id", "business_line__tenant_id"
    )
    return {name: QueueOwner(pk, tenant or project or line) for name, pk, tenant, project, line in rows}


def write(
    result: Result, snapshot: Snapshot, session: Session, *, owners: dict[str, QueueOwner], state: ReclaimState
) -> list[Reclaim]:
    wall = timezone.now()
    promised = _promised_pods(result, snapshot)
    bases = receipts.bases(result.reclaims, session.cluster, session.now)
    rows = [
        Reclaim(
            cluster_id=session.cluster_id, session=session, at=session.now, wall_at=wall, action=reclaim.action,
            state=state, reclaimer=reclaim.reclaimer, queue_id=_id(owners, reclaim.queue), queue_name=reclaim.queue,
            needed=reclaim.needed.to_json(), freed=reclaim.freed.to_json(),
            work_lost_card_seconds=sum(victim.work_lost_card_seconds for victim in reclaim.victims),
            rule=reclaim.rule[:200], votes=msgspec.to_builtins(reclaim.votes),
            refused=msgspec.to_builtins(reclaim.refused),
            receipt=_receipt(reclaim, bases, owners),
            promised_pods=promised.get(reclaim.reclaimer, []),
        )
        for reclaim in result.reclaims
    ]  # fmt: skip
    Reclaim.objects.bulk_create(rows)
    ReclaimVictim.objects.bulk_create(
        ReclaimVictim(
            reclaim=row, gang=victim.gang, queue_id=_id(owners, victim.queue), queue_name=victim.queue,
            pods=list(victim.pods), cards=_counts(victim.cards),
            work_lost_card_seconds=victim.work_lost_card_seconds,
        )
        for row, reclaim in zip(rows, result.reclaims, strict=True)
        for victim in reclaim.victims
    )  # fmt: skip
    return rows


def _receipt(reclaim: DecidedReclaim, bases: dict[str, BaseQuota], owners: dict[str, QueueOwner]) -> Any:
    document = receipts.document(reclaim, bases)
    for part in ("queues", "candidates"):
        for row in document[part]:
            row["queue_id"] = _id(owners, row["queue"])
    return document | {"victims": {victim.gang: receipts.cost(victim) for victim in reclaim.victims}}


def append_to_audit(rows: Sequence[Reclaim], decided: Sequence[DecidedReclaim], owners: dict[str, QueueOwner]) -> None:
    """One audit entry for each reclaim. Last in its transaction: it locks the chain's head."""
    for row, reclaim in zip(rows, decided, strict=True):
        names = [reclaim.queue, *(victim.queue for victim in reclaim.victims)]
        entry = audit.append(
            chain=audit.cluster_chain(row.cluster_id),
            actor=SCHEDULER,
            action=f"{reclaim.action}.decide",
            object_type="reclaim",
            object_id=row.pk,
            object_label=reclaim.reclaimer,
            cluster_id=row.cluster_id,
            tenant_ids={owner.tenant_id for name in names if (owner := owners.get(name)) and owner.tenant_id},
            reason=reclaim.rule,
            after={
                "reclaimer": reclaim.reclaimer,
                "queue": reclaim.queue,
                "needed": row.needed,
                "freed": row.freed,
                "victims": [
                    {
                        "gang": victim.gang,
                        "queue": victim.queue,
                        "pods": list(victim.pods),
                        "cards": _counts(victim.cards),
                        **receipts.cost(victim),
                    }
                    for victim in reclaim.victims
                ],
                "votes": row.votes,
                **without_ids(row.receipt),
                "session": row.session_id,
            },
        )
        row.audit_entry_id = entry.pk
    Reclaim.objects.bulk_update(rows, ["audit_entry_id"])


def without_ids(receipt: dict[str, Any]) -> dict[str, Any]:
    """The part of a receipt that the audit entry holds too; the cost of victims stands beside each of them."""
    parts = {
        part: [{name: value for name, value in row.items() if name != "queue_id"} for row in receipt[part]]
        for part in ("queues", "candidates")
    }
    return {**parts, "more_candidates": receipt["more_candidates"]}


def begin(ids: Iterable[int]) -> None:
    Reclaim.objects.filter(pk__in=list(ids), state=ReclaimState.DECIDED).update(state=ReclaimState.EVICTING)


def begun(cluster_id: int) -> list[int]:
    states = (ReclaimState.DECIDED, ReclaimState.EVICTING)
    return list(Reclaim.objects.filter(cluster_id=cluster_id, state__in=states).values_list("pk", flat=True))


_SETTLE = """
WITH standing AS (
    SELECT d.reclaim_id AS id, bool_and(d.state = 'done') AS whole, bool_or(d.state = 'done') AS some,
           bool_or(d.state IN ('decided', 'sending')) AS open
    FROM scheduling_reclaim r JOIN scheduling_decision d ON d.session_id = r.session_id AND d.reclaim_id = r.id
    WHERE r.id = ANY(%(ids)s)
    GROUP BY d.reclaim_id
)
UPDATE scheduling_reclaim r
SET state = CASE WHEN s.whole THEN 'promised' WHEN s.some THEN 'partial' ELSE 'cancelled' END,
    promised_at = CASE WHEN s.whole THEN %(at)s ELSE r.promised_at END
FROM standing s
WHERE r.id = s.id AND NOT s.open AND r.state IN ('decided', 'evicting', 'partial')
"""


def settle(ids: Iterable[int | None], *, at: dt.datetime) -> None:
    """All evictions made = promised, some = partial, none = cancelled; while one is still open, nothing."""
    known = sorted({id_ for id_ in ids if id_ is not None})
    if known:
        with connection.cursor() as cursor:
            cursor.execute(_SETTLE, {"ids": known, "at": at})


def note_ended(pods: Iterable[tuple[int, str]]) -> None:
    ended: dict[int, set[str]] = {}
    for reclaim_id, pod in pods:
        ended.setdefault(reclaim_id, set()).add(pod)
    for victim in ReclaimVictim.objects.filter(reclaim_id__in=ended) if ended else ():
        left = [pod for pod in victim.pods if pod in ended[victim.reclaim_id] or pod in victim.ended]
        if left != victim.ended:
            victim.ended = left
            victim.save(update_fields=["ended"])


def follow(snapshot: Snapshot, *, cluster_id: int, at: dt.datetime, before_session: int) -> list[int]:
    waiting = (
        Reclaim.objects.filter(
            cluster_id=cluster_id,
            state__in=(ReclaimState.PROMISED, ReclaimState.PARTIAL),
            session_id__lt=before_session,
        )
        .exclude(state=ReclaimState.PARTIAL, promised_pods=[])
        .only("pk", "promised_pods", "state")
    )
    pods = {pod.key: pod for pod in snapshot.pods}
    running, gone = [], []
    for reclaim in waiting:
        there = [pods[key] for key in reclaim.promised_pods if key in pods]
        if not there:
            gone.append(reclaim.pk)
        elif all(pod.started is not None or pod.finished for pod in there):
            running.append(reclaim.pk)
    if running:
        Reclaim.objects.filter(pk__in=running).update(state=ReclaimState.DONE, running_at=at)
    if gone:
        Reclaim.objects.filter(pk__in=gone, state=ReclaimState.PROMISED).update(state=ReclaimState.LEFT)
        # A partial one stays what it was; without pods to wait for it is not looked at again.
        Reclaim.objects.filter(pk__in=gone, state=ReclaimState.PARTIAL).update(promised_pods=[])
    return running + gone


def _promised_pods(result: Result, snapshot: Snapshot) -> dict[str, list[str]]:
    pipelined = {bind.pod for bind in result.pipelined}
    found: dict[str, list[str]] = {reclaim.reclaimer: [] for reclaim in result.reclaims}
    for pod in snapshot.pods:
        if pod.key in pipelined and pod.group_key in found:
            found[pod.group_key].append(pod.key)
    return found


def _counts(cards: dict[str, int]) -> dict[str, float]:
    return {card: cards_to_json(milli) for card, milli in sorted(cards.items()) if milli}


def _id(owners: dict[str, QueueOwner], name: str) -> int | None:
    owner = owners.get(name)
    return owner.id if owner else None
