"""A process that dies at any statement loses nothing: either nothing happened, or the sweep ends what was begun."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import connection, transaction
from django.utils import timezone

from tests.web.changes.ground import H200
from tidesched_web.audit.models import AuditEntry
from tidesched_web.audit.verification import verify_all
from tidesched_web.changes import services as changes
from tidesched_web.changes.models import ChangeObject, QuotaChange
from tidesched_web.changes.services.applying import apply_due
from tidesched_web.changes.services.carrying import carry
from tidesched_web.quota.models import QuotaTree
from tidesched_web.quota.services import push

EDITS = {
    "queue/acme-online": {"card_quota": {H200: 7}},
    "tenant/acme": {"name": "Acme"},
    "priority-class/pc": {"value": 1},
}
MOST = 90


class Killed(BaseException):
    """The process is gone. Not an Exception: nothing may catch it and go on."""


def killed_at(statement: int):
    """Let the connection die before its n-th statement."""
    count = 0

    def wrapper(execute, sql, params, many, context):
        nonlocal count
        count += not sql.startswith(("SAVEPOINT", "ROLLBACK", "RELEASE"))
        if count == statement:
            count += MOST  # once
            raise Killed
        return execute(sql, params, many, context)

    return connection.execute_wrapper(wrapper)


def state(ground):
    return ground.tree(), QuotaTree.objects.get().version, QuotaChange.objects.count(), AuditEntry.objects.count()


def test_a_write_that_dies_at_any_statement_leaves_nothing_behind(ground):
    before, deaths = state(ground), 0
    for statement in range(1, MOST):
        try:
            with killed_at(statement), transaction.atomic():
                ground.carry_out(EDITS)
                break
        except Killed:
            deaths += 1
            assert state(ground) == before, statement
    assert deaths > 20
    assert ground.tree()["tenant/acme"]["name"] == "Acme"
    assert all(report.intact for report in verify_all())


def test_a_change_whose_hour_came_is_applied_by_the_next_sweep_wherever_the_last_one_died(ground):
    change = ground.carry_out(EDITS, apply_at=timezone.now() + dt.timedelta(hours=1))
    QuotaChange.objects.update(apply_at=timezone.now())
    before, deaths = state(ground), 0
    for statement in range(1, MOST):
        try:
            with killed_at(statement), transaction.atomic():
                apply_due(change.pk)
                break
        except Killed:
            deaths += 1
            assert state(ground) == before, statement
    assert deaths > 20
    change.refresh_from_db()
    assert (change.state, ground.quota("acme-online")) == ("applied", 7)
    assert AuditEntry.objects.filter(action="quota_change.apply").count() == 1


@pytest.mark.parametrize("statement", range(1, 30, 4))
def test_a_change_on_its_way_arrives_whatever_statement_its_worker_died_at(ground, monkeypatch, statement):
    """The cluster answers every push; the worker dies in between, and again, and the next one goes on."""
    ground.cluster.mode = "quota"
    ground.cluster.save()

    def in_step(*, cluster, queues_named, classes_named, **_):
        for rows, names in ((cluster.queues, queues_named), (cluster.priority_classes, classes_named)):
            for row in rows.filter(name__in=names):
                type(row)._base_manager.filter(pk=row.pk).update(sync_state="in_step", pushed_version=row.version)
        return push.PushReport()

    monkeypatch.setattr(push, "push_cluster", in_step)
    change = ground.carry_out(EDITS)
    assert change.state == "applying"
    for _ in range(2):
        try:
            with killed_at(statement):
                carry(change.pk)
        except Killed:
            QuotaChange.objects.update(claimed_until=timezone.now())  # the claim runs out
    changes.sweep()
    change.refresh_from_db()
    assert change.state == "applied"
    assert set(ChangeObject.objects.values_list("state", flat=True)) == {"applied"}
