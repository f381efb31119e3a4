"""Dropped messages are reported in few lines, and none of them is left out."""

from __future__ import annotations

import logging

from celery.signals import task_revoked

from tidesched_web import celery
from tidesched_web.common.late_messages import SAID_EVERY_SECONDS, LateMessages


def test_they_are_said_once_a_minute_with_their_number(caplog):
    now = [0.0]
    late = LateMessages(clock=lambda: now[0])
    with caplog.at_level(logging.WARNING):
        for _ in range(100):
            late.note("tidesched_web.scheduling.tasks.tick")
        late.note("quota.push_pending")
        assert [record.message.rpartition(": ")[2] for record in caplog.records] == ["1 × tick"]
        now[0] += SAID_EVERY_SECONDS
        late.note("quota.push_pending")
    assert caplog.records[-1].message.endswith(": 2 × push_pending, 99 × tick")
    assert len(caplog.records) == 2


def test_the_worker_counts_what_expired_and_nothing_else(monkeypatch):
    noted = []
    monkeypatch.setattr(celery.late, "note", noted.append)

    class Request:
        name = "a.tick"

    task_revoked.send(sender=None, request=Request, terminated=False, expired=True)
    task_revoked.send(sender=None, request=Request, terminated=True, expired=False)
    assert noted == ["a.tick"]


def test_a_tick_outlives_its_period_by_far():
    tick = celery.app.conf.beat_schedule["tick"]
    assert tick["options"]["expires"] >= 5 * tick["schedule"], "a busy machine must not drop all of them"
