import datetime as dt

import msgspec

from tidesched_web.common.locking import require_transaction
from tidesched_web.engine.model import Result, Snapshot
from tidesched_web.engine.tide import QueueUse, Tide, measure, queue_use
from tidesched_web.scheduling.models import QueueUsage, TidePoint, UsageChange

_NOTHING = QueueUse(0, 0, 0, 0)
UNKNOWN = -1
# So often the tide is written although nothing moved: a longer silence means that no session ran.
TIDE_HEARTBEAT = dt.timedelta(minutes=5)


class UsageRecorder:
    def __init__(self, *, cluster_id: int) -> None:
        self.cluster_id = cluster_id
        self._queues: dict[tuple[int, str], QueueUse] = {}
        self._tide: dict[str, Tide] = {}
        self._tide_whole: dt.datetime | None = None

    def load(self) -> None:
        rows = QueueUsage.objects.filter(queue__cluster_id=self.cluster_id)
        self._queues = {
            (queue, card): QueueUse(*figures)
            for queue, card, *figures in rows.values_list(
                "queue_id", "card", "quota", "allocated", "inqueue", "elastic"
            )
        }
        self._tide = {}
        newest = TidePoint.objects.filter(cluster_id=self.cluster_id).order_by("card", "-id").distinct("card")
        for row in newest.values(*Tide.__struct_fields__):
            quota = UNKNOWN if row["quota"] is None else row["quota"]
            self._tide[row["card"]] = Tide(**row | {"quota": quota})

    def record_queues(
        self,
        snapshot: Snapshot,
        result: Result,
        *,
        sent: bool,
        queue_ids: dict[str, int],
        at: dt.datetime,
        wall_at: dt.datetime,
    ) -> list[int]:
        """What a session decided and did not send (``sent``) is used by no queue."""
        require_transaction()
        moved: dict[tuple[int, str], QueueUse] = {}
        for name, points in queue_use(snapshot, result, sent=sent).items():
            queue_id = queue_ids.get(name)
            if queue_id is None:
                continue
            for card, point in points.items():
                if self._queues.get((queue_id, card)) != point:
                    moved[queue_id, card] = point
            for key in self._queues:
                if key[0] == queue_id and key[1] not in points and self._queues[key] != _NOTHING:
                    moved[key] = _NOTHING
        if not moved:
            return []
        UsageChange.objects.bulk_create(
            (
                UsageChange(
                    wall_at=wall_at, at=at, cluster_id=self.cluster_id, queue_id=queue, card=card,
                    **msgspec.structs.asdict(point),
                )
                for (queue, card), point in moved.items()
            ),
            batch_size=2000,
        )  # fmt: skip
        QueueUsage.objects.bulk_create(
            (
                QueueUsage(queue_id=queue, card=card, at=at, **msgspec.structs.asdict(point))
                for (queue, card), point in sorted(moved.items())
            ),
            update_conflicts=True,
            unique_fields=("queue", "card"),
            update_fields=("at", "quota", "allocated", "inqueue", "elastic"),
        )
        self._queues |= moved
        return sorted({queue for queue, _ in moved})

    def record_tide(self, snapshot: Snapshot, result: Result, *, at: dt.datetime, wall_at: dt.datetime) -> int:
        """Write the points of the card types whose figures moved, and now and then all of them; returns how many."""
        require_transaction()
        found = measure(snapshot, result)
        whole = self._tide_whole is None or wall_at - self._tide_whole >= TIDE_HEARTBEAT
        moved = found if whole else [tide for tide in found if self._tide.get(tide.card) != tide]
        self._tide_whole = wall_at if whole else self._tide_whole
        TidePoint.objects.bulk_create(
            TidePoint(cluster_id=self.cluster_id, at=at, wall_at=wall_at, **msgspec.structs.asdict(tide))
            for tide in moved
        )
        self._tide |= {tide.card: tide for tide in moved}
        return len(moved)
