"""Requests that come at the same time, on connections of their own."""

import contextlib
import threading

import pytest
from django.db import connections

from tests import quota_writes
from tests.api.cast import ApiClient, live_tokens
from tests.web.changes import ground as ground_module
from tests.web.changes.ground import H200
from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.models import Tenant
from tidesched_web.audit.models import AuditEntry
from tidesched_web.changes import impact
from tidesched_web.changes import services as changes
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.services import writing
from tidesched_web.clusters.models import CardType
from tidesched_web.common.errors import DomainError
from tidesched_web.jobs.models import Job
from tidesched_web.quota import services as quota
from tidesched_web.quota.models import QuotaTree


@pytest.mark.django_db(transaction=True)
def test_of_eight_equal_requests_at_once_one_makes_a_token():
    user = accounts.create_user(username="ann", password=None, actor="tests")
    start, statuses, texts = threading.Barrier(8), [], set()

    def send():
        try:
            client = ApiClient(user)
            start.wait()
            response = client.send("tokens/", {"scopes": ["quota:read"]}, Idempotency_Key="k-1")
            statuses.append(response.status_code)
            if response.status_code == 201:
                texts.add(response.json()["token"])
        finally:
            connections.close_all()

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {201, 409}
    assert len(texts) == live_tokens(user) == 1


NEW = {"service_type": "training", "tenant": "brief", "business_line": "works"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("step", ["owners", "queues", "grants"])
@pytest.mark.parametrize(
    "edits",
    [
        {"queue/brief-train": NEW},
        {"tenant/brief": {"description": "x", "quota": {"training": {"cpu_milli": 1000}}}},
        {"project/brief/chat": {"name": "Chat"}},
        {"tenant/brief": None, "business-line/brief/works": None},
    ],
    ids=["a queue of it", "its quota", "a project of it", "its end"],
)
def test_a_tenant_that_another_cluster_deletes_meanwhile_is_a_conflict(monkeypatch, edits, step):
    """All clusters share the tenants, and the lock of a tree holds none of them."""
    ground = ground_module.build()
    brief = quota_writes.ensure_tenant(slug="brief", actor="tests")
    quota_writes.ensure_business_line(tenant=brief, slug="works", actor="tests")
    module, made = getattr(writing, step), []

    def delete():
        try:
            with contextlib.suppress(DomainError):  # it is used by then
                quota.delete_owner(owner=Tenant.objects.get(slug="brief"), actor="tests")
        finally:
            connections.close_all()

    def written(rows):
        if not made:
            made.append(threading.Thread(target=delete))
            made[0].start()
            made[0].join(3)  # it waits where the row is locked by then
        return write(rows)

    write = module.write
    monkeypatch.setattr(module, "write", written)
    client = ApiClient(ground.users["root"])
    change = client.send("quota-changes/", {"cluster": "east", "edits": edits, "reason": "x"}).json()
    answer = client.send(f"quota-changes/{change['id']}/apply/", {}, If_Match="*")
    made[0].join(60)
    gone = not Tenant.objects.filter(slug="brief").exists()
    if answer.status_code == 202:
        assert not gone or edits.get("tenant/brief", "") is None
    else:
        assert (answer.status_code, answer.json()["code"], gone) == (409, "conflict", True), answer.content
        assert "the tree of another cluster decides too" in answer.json()["detail"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verbs", [("approve", "approve"), ("approve", "reject")])
def test_of_two_admins_who_decide_about_a_request_at_once_one_does(verbs):
    """For more than the tenant has: it is granted or refused once, and written once at most."""
    ground = ground_module.build()
    CardType.objects.filter(name=H200).update(hardware=24)
    more = {"card_quota": {H200: 9}}
    asked = ground.draft({"tenant/acme": {"quota": {"inference": more}}, "queue/acme-online": more}, who="owner")
    asked = changes.apply(change=asked, access=ground.access("owner"))
    assert (asked.state, asked.asks_beyond) == ("waiting", True)
    start, answers, tree = threading.Barrier(2), {}, QuotaTree.objects.get().version

    def decide(who, verb):
        try:
            client = ApiClient(ground.users[who])
            start.wait()
            address = f"quota-changes/{asked.pk}/{verb}/"
            answers[who] = client.send(address, {"reason": f"{who} says so"}, If_Match=f'"{asked.version}"')
        finally:
            connections.close_all()

    threads = [threading.Thread(target=decide, args=one) for one in zip(("root", "second"), verbs, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    change = QuotaChange.objects.get(pk=asked.pk)
    decided = AuditEntry.objects.filter(action__in=["quota_change.approve", "quota_change.reject"])
    assert decided.count() == 1, [answer.content for answer in answers.values()]
    granted = change.state == "applied"
    assert granted or (change.state, verbs[1]) == ("rejected", "reject")
    assert AuditEntry.objects.filter(action="quota_change.apply").count() == int(granted)
    assert (QuotaTree.objects.get().version - tree, ground.quota("acme-online")) == ((1, 9) if granted else (0, 6))
    # The other one is refused, or reads what the first has decided.
    by = change.approved_by if granted else change.closed_by
    assert answers[by].status_code in (200, 202)
    (other,) = (answer for who, answer in answers.items() if who != by)
    assert other.status_code in (409, 412) or other.json()["approved_by"] == by


@pytest.mark.django_db(transaction=True)
def test_a_question_is_put_where_redis_goes_away_in_the_middle_of_it(settings):
    """What is noted there after the commit is a help, and no part of the write."""
    ground = ground_module.build()
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": "unix:///nowhere/redis.sock"}}
    job = impact.ask(ground.cluster, [], access=ground.access("root"), subject="change:1")
    assert Job.objects.filter(pk=job.pk).exists()
