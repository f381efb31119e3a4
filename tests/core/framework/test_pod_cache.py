"""The states of a pod that was placed, as a table; and sessions that hear late of their own binds."""

from __future__ import annotations

import pytest

from scheduler_core.framework import pod_cache
from scheduler_core.framework.pod_cache import TRANSITIONS, PodCache, PodEvent, PodState
from scheduler_core.model.errors import BrokenInvariant
from scheduler_core.model.memory import AssumedPod

ALLOWED = {
    "Initial": {"assume": "Assumed", "add": "Added"},
    "Assumed": {"finish": "Assumed", "forget": "Initial", "add": "Added", "expire": "Expired"},
    "Added": {"add": "Added", "remove": "Deleted"},
    "Expired": {"assume": "Assumed", "add": "Added"},
    "Deleted": {"assume": "Assumed", "add": "Added"},
}


@pytest.mark.parametrize("state", PodState)
@pytest.mark.parametrize("event", PodEvent)
def test_every_event_in_every_state(state, event):
    wanted = ALLOWED[state.value].get(event.value)
    if wanted is None:
        with pytest.raises(BrokenInvariant, match=f"a/b is {state.value}"):
            pod_cache.after(state, event, "a/b")
    else:
        assert pod_cache.after(state, event, "a/b").value == wanted
    assert len(TRANSITIONS) == sum(map(len, ALLOWED.values()))


def entry(pod="a/b"):
    return AssumedPod(pod=pod, node="n1", made=100.0)


def test_the_clock_starts_when_binding_is_finished():
    cache = PodCache()
    cache.assume(entry())
    assert cache.expire(1e9) == []
    cache.finish_binding("a/b", 110.0, 30.0)
    assert cache.expire(139.9) == []
    assert cache.expire(140.0) == ["a/b"]
    assert (cache.state("a/b"), "a/b" in cache) == (PodState.EXPIRED, False)


def test_forget_is_not_remove():
    cache = PodCache([entry()])
    with pytest.raises(BrokenInvariant):
        cache.remove("a/b")
    cache.forget("a/b")
    assert cache.state("a/b") is PodState.INITIAL
    cache.add("a/b")
    with pytest.raises(BrokenInvariant):
        cache.forget("a/b")
    cache.remove("a/b")
    assert cache.state("a/b") is PodState.DELETED


def test_what_expired_and_shows_up_is_added_again():
    cache = PodCache([AssumedPod(pod="a/b", node="n1", made=0.0, expires=10.0)])
    cache.expire(10.0)
    cache.add("a/b")
    assert cache.state("a/b") is PodState.ADDED


def test_the_dump_is_sorted_and_can_be_read_again():
    cache = PodCache()
    for name in ("a/c", "a/b"):
        cache.assume(entry(name))
    assert [kept.pod for kept in PodCache(cache.dump()).dump()] == ["a/b", "a/c"]
