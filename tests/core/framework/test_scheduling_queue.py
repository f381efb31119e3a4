"""The three queues and their moves, as a table."""

from __future__ import annotations

import pytest

from scheduler_core.framework.scheduling_queue import SchedulingQueue
from scheduler_core.model.queued_pod import QueuedPod, Where


def queue(*entries, **options):
    return SchedulingQueue(entries=[QueuedPod(pod=pod, **fields) for pod, fields in entries], **options)


def by_name(pod):
    return pod


def test_a_new_pod_is_active_and_the_best_one_is_popped_first():
    waiting = queue()
    waiting.add("b")
    waiting.add("a")
    waiting.add("c")
    order = {"c": 0, "a": 1, "b": 1}
    assert [waiting.pop(order.__getitem__) for _ in range(4)] == ["c", "a", "b", None]
    assert waiting.cycle == 3


@pytest.mark.parametrize(
    ("moved_at", "goes_to"), [(0, Where.UNSCHEDULABLE), (1, Where.BACKING_OFF), (2, Where.BACKING_OFF)]
)
def test_a_move_request_since_its_cycle_began_sends_a_pod_to_backoff(moved_at, goes_to):
    waiting = queue()
    waiting.add("a")
    waiting.pop(by_name)
    cycle = waiting.cycle
    waiting.move_cycle = moved_at
    waiting.add_unschedulable("a", cycle, now=10.0)
    assert waiting["a"].where is goes_to


@pytest.mark.parametrize(("attempts", "seconds"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (500, 10)])
def test_each_attempt_doubles_the_wait_up_to_the_longest(attempts, seconds):
    waiting = queue(("a", {"attempts": attempts, "tried": 100.0}))
    assert waiting.ready_at("a") == 100.0 + seconds


@pytest.mark.parametrize(
    ("now", "goes_to"),
    [(100.5, Where.BACKING_OFF), (101.9, Where.BACKING_OFF), (102.0, Where.ACTIVE), (500.0, Where.ACTIVE)],
)
def test_what_may_help_moves_a_pod_to_active_or_backoff_by_its_time(now, goes_to):
    waiting = queue(("a", {"where": Where.UNSCHEDULABLE, "attempts": 2, "tried": 100.0}))
    waiting.move_all(now)
    assert waiting["a"].where is goes_to


@pytest.mark.parametrize(
    ("entry", "now", "goes_to"),
    [
        ({"where": Where.BACKING_OFF, "attempts": 1, "tried": 100.0}, 100.9, Where.BACKING_OFF),
        ({"where": Where.BACKING_OFF, "attempts": 1, "tried": 100.0}, 101.0, Where.ACTIVE),
        ({"where": Where.UNSCHEDULABLE, "attempts": 1, "tried": 100.0}, 399.9, Where.UNSCHEDULABLE),
        ({"where": Where.UNSCHEDULABLE, "attempts": 1, "tried": 100.0}, 400.0, Where.ACTIVE),
    ],
)
def test_time_alone_moves_what_has_waited_long_enough(entry, now, goes_to):
    waiting = queue(("a", entry))
    waiting.flush(now)
    assert waiting["a"].where is goes_to


def test_update_case_1_a_pod_in_active_or_backoff_stays_there():
    waiting = queue(("a", {"digest": "old"}), ("b", {"where": Where.BACKING_OFF, "attempts": 1, "tried": 5.0}))
    waiting.update("a", "new", now=6.0)
    waiting.update("b", "new", now=100.0)
    assert [(e.where, e.digest) for e in waiting.entries()] == [(Where.ACTIVE, "new"), (Where.BACKING_OFF, "new")]


@pytest.mark.parametrize(("now", "goes_to"), [(5.5, Where.BACKING_OFF), (7.0, Where.ACTIVE)])
def test_update_case_2_an_unschedulable_pod_is_tried_again(now, goes_to):
    waiting = queue(("a", {"where": Where.UNSCHEDULABLE, "attempts": 1, "tried": 5.0}))
    waiting.update("a", "new", now=now)
    assert waiting["a"].where is goes_to


def test_update_case_3_a_pod_of_no_queue_becomes_active():
    waiting = queue()
    waiting.update("a", "new", now=1.0)
    assert waiting["a"].where is Where.ACTIVE


def test_a_pod_that_is_in_a_queue_is_not_put_aside_again():
    waiting = queue(("a", {"attempts": 3}))
    waiting.add_unschedulable("a", 1, now=1.0)
    assert waiting["a"].attempts == 3
