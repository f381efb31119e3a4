"""Sessions against a real API server that fails in the middle: nothing is lost, nothing is done twice, all heals."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.kube.fault_proxy import Fault, FaultProxy
from tests.kube.real_stage import RealStage
from tests.waiting import until
from tests.web.pipeline.stage import NAMESPACE_NAME
from tidesched_web.clusters.kubernetes.client import ApiFailure, Unreachable
from tidesched_web.clusters.kubernetes.paths import JOB
from tidesched_web.scheduling.models import Decision, DecisionState, Reclaim, ReclaimState
from tidesched_web.scheduling.pipeline.session import StalePicture
from tidesched_web.scheduling.pipeline.settling import CannotSettle

pytestmark = pytest.mark.timeout(600)
_HEALED_SECONDS = 180.0
# What a session may say of a cluster that fails; the session thread says it on the page and tries again.
_SPOILT = (ApiFailure, Unreachable, CannotSettle, StalePicture)
GANG = 12


def go_on(stage: RealStage, check: object, seconds: float = _HEALED_SECONDS) -> None:
    """Sessions as their thread runs them, until ``check()``."""
    assert callable(check)

    until(lambda: not spoilt(stage) and check(), seconds)


def spoilt(stage: RealStage) -> bool:
    """True where there could be no session."""
    try:
        stage.session()
    except _SPOILT:
        return True
    return False


def effects(proxy: FaultProxy, part: str) -> Counter[str]:
    """How often each pod was bound or evicted for good."""
    return Counter(
        path.partition("?")[0]
        for method, path, code in proxy.requests
        if method == "POST" and part in path and 200 <= code < 300 and "dryRun" not in path
    )


def once(counts: Counter[str]) -> bool:
    return all(count == 1 for count in counts.values())


_BINDING = {
    "500": Fault(code=500, reason="InternalError", part="/binding", times=5),
    "429": Fault(code=429, reason="TooManyRequests", part="/binding", times=5, retry_after=1),
    "answers lost": Fault(lose_answer=True, part="/binding", times=5),
    "503 to all": Fault(code=503, reason="ServiceUnavailable", part="/binding", times=30),
    "slow": Fault(delay=5.5, part="/binding", times=2),
}
_EVICTING = {
    "500": Fault(code=500, reason="InternalError", part="/eviction", times=16),
    "429": Fault(code=429, reason="TooManyRequests", part="/eviction", times=3, retry_after=1),
    "answers lost": Fault(lose_answer=True, part="/eviction?dryRun", times=3),
}


@pytest.mark.parametrize("fault", _BINDING.values(), ids=list(_BINDING))
def test_a_gang_is_bound_whole_and_once(stage: RealStage, proxy: FaultProxy, fault: Fault) -> None:
    fault.seen = 0
    met = proxy.spoil(fault)
    stage.train("job", pods=GANG)
    go_on(stage, lambda: stage.running("job") == GANG)
    assert met.seen > 0
    assert once(effects(proxy, "/binding"))
    assert sum(effects(proxy, "/binding").values()) == GANG
    go_on(stage, lambda: not Decision.objects.filter(state__in=[DecisionState.DECIDED, DecisionState.SENDING]).exists())
    phases = {stage.group("job")["status"]["phase"]}
    go_on(stage, lambda: phases.add(stage.group("job")["status"]["phase"]) or "Running" in phases)


def test_a_gang_waits_for_a_server_that_is_gone(stage: RealStage, proxy: FaultProxy) -> None:
    stage.train("job", pods=GANG)
    go_on(stage, lambda: len(stage.pods("job")) == GANG or stage.bound("job"))
    proxy.vanish()
    until(lambda: spoilt(stage))
    proxy.start()
    go_on(stage, lambda: stage.running("job") == GANG)
    assert once(effects(proxy, "/binding"))


@pytest.mark.parametrize("fault", _EVICTING.values(), ids=list(_EVICTING))
def test_a_gang_falls_whole_and_once(stage: RealStage, proxy: FaultProxy, fault: Fault) -> None:
    stage.train("victim", pods=GANG)
    go_on(stage, lambda: stage.running("victim") == GANG)
    fault.seen = 0
    met = proxy.spoil(fault)
    stage.serve("web", replicas=8)
    go_on(stage, lambda: stage.running("web") == 8)
    assert met.seen > 0
    assert once(effects(proxy, "/eviction"))
    fallen = Decision.objects.filter(kind="evict", state="done").values("target").distinct().count()
    assert fallen == GANG, "the gang did not fall whole"
    go_on(stage, lambda: Reclaim.objects.filter(state=ReclaimState.DONE).exists())
    assert stage.bound("victim") in (0, GANG)


def test_a_member_that_is_deleted_underneath_is_not_mourned(stage: RealStage, proxy: FaultProxy) -> None:
    """The pod is gone when its binding arrives; its controller makes another one."""
    proxy.spoil(Fault(code=404, reason="NotFound", part="job-worker-0/binding", times=1))
    stage.train("job", pods=GANG)
    go_on(stage, lambda: stage.running("job") == GANG)
    assert stage.bound("job") == GANG


def test_a_gang_whose_owner_goes_leaves_nothing_behind(stage: RealStage, proxy: FaultProxy) -> None:
    stage.train("job", pods=GANG)
    go_on(stage, lambda: stage.running("job") == GANG)
    assert stage.client.send("DELETE", JOB.path(NAMESPACE_NAME, "job")).done
    stage.train("next", pods=16)
    go_on(stage, lambda: stage.running("next") == 16)
