import datetime as dt
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.utils import timezone

from tidesched_web.audit import services as audit
from tidesched_web.common.actors import OBSERVER
from tidesched_web.engine.gangs import gang_of
from tidesched_web.engine.model import Amount, Snapshot
from tidesched_web.scheduling.models import ObservedEviction, Reclaim, ReclaimSource, ReclaimState, ReclaimVictim
from tidesched_web.scheduling.pipeline.observed_instead import OwnDecisions, instead_of
from tidesched_web.scheduling.pipeline.observed_losses import Gangs, Siblings
from tidesched_web.scheduling.pipeline.observed_receipts import Books, joined
from tidesched_web.scheduling.pipeline.reclaims import QueueOwner, without_ids
from tidesched_web.scheduling.pipeline.sightings import Sighting
from tidesched_web.scheduling.pipeline.work import Work
from tidesched_web.workloads import services as workloads

# Pods that leave for the same gang within this time are one reclaim.
TOGETHER = dt.timedelta(seconds=30)
# So many earlier restarts of the gangs at hand are looked through for pods whose work was counted with them.
MOST_EARLIER = 200


@dataclass
class Evicted:
    sighting: Sighting
    gang: str
    queue: str = ""
    amount: Amount = field(default_factory=Amount)
    seconds: float = 0.0
    # Members of the gang that were not evicted and restart with it.
    siblings: Siblings = field(default_factory=Siblings)
    reclaimer: str = ""
    evidence: str = ""
    row: int | None = None
    asked_at: float = float("-inf")
    seen_at: float = field(default_factory=time.monotonic)

    @property
    def lost(self) -> float:
        return self.seconds * sum(self.amount.cards.values()) / 1000 + self.siblings.card_seconds

    @property
    def together(self) -> tuple[str, str, str, str]:
        one = self.sighting
        return str(one.made_by), one.action, self.reclaimer, "" if self.reclaimer else self.gang


