"""The Lease that keeps a second installation out: judged by whether it changes, never by what clocks say."""

from __future__ import annotations

import time

import pytest

from tests.waiting import until
from tidesched_web.clusters.kubernetes.client import KubernetesClient
from tidesched_web.clusters.kubernetes.installation_lease import InstallationLease
from tidesched_web.clusters.kubernetes.paths import LEASE
from tidesched_web.clusters.kubernetes.verbs import LEASE_NAME, LEASE_NAMESPACE
from tidesched_web.clusters.kubernetes.writes import ClusterWrites

CLOCK = "tidesched_web.clusters.kubernetes.installation_lease.time.time"


@pytest.fixture
def free(client: KubernetesClient) -> KubernetesClient:
    client.send("DELETE", LEASE.path(LEASE_NAMESPACE, LEASE_NAME))
    return client


@pytest.mark.parametrize("skew", [-3600.0, 3600.0])
def test_clocks_that_differ_change_nothing(
    free: KubernetesClient, monkeypatch: pytest.MonkeyPatch, skew: float
) -> None:
    ours, other = InstallationLease("ours", seconds=2), InstallationLease("other", seconds=2)
    assert ours.hold(free).held
    wall = time.time
    for _ in range(20):
        monkeypatch.setattr(CLOCK, lambda: wall() + skew)
        assert not other.hold(free).held
        monkeypatch.setattr(CLOCK, wall)
        assert ours.hold(free).held
    assert until(lambda: other.hold(free).held)
    assert (ours.hold(free).held, ours.hold(free).holder) == (False, "other")


def test_who_does_not_hold_it_writes_nothing(free: KubernetesClient, namespace: str) -> None:
    ours, other = InstallationLease("ours", seconds=60), InstallationLease("other", seconds=60)
    assert ours.hold(free).held
    answer = ClusterWrites(free, lease=other).delete_pod(namespace, "none", uid="u")
    assert (answer.reason, "held by ours" in answer.message) == ("NotHeld", True)
    assert ClusterWrites(free, lease=ours).delete_pod(namespace, "none", uid="u").reason == "NotFound"


def test_two_processes_of_one_installation_share_it(free: KubernetesClient) -> None:
    first, second = InstallationLease("ours", seconds=60), InstallationLease("ours", seconds=60)
    assert first.hold(free).held
    assert second.hold(free).held
    assert first.hold(free).held
