"""Own writes that the cache has not shown yet, and failpoints whose names are checked."""

from __future__ import annotations

import pytest

from tidesched_web.engine.model import GangPhase, Pod, PodGroup, Snapshot
from tidesched_web.scheduling.models import DecisionKind
from tidesched_web.scheduling.pipeline import assumed as module
from tidesched_web.scheduling.pipeline import failpoints
from tidesched_web.scheduling.pipeline.assumed import Assumed
from tidesched_web.scheduling.pipeline.decisions import Draft


def bind(uid: str = "1") -> Draft:
    return Draft(kind=DecisionKind.BIND, gang="a/g", target="a/p", uid=uid, node="n", detail={"card_indices": [3]})


def pod(**fields) -> Pod:
    return Pod(namespace="a", name="p", uid="1", **fields)


def test_a_bind_is_laid_over_until_the_cache_shows_it() -> None:
    assumed = Assumed()
    assumed.add(bind(), at=5.0)
    (seen,) = assumed.lay_over(Snapshot(pods=(pod(),))).pods
    assert (seen.node, seen.card_indices) == ("n", (3,))
    assert assumed.lay_over(Snapshot(pods=(pod(node="n"),))).pods == (pod(node="n"),)
    assert len(assumed) == 0


def test_an_eviction_is_laid_over_as_leaving() -> None:
    assumed = Assumed()
    assumed.add(Draft(kind=DecisionKind.EVICT, gang="a/g", target="a/p", uid="1", node="n"), at=5.0)
    (seen,) = assumed.lay_over(Snapshot(pods=(pod(node="n"),))).pods
    assert seen.deleted == 5.0
    assumed.lay_over(Snapshot())
    assert len(assumed) == 0


def test_another_pod_of_the_same_name_is_left_alone() -> None:
    assumed = Assumed()
    assumed.add(bind(uid="0"), at=5.0)
    assert assumed.lay_over(Snapshot(pods=(pod(),))).pods == (pod(),)
    assert len(assumed) == 0


def test_a_phase_is_laid_over() -> None:
    assumed = Assumed()
    draft = Draft(
        kind=DecisionKind.STATUS, gang="a/g", target="a/g", uid="u", detail={"phase": "Inqueue", "conditions": []}
    )
    assumed.add(draft, at=5.0)
    group = PodGroup(namespace="a", name="g", uid="u")
    assert assumed.lay_over(Snapshot(pod_groups=(group,))).pod_groups[0].phase is GangPhase.INQUEUE


def test_an_assumption_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EXPIRE_SECONDS", -1.0)
    assumed = Assumed()
    assumed.add(bind(), at=5.0)
    assert assumed.lay_over(Snapshot(pods=(pod(),))).pods == (pod(),)


def test_a_failpoint_that_nobody_can_reach_is_refused() -> None:
    with pytest.raises(failpoints.BadFailpoint, match="no failpoint"):
        failpoints.parse("bind.setn=kill9")
    with pytest.raises(failpoints.BadFailpoint, match="action"):
        failpoints.parse("bind.sent=explode")
    assert set(failpoints.parse("bind.sent=raise; evict.sent=sleep:2")) == {"bind.sent", "evict.sent"}
