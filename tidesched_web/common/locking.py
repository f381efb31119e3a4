"""The lock order of every transaction, in one place; two transactions that follow it cannot deadlock.

1. the **quota tree** row of the cluster (``lock_tree``): every quota write takes it first;
2. the **lease** row of the cluster (``lock_lease``): a session's writes happen only while the epoch still holds;
3. the **rows** themselves, in order of their primary key;
4. the **audit head** of the chain, last of all (``audit.services.append``): locked early it would serialise everybody
   for the whole transaction.

No transaction takes an earlier lock while holding a later one.
"""

from typing import TypeVar

from django.db import connection
from django.db.models import Model

_M = TypeVar("_M", bound=Model)


class NotInTransaction(RuntimeError):
    """A row lock outside a transaction would be released before it protects anything."""


def require_transaction() -> None:
    if not connection.in_atomic_block:
        raise NotInTransaction("this must be called inside transaction.atomic()")


def lock_tree(cluster_id: int) -> int:
    require_transaction()
    with connection.cursor() as cursor:
        lock = "SELECT version FROM quota_quotatree WHERE cluster_id = %s FOR UPDATE"
        row = cursor.execute(lock, [cluster_id]).fetchone()
        if row is None:
            cursor.execute(
                "INSERT INTO quota_quotatree (cluster_id, version) VALUES (%s, 1) ON CONFLICT DO NOTHING", [cluster_id]
            )
            row = cursor.execute(lock, [cluster_id]).fetchone()
    assert row is not None
    return int(row[0])


def lock_row(model: type[_M], pk: int) -> _M:
    """Step 3; its keys stay free for references from other tables."""
    require_transaction()
    return model._base_manager.select_for_update(no_key=True).get(pk=pk)


def lock_lease(cluster_id: int, epoch: int, *, idle_seconds: float) -> bool:
    """Hold the lease row against a new holder until the transaction ends; False when ``epoch`` has passed already.

    The renewal updates the row too and must not wait: it touches no key, so ``FOR KEY SHARE`` lets it pass; takers
    lock ``FOR UPDATE`` first, which conflicts. A process that is stopped in the middle would keep takers out for ever,
    so the server ends its connection when the transaction idles for ``idle_seconds``: as long as a lease lasts.
    """
    require_transaction()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('idle_in_transaction_session_timeout', %s, true)", [f"{int(idle_seconds * 1000)}ms"]
        )
        cursor.execute(
            "SELECT epoch = %s AND expires_at > clock_timestamp() FROM scheduling_clusterlease "
            "WHERE cluster_id = %s FOR KEY SHARE",
            [epoch, cluster_id],
        )
        row = cursor.fetchone()
    return bool(row and row[0])
