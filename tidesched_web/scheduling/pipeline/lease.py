"""Expiry is by the database's clock; the holder counts from *before* it asked, so it never believes in it longer."""

import logging
import threading
from dataclasses import dataclass, field

from django.db import Error as DatabaseError
from django.db import connection, transaction

from tidesched_web.common.locking import lock_lease
from tidesched_web.scheduling.pipeline import timing

_log = logging.getLogger(__name__)

_TAKE = """
WITH free AS (
    SELECT cluster_id FROM scheduling_clusterlease
    WHERE cluster_id = %(cluster)s AND (expires_at IS NULL OR expires_at <= clock_timestamp())
    FOR UPDATE SKIP LOCKED
)
UPDATE scheduling_clusterlease AS lease
SET holder = %(holder)s, epoch = greatest(lease.epoch, %(above)s) + 1, renewed_at = clock_timestamp(),
    expires_at = clock_timestamp() + make_interval(secs => %(seconds)s)
FROM free WHERE lease.cluster_id = free.cluster_id
RETURNING lease.epoch
"""
_RENEW = """
UPDATE scheduling_clusterlease
SET renewed_at = clock_timestamp(), expires_at = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE cluster_id = %(cluster)s AND holder = %(holder)s AND epoch = %(epoch)s AND expires_at > clock_timestamp()
"""
_RELEASE = """
UPDATE scheduling_clusterlease SET expires_at = clock_timestamp(), holder = ''
WHERE cluster_id = %(cluster)s AND holder = %(holder)s AND epoch = %(epoch)s
"""


class LeaseLost(RuntimeError):
    """The lease ran out or another process has it: nothing more may be sent or written under this epoch."""


@dataclass(slots=True)
class Lease:
    """A lease that this process took. ``deadline`` is in the pipeline's monotonic seconds."""

    cluster_id: int
    holder: str
    epoch: int
    deadline: float
    _lost: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def activity(self) -> str:
        return f"sessions of cluster {self.cluster_id}"

    @property
    def lost(self) -> bool:
        return self._lost.is_set() or timing.monotonic() >= self.deadline

    def lose(self) -> None:
        self._lost.set()

    def require(self, seconds: float = timing.REQUEST_SECONDS + timing.SKEW_SECONDS) -> None:
        """``seconds`` more: long enough for a request to take effect or fail."""
        if self._lost.is_set() or timing.monotonic() + seconds >= self.deadline:
            raise LeaseLost(f"the lease of cluster {self.cluster_id}, epoch {self.epoch}, is over")


def take(cluster_id: int, holder: str, *, above: int = 0) -> Lease | None:
    asked = timing.monotonic()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO scheduling_clusterlease (cluster_id, holder, epoch) VALUES (%s, '', 0) ON CONFLICT DO NOTHING",
            [cluster_id],
        )
        with transaction.atomic():
            # An epoch that a crash of the server forgets would be given out twice.
            cursor.execute("SET LOCAL synchronous_commit = on")
            cursor.execute(
                _TAKE, {"cluster": cluster_id, "holder": holder, "seconds": timing.LEASE_SECONDS, "above": above}
            )
            row = cursor.fetchone()
    if row is None:
        return None
    return Lease(cluster_id, holder, int(row[0]), asked + timing.LEASE_SECONDS)


def renew(lease: Lease) -> bool:
    asked = timing.monotonic()
    with connection.cursor() as cursor:
        cursor.execute(
            _RENEW,
            {
                "cluster": lease.cluster_id,
                "holder": lease.holder,
                "epoch": lease.epoch,
                "seconds": timing.LEASE_SECONDS,
            },
        )
        if cursor.rowcount != 1:
            lease.lose()
            return False
    lease.deadline = asked + timing.LEASE_SECONDS
    return True


def hold_row(lease: Lease) -> None:
    """Keep the lease row against takers until the transaction ends; with LeaseLost nothing of it may stay."""
    if not lock_lease(lease.cluster_id, lease.epoch, idle_seconds=timing.LEASE_SECONDS):
        lease.lose()
        raise LeaseLost(f"the lease of cluster {lease.cluster_id} was taken by another process")


def release(lease: Lease) -> None:
    lease.lose()
    with connection.cursor() as cursor:
        cursor.execute(_RELEASE, {"cluster": lease.cluster_id, "holder": lease.holder, "epoch": lease.epoch})


def keep(leases: list[Lease]) -> None:
    for lease in leases:
        try:
            if not renew(lease):
                _log.warning("lost the lease of cluster %s (epoch %s)", lease.cluster_id, lease.epoch)
        except DatabaseError as error:
            _log.warning("cannot renew the lease of cluster %s: %s", lease.cluster_id, str(error).strip())
            connection.close()
