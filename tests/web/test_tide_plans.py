"""Tide plans in the database: written under the tree's rules, read within sight, pushed by what holds now."""

import datetime as dt

import pytest
from django.utils import timezone

from tests import quota_writes
from tests.quota_writes import write_tide_plan
from tests.web.test_quota_services import inference, owners
from tests.web.test_tide import layer
from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.selectors import access_of
from tidesched_web.audit.models import AuditEntry
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.common.errors import DomainError
from tidesched_web.quota.models import CardQuota, Queue, SyncState, TidePlan
from tidesched_web.quota.selectors import with_card_quota
from tidesched_web.quota.tide_selectors import (
    clusters_with_tide,
    effective_now,
    effective_of,
    layers_in_sight,
    tide_due,
    visible_queue_names,
    visible_tide_plans,
)
from tidesched_web.scheduling.models import QueueUsage

H = "NVIDIA-H200"
NOON = dt.datetime(2026, 3, 4, 12, tzinfo=dt.UTC)
NIGHT = dt.datetime(2026, 3, 4, 23, tzinfo=dt.UTC)


def clock(cluster, moment):
    """Stop the cluster's clock at a moment."""
    Cluster.objects.filter(pk=cluster.pk).update(
        clock_anchor=moment, clock_wall_anchor=timezone.now(), clock_rate=0.000001
    )
    cluster.refresh_from_db()


@pytest.fixture
def cluster(db):
    made = clusters.create(name="east", api_url="https://10.0.0.1:6443", actor="root", token="secret-of-east")
    CardType.objects.create(cluster=made, name=H, hardware=16, last_seen_at=timezone.now())
    return made


@pytest.fixture
def chat(cluster):
    _tenant, project, _line = owners()
    clock(cluster, NOON)
    return inference(cluster, "chat", project, NVIDIA_H200=10)


def write(cluster, document, name="nights", **more):
    return write_tide_plan(cluster=cluster, name=name, document=document, actor="ann", reason="tide", **more)


def nights(amount, queue="chat", enabled=True, **more):
    return {"enabled": enabled, "layers": [layer(quota={queue: {H: amount}})], **more}


def effective(queue):
    rows = list(with_card_quota(Queue.objects.filter(pk=queue.pk)))
    assert effective_now(queue.cluster, rows) == effective_of(rows)
    return effective_now(queue.cluster, rows)[queue.pk]


def test_a_plan_is_written_audited_and_counted(cluster, chat):
    plan = write(cluster, nights({"set": 4}))
    assert (plan.version, plan.enabled, plan.layers[0]["start"]) == (1, True, "22:00")
    assert write(cluster, nights({"set": 4})).version == 1, "it says so already"
    assert write(cluster, nights({"set": 5})).version == 2
    assert write(cluster, None) is None
    assert not TidePlan.objects.exists()
    entries = AuditEntry.objects.filter(object_type="tide_plan").order_by("id")
    assert [entry.action for entry in entries] == ["tide_plan.create", "tide_plan.update", "tide_plan.delete"]
    assert entries[0].tenant_ids == [chat.tenant_id]
    assert entries[1].before["layers"][0]["quota"] == {"chat": {H: {"set": 4}}}
    assert CardQuota.objects.get(queue=chat).cards == 10, "the base is never written"


def test_what_is_wrong_is_refused_with_its_place(cluster, chat):
    with pytest.raises(DomainError) as refused:
        write(cluster, nights({"set": 4}, queue="chatt"))
    (error,) = refused.value.extra["errors"]
    assert error["code"] == "unknown_queue"
    assert "Did you mean 'chat'?" in error["detail"]
    with pytest.raises(DomainError) as breach:
        write(cluster, nights({"set": 17}))
    (error,) = breach.value.extra["errors"]
    assert (error["requested"], error["limit"], error["code"]) == (17, 16, "exceeds_at_moment")
    assert write(cluster, nights({"set": 17}, enabled=False)).enabled is False, "a plan at rest may wait for its time"
    for name in ("", "a/b", "x" * 121):
        with pytest.raises(DomainError):
            write(cluster, nights({"set": 4}), name=name)


def test_an_edit_of_the_base_is_checked_at_every_moment_of_the_plans(cluster, chat):
    write(cluster, nights({"add": 6}))
    with pytest.raises(DomainError) as refused:
        quota_writes.set_card_quota(cluster=cluster, owner=chat, cards={H: 11}, actor="ann")
    assert "17 × H200" in refused.value.message
    assert "nights: night" in refused.value.message
    assert quota_writes.set_card_quota(cluster=cluster, owner=chat, cards={H: 9}, actor="ann")