class Writer:
    def __init__(self, work: Work, own: OwnDecisions, *, before: Snapshot | None) -> None:
        self._work, self._own, self._before = work, own, before
        self._owners: dict[str, QueueOwner] = work.context.owners()
        self._facts: list[tuple[Reclaim, audit.Fact]] = []
        self._wall = timezone.now()
        self._evicted: list[Evicted] = []

    @cached_property
    def _books(self) -> Books:
        return Books(self._work, self._before, self._evicted, self._owners)

    def write(self, found: list[Evicted], named: list[Evicted]) -> int:
        self._evicted = new = self._not_yet_seen(found)
        self._count_siblings(new)
        groups: dict[tuple[str, str, str, str], list[Evicted]] = {}
        for one in new:
            groups.setdefault(one.together, []).append(one)
        for _key, members in sorted(groups.items()):
            self._group(members)
        for row_id in sorted({one.row for one in named if one.row is not None}):
            self._enter_name(row_id, [one for one in named if one.row == row_id])
        self._append()
        return len(new)

    def _not_yet_seen(self, found: list[Evicted]) -> list[Evicted]:
        """The holder of the lease row is alone here, so what stands in the table stays so until the commit."""
        uids = [one.sighting.uid for one in found]
        seen = set(
            ObservedEviction.objects.filter(cluster_id=self._work.cluster.pk, uid__in=uids).values_list(
                "uid", flat=True
            )
        )
        return [one for one in found if one.sighting.uid not in seen]

    def _count_siblings(self, new: list[Evicted]) -> None:
        """The siblings' loss stands with the gang's first pod, and is counted once."""
        if not new:
            return
        names, now = {one.gang for one in new}, self._work.now.timestamp()
        gangs = Gangs(names, self._before or self._work.snapshot, now=now, first=self._before is None)
        seen, counted = self._counted(names, gangs.uids())
        evicted = {one.sighting.uid for one in new}
        for one in new:
            if one.sighting.uid in counted:
                one.seconds = 0.0
            if one.gang in names:
                names.remove(one.gang)
                one.siblings = gangs.siblings(one.gang, evicted, seen, counted)

    def _counted(self, gangs: Collection[str], uids: Collection[str]) -> tuple[set[str], set[str]]:
        cluster_id = self._work.cluster.pk
        seen = ObservedEviction.objects.filter(cluster_id=cluster_id, uid__in=uids).values_list("uid", flat=True)
        rows = ReclaimVictim.objects.filter(
            reclaim__cluster_id=cluster_id, reclaim__source=ReclaimSource.OBSERVED, gang__in=gangs
        ).exclude(restarted=[])
        newest = rows.order_by("-id").values_list("restarted", flat=True)[:MOST_EARLIER]
        return set(seen), {uid for restarted in newest for uid in restarted}

    def _group(self, members: list[Evicted]) -> None:
        row = self._recent(members[0])
        first = row is None
        if row is None:
            row = self._new_row(members)
        else:
            self._extend(row, members)
        for one in members:
            one.row = row.pk
        self._write_victims(row, members)
        ObservedEviction.objects.bulk_create(
            ObservedEviction(
                cluster_id=self._work.cluster.pk, uid=one.sighting.uid, pod=one.sighting.pod, reclaim=row,
                evidence=one.evidence, wall_at=self._wall,
            )
            for one in members
        )  # fmt: skip
        self._facts.append((row, self._fact(row, members, "observe" if first else "observe_more")))

    def _recent(self, one: Evicted) -> Reclaim | None:
        rows = Reclaim.objects.filter(
            cluster_id=self._work.cluster.pk, source=ReclaimSource.OBSERVED, made_by=one.sighting.made_by,
            action=one.sighting.action, reclaimer=one.reclaimer, wall_at__gte=self._wall - TOGETHER,
        )  # fmt: skip
        if not one.reclaimer:
            rows = rows.filter(victims__gang=one.gang)
        return rows.order_by("-id").first()

    def _new_row(self, members: list[Evicted]) -> Reclaim:
        work, one = self._work, members[0]
        queue, needed, promised = self._reclaimer(one.reclaimer)
        owner = self._owners.get(queue)
        decided = self._own.before([member.sighting.pod for member in members])
        return Reclaim.objects.create(
            cluster_id=work.cluster.pk, session=work.session, at=work.now, wall_at=self._wall,
            source=ReclaimSource.OBSERVED, made_by=one.sighting.made_by, action=one.sighting.action,
            state=ReclaimState.PROMISED if promised else ReclaimState.SEEN, reclaimer=one.reclaimer,
            queue_id=owner.id if owner else None, queue_name=queue, needed=needed.to_json(),
            freed=_sum(members).to_json(), work_lost_card_seconds=sum(member.lost for member in members),
            rule=one.sighting.message, promised_pods=promised, instead=instead_of(decided, one.reclaimer),
            receipt=self._books.receipt(members, one.reclaimer, queue, needed),
        )  # fmt: skip

    def _extend(self, row: Reclaim, members: list[Evicted]) -> None:
        more: dict[str, Any] = _sum(members).to_json()
        cards = dict(row.freed.get("cards") or {})
        for card, count in _cards(more).items():
            cards[card] = cards.get(card, 0) + count
        row.freed = {
            "cpu_milli": row.freed.get("cpu_milli", 0) + more["cpu_milli"],
            "memory_bytes": row.freed.get("memory_bytes", 0) + more["memory_bytes"],
            "cards": cards,
        }
        row.work_lost_card_seconds += sum(member.lost for member in members)
        later = self._books.receipt(members, row.reclaimer, row.queue_name, Amount())
        row.receipt = joined(row.receipt, later)
        row.save(update_fields=["freed", "work_lost_card_seconds", "receipt"])

    def _write_victims(self, row: Reclaim, members: list[Evicted]) -> None:
        there = {victim.gang: victim for victim in ReclaimVictim.objects.filter(reclaim=row)}
        for gang in sorted({one.gang for one in members}):
            own = [one for one in members if one.gang == gang]
            victim = there.get(gang) or ReclaimVictim(
                reclaim=row, gang=gang, queue_id=self._id(own[0].queue), queue_name=own[0].queue, pods=[], cards={}
            )
            victim.pods = sorted({*victim.pods, *(one.sighting.pod for one in own)})
            for card, count in _cards(_sum(own).to_json()).items():
                victim.cards[card] = victim.cards.get(card, 0) + count
            victim.work_lost_card_seconds += sum(one.lost for one in own)
            gone = {one.sighting.uid for one in own}
            restarting = [*victim.restarted, *(uid for one in own for uid in one.siblings.uids)]
            victim.restarted = [uid for uid in restarting if uid not in gone]
            victim.save()
            workloads.note_fall(
                cluster_id=self._work.cluster.pk, key=gang, reclaim_id=row.pk, made_by=str(row.made_by),
                pods=len(own), at=self._work.now, wall_at=self._wall, session_id=self._work.session.pk,
            )  # fmt: skip

    def _enter_name(self, row_id: int, members: list[Evicted]) -> None:
        """The cluster has named the reclaimer meanwhile; of two names none is right for the whole."""
        names = {one.reclaimer for one in members}
        row = Reclaim.objects.select_for_update().filter(pk=row_id, reclaimer="").first()
        if row is None or len(names) != 1:
            return
        row.reclaimer = names.pop()
        queue, needed, promised = self._reclaimer(row.reclaimer)
        row.queue_name, row.queue_id, row.needed = queue, self._id(queue), needed.to_json()
        row.receipt = joined(row.receipt, self._books.receipt([], row.reclaimer, queue, needed))
        row.promised_pods, row.state = promised, ReclaimState.PROMISED if promised else row.state
        if row.instead is not None:
            decided = self._own.before([one.sighting.pod for one in members])
            row.instead = instead_of(decided, row.reclaimer) or row.instead
        row.save()
        uids = [one.sighting.uid for one in members]
        ObservedEviction.objects.filter(reclaim=row, uid__in=uids).update(evidence=members[0].evidence)
        self._facts.append((row, self._fact(row, members, "name")))

    def _reclaimer(self, gang: str) -> tuple[str, Amount, list[str]]:
        snapshot = self._work.snapshot
        queue = next((group.queue for group in snapshot.pod_groups if group.key == gang), "")
        waiting = [
            pod for pod in snapshot.pods if gang and gang_of(pod) == gang and pod.deleted is None and not pod.started
        ]
        needed = Amount()
        for pod in waiting:
            cards = {pod.card.key or pod.card.resource: pod.card.milli} if pod.card else {}
            needed += Amount(pod.cpu_milli, pod.memory_mib, cards)
        return queue, needed, [pod.key for pod in waiting]

    def _id(self, queue: str) -> int | None:
        owner = self._owners.get(queue)
        return owner.id if owner else None

    def _fact(self, row: Reclaim, members: list[Evicted], verb: str) -> audit.Fact:
        queues = {row.queue_name, *(one.queue for one in members)}
        return audit.Fact(
            f"reclaim.{verb}",
            "reclaim",
            row.pk,
            row.reclaimer or "unknown",
            sorted({owner.tenant_id for name in queues if (owner := self._owners.get(name)) and owner.tenant_id}),
            None,
            {
                "made_by": str(members[0].sighting.made_by),
                "action": members[0].sighting.action,
                "reclaimer": row.reclaimer or "unknown",
                "queue": row.queue_name,
                "evidence": sorted({one.evidence or "none" for one in members}),
                "pods": [
                    {"pod": one.sighting.pod, "uid": one.sighting.uid, "gang": one.gang, "node": one.sighting.node}
                    for one in members
                ],
                "cards": _cards(_sum(members).to_json()),
                "needed": row.needed,
                "freed": row.freed,
                "victims": [_told(victim, row.receipt) for victim in row.victims.all()],
                "votes": [],
                **without_ids(row.receipt),
                "unknown": row.receipt["unknown"],
                "restarting_pods": sum(len(one.siblings.uids) for one in members),
                "work_lost_card_seconds": round(sum(one.lost for one in members), 3),
                "session": row.session_id,
            },
        )

    def _append(self) -> None:
        if not self._facts:
            return
        cluster_id = self._work.cluster.pk
        entries = audit.append_all(
            [fact for _row, fact in self._facts],
            chain=audit.cluster_chain(cluster_id),
            actor=OBSERVER,
            cluster_id=cluster_id,
            reason=self._facts[0][0].rule,
        )
        for (row, _fact), entry in zip(self._facts, entries, strict=True):
            Reclaim.objects.filter(pk=row.pk, audit_entry_id__isnull=True).update(audit_entry_id=entry.pk)


def _told(victim: ReclaimVictim, receipt: dict[str, Any]) -> dict[str, Any]:
    cost = receipt["victims"].get(victim.gang, {})
    return {
        "gang": victim.gang,
        "queue": victim.queue_name,
        "pods": victim.pods,
        "cards": victim.cards,
        **cost,
        "work_lost_card_seconds": round(victim.work_lost_card_seconds, 3),
    }


def _cards(amount: dict[str, Any]) -> dict[str, float]:
    return dict(amount["cards"])


def _sum(members: Iterable[Evicted]) -> Amount:
    total = Amount()
    for one in members:
        total += one.amount
    return total
