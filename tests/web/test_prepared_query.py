"""Prepared and shared queries give the objects that the plain querysets give, with what was given at each call."""

import threading

import pytest
from django.db import connection
from django.db.models import BigIntegerField
from django.forms.models import model_to_dict
from django.test.utils import CaptureQueriesContext

from tests.web.console import world as story
from tidesched_web.accounts.selectors import access_of, user_of_session
from tidesched_web.changes.inbox_selectors import inbox_of
from tidesched_web.common.permissions import Access
from tidesched_web.common.prepared_query import Given, Prepared, shared
from tidesched_web.quota.models import Queue
from tidesched_web.quota.selectors import visible_queues, with_card_quota
from tidesched_web.scheduling.selectors import (
    clusters_now,
    clusters_with_sessions,
    newest_reclaims,
    reclaims_with_victims,
)
from tidesched_web.scheduling.sight import hide_other_side
from tidesched_web.workloads.models import Gang
from tidesched_web.workloads.reason_figures import with_figures
from tidesched_web.workloads.selectors import (
    longest_waiting,
    visible_gangs,
    waiting_gangs,
    with_own_queue,
    with_reason_counts,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> story.World:
    return story.full()


def said(rows):
    return [(type(row), {name: value for name, value in vars(row).items() if name != "_state"}) for row in rows]


def joined(rows):
    return [{name: (value and model_to_dict(value)) for name, value in row._state.fields_cache.items()} for row in rows]


def accesses(world):
    return [access_of(world.admin), access_of(world.member), access_of(world.newcomer)]


def test_what_every_page_asks_is_what_the_plain_querysets_say(world) -> None:
    for access in accesses(world):
        for _again in range(2):
            clusters = clusters_now(access)
            asked = clusters_with_sessions(access).order_by("name")
            shown = said(clusters)
            for _kind, row in shown:
                assert row.pop("set_up") in (True, False)
            assert shown == said(asked)
            assert joined(clusters) == joined(asked)
            waiting = waiting_gangs(access, world.cluster)
            rows = with_reason_counts(with_figures(with_own_queue(waiting, access)), waiting).defer("manifest")
            rows = rows.order_by("waiting_since", "id")[:6]
            assert said(longest_waiting(access, world.cluster, 6).gangs) == said(rows)
            reclaims = reclaims_with_victims(access).filter(cluster=world.cluster).order_by("-id")[:6]
            found = newest_reclaims(access, world.cluster, 6)
            assert said(found) == said(hide_other_side(row) for row in reclaims)
            assert joined(found) == joined(reclaims)
    assert clusters_now(access_of(world.newcomer)) == []
    assert len(inbox_of(access_of(world.newcomer))) == 0
    assert longest_waiting(access_of(world.admin), world.cluster, 6).gangs


def test_a_value_is_given_with_each_call_and_a_thread_of_its_own_may_ask(world) -> None:
    prepared = Prepared(Gang.objects.filter(pk=Given("pk", BigIntegerField())).select_related("worked_out", "queue"))
    for gang in Gang.objects.order_by("pk")[:5]:
        with CaptureQueriesContext(connection) as queries:
            (found,) = prepared.rows(pk=gang.pk)
        assert len(queries) == 1
        assert said([found]) == said([gang])
    assert prepared.rows(pk=0) == []
    seen = []

    def ask() -> None:
        try:
            seen.append(prepared.rows(pk=0))  # of this thread's own connection
        finally:
            connection.close()

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert seen == [[]]


def test_what_is_prefetched_cannot_be_prepared() -> None:
    with pytest.raises(ValueError, match="prefetched"):
        Prepared(Queue.objects.prefetch_related("gangs"))


def test_a_list_of_shared_rows_is_the_list_itself(world) -> None:
    for access in accesses(world):
        for rows in (
            with_card_quota(visible_queues(access)).order_by("pk"),
            with_own_queue(visible_gangs(access), access).select_related("cluster", "worked_out").order_by("pk"),
            visible_gangs(access).select_related("queue__tenant").only("name", "queue__tenant__slug").order_by("pk"),
        ):
            found = list(shared(rows))
            assert said(found) == said(rows)
            assert joined(found) == joined(rows)
    queues = list(shared(visible_queues(access_of(world.admin))))
    assert len(queues) > 1
    assert len({id(queue.cluster) for queue in queues}) == len({queue.cluster_id for queue in queues})
    names = Queue.objects.order_by("pk").values("name")
    assert list(shared(names)) == list(names)


def test_the_account_of_a_request_comes_with_its_memberships(world) -> None:
    for user in (world.admin, world.member, world.newcomer):
        with CaptureQueriesContext(connection) as queries:
            found = access_of(user_of_session(user.pk))
        assert len(queries) == 1
        assert found == access_of(user)
        assert isinstance(found, Access)
    assert user_of_session(0) is None