def test_what_holds_follows_from_the_clock_and_the_use_of_inference(cluster, chat):
    write(cluster, nights({"set": 4}))
    assert effective(chat) == {H: 10}
    assert tide_due(cluster) == []
    clock(cluster, NIGHT)
    assert effective(chat) == {H: 4}
    assert tide_due(cluster) == [chat.pk]
    QueueUsage.objects.create(queue=chat, card=H, at=NIGHT, quota=10_000, allocated=6_500, inqueue=0, elastic=0)
    assert effective(chat) == {H: 7}, "six and a half cards are in use"
    Queue.objects.filter(pk=chat.pk).update(tide={H: 7})
    assert tide_due(cluster) == []
    QueueUsage.objects.update(allocated=2_000)
    assert effective(chat) == {H: 4}
    assert tide_due(cluster) == [chat.pk], "what it gave up goes on falling with the use"


def test_a_missed_tick_heals_and_the_end_of_a_plan_too(cluster, chat):
    write(cluster, nights({"set": 4}))
    Queue.objects.filter(pk=chat.pk).update(tide={H: 4}, sync_state=SyncState.IN_STEP)
    assert tide_due(cluster) == [chat.pk], "no one looked when the layer closed; the next look sees it"
    TidePlan.objects.update(enabled=False)
    assert list(clusters_with_tide()) == [cluster]
    assert tide_due(cluster) == [chat.pk]
    Queue.objects.update(tide={})
    assert list(clusters_with_tide()) == []
    clock(cluster, NIGHT)
    TidePlan.objects.update(enabled=True)
    Queue.objects.update(sync_state=SyncState.FAILED)
    assert tide_due(cluster) == [], "one that the cluster refuses waits for a person"


def test_what_one_queue_still_uses_is_not_given_to_another(cluster, chat):
    project = chat.project
    other = inference(cluster, "quiet", project, NVIDIA_H200=6)
    plan = {"enabled": True, "layers": [layer(quota={"chat": {H: {"add": -6}}, "quiet": {H: {"add": 6}}})]}
    write(cluster, plan)
    clock(cluster, NIGHT)
    assert (effective(chat), effective(other)) == ({H: 4}, {H: 12})
    QueueUsage.objects.create(queue=chat, card=H, at=NIGHT, quota=10_000, allocated=9_000, inqueue=0, elastic=0)
    assert (effective(chat), effective(other)) == ({H: 9}, {H: 7})


def test_lists_over_clusters_cost_four_queries_however_many_there_are(cluster, chat, django_assert_num_queries):
    made = [cluster, *(clusters.create(name=name, api_url="https://10.0.0.1:6443", actor="root") for name in "abc")]
    plan = {"enabled": True, "layers": [layer(quota={"chat": {H: {"add": -6}}, "quiet": {H: {"add": 6}}})]}
    for one in made:
        clock(one, NOON)
        CardType.objects.get_or_create(cluster=one, name=H, defaults={"hardware": 16, "last_seen_at": timezone.now()})
        queue = chat if one == cluster else inference(one, "chat", chat.project, NVIDIA_H200=10)
        inference(one, "quiet", chat.project, NVIDIA_H200=6)
        write_tide_plan(cluster=one, name="nights", document=plan, actor="ann", reason="tide")
        QueueUsage.objects.create(queue=queue, card=H, at=NIGHT, quota=10_000, allocated=9_000, inqueue=0, elastic=0)
        clock(one, NIGHT)
    queues = list(with_card_quota(Queue.objects.select_related("cluster")))
    with django_assert_num_queries(4):
        found = effective_of(queues)
    assert [found[queue.pk][H] for queue in queues if queue.name == "quiet"] == [7] * len(made)


def test_a_member_sees_the_plans_of_their_queues_and_of_those_only_their_part(cluster, chat):
    _tenant, project, _line = owners("rival")
    foreign = inference(cluster, "rival-chat", project, NVIDIA_H200=2)
    both = {"layers": [layer(quota={"chat": {H: {"set": 4}}, "rival-chat": {H: {"set": 1}}})]}
    write(cluster, both, name="both")
    write(cluster, nights({"set": 1}, queue="rival-chat"), name="rivals")
    member = accounts.create_user(username="mei", password=None, actor="root")
    accounts.set_membership(user=member, tenant=chat.tenant, role="member", actor="root")
    access = access_of(member)
    assert [plan.name for plan in visible_tide_plans(access)] == ["both"]
    names = visible_queue_names(access, [cluster.pk])
    layers, hidden = layers_in_sight(visible_tide_plans(access).get(), access, names)
    assert (layers[0]["quota"], hidden) == ({"chat": {H: {"set": 4}}}, 1)
    assert foreign.name not in str(layers)
    nobody = accounts.create_user(username="nobody", password=None, actor="root")
    assert list(visible_tide_plans(access_of(nobody))) == []
    auditor = access_of(accounts.create_user(username="aud", password=None, platform_role="auditor", actor="root"))
    assert visible_tide_plans(auditor).count() == 2
    assert layers_in_sight(TidePlan.objects.get(name="both"), auditor, set())[1] == 0
