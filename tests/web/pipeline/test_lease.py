"""The row lease: one holder, growing epochs, an honest deadline."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, transaction

from tidesched_web.clusters.models import Cluster
from tidesched_web.common.locking import NotInTransaction, lock_lease
from tidesched_web.scheduling.models import ClusterLease
from tidesched_web.scheduling.pipeline import lease, timing
from tidesched_web.scheduling.pipeline.lease import Lease, LeaseLost

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="east", slug="east", api_url="https://10.0.0.1:6443")


def expire() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduling_clusterlease SET expires_at = clock_timestamp() - interval '1 ms'")


def taken(cluster: Cluster, holder: str) -> Lease:
    held = lease.take(cluster.pk, holder)
    assert held is not None
    return held


def test_one_holder_at_a_time_and_each_with_a_higher_epoch(cluster: Cluster) -> None:
    first = taken(cluster, "a")
    assert lease.take(cluster.pk, "b") is None
    assert lease.renew(first)
    expire()
    second = taken(cluster, "b")
    assert (first.epoch, second.epoch) == (1, 2)
    assert not lease.renew(first)
    assert first.lost
    with pytest.raises(LeaseLost):
        first.require(0)
    lease.release(first)  # of no effect: another process has it by now
    assert ClusterLease.objects.get().holder == "b"


def test_a_lease_that_ran_out_is_not_renewed_even_if_nobody_took_it(cluster: Cluster) -> None:
    held = taken(cluster, "a")
    expire()
    assert not lease.renew(held)


def test_a_release_lets_the_next_one_in_at_once(cluster: Cluster) -> None:
    lease.release(taken(cluster, "a"))
    assert taken(cluster, "b").epoch == 2


def test_a_request_needs_enough_of_the_lease_to_be_left(cluster: Cluster) -> None:
    held = taken(cluster, "a")
    held.require()
    held.deadline = timing.monotonic() + timing.REQUEST_SECONDS / 2
    assert not held.lost
    with pytest.raises(LeaseLost):
        held.require()


def test_whoever_writes_keeps_takers_out_until_the_commit_but_not_the_renewal(cluster: Cluster) -> None:
    held = taken(cluster, "a")
    found: dict[str, object] = {}

    def others() -> None:
        try:
            found["renewed"] = lease.renew(held)
            expire()
            found["taken"] = lease.take(cluster.pk, "b")
        finally:
            connection.close()

    with transaction.atomic():
        assert lock_lease(cluster.pk, held.epoch, idle_seconds=15)
        thread = threading.Thread(target=others)
        thread.start()
        thread.join(60)
        assert found == {"renewed": True, "taken": None}
    assert taken(cluster, "b").epoch == 2
    with transaction.atomic():
        assert not lock_lease(cluster.pk, held.epoch, idle_seconds=15)


def test_of_many_takers_one_wins(cluster: Cluster) -> None:
    winners = []

    def take(name: str) -> None:
        try:
            if lease.take(cluster.pk, name) is not None:
                winners.append(name)
        finally:
            connection.close()

    threads = [threading.Thread(target=take, args=(str(index),)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(winners) == 1
    assert ClusterLease.objects.get().epoch == 1


def test_a_lock_outside_a_transaction_is_refused(cluster: Cluster) -> None:
    with pytest.raises(NotInTransaction):
        lock_lease(cluster.pk, 1, idle_seconds=15)
